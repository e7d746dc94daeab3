package rulefile

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit/reading"
	"github.com/weir-go/weir/internal/spelling"
)

// A Rule limits the requests that match it, for each key separately.
type Rule struct {
	Name     string // unique in the file
	Match    reading.Match
	Key      Key
	Policy   engine.Policy // from the algorithm, the rate and the burst; counts no request if Constant is set
	Constant Constant      // the rule's own rate if it is a constant; such requests are not counted
	MaxWait  time.Duration // how long a request waits for tokens instead of being refused; 0 if it does not wait
	Tiers    *Tiers        // nil for none
	Quota    *Quota        // where limits come from outside; nil for none
	Cost     Cost
	Tokens   *Tokens  // for a cost that comes from the answer; nil for none
	Refund   Statuses // statuses of answers for which a request gets its tokens back
	Refusal  *Refusal // nil for the file's Refusal
	Shadow   bool     // count requests but never refuse
	MaxKeys  int
	Overflow engine.OverflowPolicy
	Spread   bool   // one bucket, spread over all processors (engine.Spread)
	Store    *Store // the file's store, if the limit is kept there; nil if the limit is kept on this machine
	State    string // file that keeps the limit when the process ends; "" for none
	Debts    string // beginning of the names of the files that record debts to the store; "" for none
	Line     int    // line in the file
}

// Tiers has policies for some requests of a rule, selected by a header.
type Tiers struct {
	Header    string          // canonical name
	Values    []string        // in order: the values with a policy, and then the values with a constant
	Policies  []engine.Policy // policies of the first values; tier i+1 of the limiter is for Values[i]
	Constants []Constant      // constants of the other values
}

// TierOf returns the tier for a header value, which must have the form of [spelling.Line]. If no tier has this value,
// it returns 0, which means the rule's own limit. Tiers that count requests come first, as in the limiter.
func (t *Tiers) TierOf(value string) int {
	return 1 + slices.IndexFunc(t.Values, func(v string) bool { return v == value || spelling.Line(t.Header, v) == value })
}

// Cost says how many tokens a request takes. It is the number in Header, but at most Max. It is Default if the header
// is missing or is not a whole number above 0.
type Cost struct {
	Header       string // canonical name; "" if every request takes Default
	Default, Max uint64
	Estimate     uint64    // only with From
	From         CostPlace // zero if the cost comes from the request
}

// Statuses are ranges of HTTP statuses.
type Statuses []StatusRange

// A StatusRange has the statuses from First to Last.
type StatusRange struct{ First, Last int }

// Contains reports whether the status is in one of the ranges.
func (s Statuses) Contains(status int) bool {
	return slices.ContainsFunc(s, func(r StatusRange) bool { return r.First <= status && status <= r.Last })
}

// NewLimiter returns the limiter of the rule. The caller must close it. An error says that there is too little memory.
// With [Rule.StateOptions], it can also be an error of [engine.Shared].
func (r *Rule) NewLimiter(options ...engine.Option) (*engine.Limiter, error) {
	base := append([]engine.Option{engine.MaxKeys(r.MaxKeys), engine.Overflow(r.Overflow)}, r.limitOptions()...)
	return engine.New(r.Policy, append(base, options...)...)
}

// limitOptions returns the options for the limits of tiers and quotas.
func (r *Rule) limitOptions() []engine.Option {
	if room := r.room(); room > 0 {
		return []engine.Option{engine.MaxQuota(room)}
	}
	return []engine.Option{engine.Tiers(r.TierPolicies()...)}
}

// TierPolicies returns the policies of the limiter's tiers, in order.
func (r *Rule) TierPolicies() []engine.Policy {
	if r.Tiers == nil || r.ByQuota() {
		return nil
	}
	return r.Tiers.Policies
}

// Policies returns the rule's own policy and the policies of its tiers.
func (r *Rule) Policies() []engine.Policy {
	return append([]engine.Policy{r.Policy}, r.TierPolicies()...)
}

func (r *Rule) limits() string {
	s := r.OwnLimit()
	if r.Tiers != nil {
		for i, value := range r.Tiers.Values {
			s += fmt.Sprintf("; %s: %s", value, r.tierLimit(i))
		}
	}
	return s
}

// Memory returns how many bytes the rule's limiter takes. It returns 0 if the limiter has no table.
func (r *Rule) Memory() (uint64, error) {
	if r.Spread {
		return 0, nil
	}
	options := append([]engine.Option{engine.MaxKeys(r.MaxKeys)}, r.limitOptions()...)
	if r.State != "" {
		options = append(options, engine.Shared(r.State))
	}
	return engine.Bytes(r.Policy, options...)
}
