package rulefile

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit/reading"
	"github.com/weir-go/weir/internal/spelling"
)

// A Rule is a limit on the requests that match it, for each key.
type Rule struct {
	Name     string // unique in the file
	Match    reading.Match
	Key      Key
	Policy   engine.Policy // made of the algorithm, the rate and the burst; not used for requests if Constant is set
	Constant Constant      // the rule's own rate, if requests are not counted
	MaxWait  time.Duration // how long a request waits for tokens instead of being refused; 0: it does not
	Tiers    *Tiers        // nil for none
	Quota    *Quota        // of limits from outside; nil for none
	Cost     Cost
	Tokens   *Tokens  // for a cost that comes from the answer; nil for none
	Refund   Statuses // of answers that give the tokens of their requests back
	Refusal  *Refusal // nil for the file's
	Shadow   bool     // count, never refuse
	MaxKeys  int
	Overflow engine.OverflowPolicy
	Spread   bool   // one bucket on all processors (engine.Spread)
	Store    *Store // the file's store, if the limit is kept there; nil: the limit is on this machine
	State    string // file of the limit, which outlives the process; "" for none
	Debts    string // beginning of the files with what the store is owed; "" for none
	Line     int    // in the file
}

// Tiers has policies for some of a rule's requests, selected by the value of a header.
type Tiers struct {
	Header    string          // canonical
	Values    []string        // in order: those with a policy, and then those with a constant
	Policies  []engine.Policy // of the first values; tier i+1 of the limiter is that of Values[i]
	Constants []Constant      // of the other values
}

// Of returns the tier for a value of the header, in the form of [spelling.Line]: 0, the rule's own limit, for a value
// without a tier. Counted tiers come first, as in the limiter.
func (t *Tiers) Of(value string) int {
	return 1 + slices.IndexFunc(t.Values, func(v string) bool { return v == value || spelling.Line(t.Header, v) == value })
}

// Cost is the number of tokens that a request takes. With a header, it is the number in the header: Default if that is
// missing or not a whole number above 0, and Max if it is above Max.
type Cost struct {
	Header       string // canonical; "" for Default always
	Default, Max uint64
	Estimate     uint64    // with From
	From         CostPlace // zero if the cost comes from the request
}

// Statuses are ranges of HTTP statuses.
type Statuses []StatusRange

// A StatusRange is the statuses from First to Last.
type StatusRange struct{ First, Last int }

// Contains reports whether the status is in one of the ranges.
func (s Statuses) Contains(status int) bool {
	return slices.ContainsFunc(s, func(r StatusRange) bool { return r.First <= status && status <= r.Last })
}

// NewLimiter returns the limiter of the rule. The caller closes it. The only error is that the machine does not have
// the memory. With [Rule.StateOptions], it also returns the errors of [engine.Shared].
func (r *Rule) NewLimiter(options ...engine.Option) (*engine.Limiter, error) {
	own := append([]engine.Option{engine.MaxKeys(r.MaxKeys), engine.Overflow(r.Overflow)}, r.limitOptions()...)
	return engine.New(r.Policy, append(own, options...)...)
}

// limitOptions returns the options for limits with other numbers than the rule's own.
func (r *Rule) limitOptions() []engine.Option {
	if room := r.room(); room > 0 {
		return []engine.Option{engine.MaxQuota(room)}
	}
	return []engine.Option{engine.Tiers(r.TierPolicies()...)}
}

// TierPolicies returns the policies of the tiers that the limiter has, in their order.
func (r *Rule) TierPolicies() []engine.Policy {
	if r.Tiers == nil || r.ByQuota() {
		return nil
	}
	return r.Tiers.Policies
}

// Policies returns the rule's own policy and those of its tiers.
func (r *Rule) Policies() []engine.Policy {
	return append([]engine.Policy{r.Policy}, r.TierPolicies()...)
}

// limits returns the policy, and the policies of the tiers, as text.
func (r *Rule) limits() string {
	s := r.OwnLimit()
	if r.Tiers != nil {
		for i, value := range r.Tiers.Values {
			s += fmt.Sprintf("; %s: %s", value, r.tierLimit(i))
		}
	}
	return s
}

// Memory returns how many bytes the rule's limiter takes; 0 if it has no table.
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
