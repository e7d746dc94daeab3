package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit/reading"
	"github.com/weir-go/weir/internal/spelling"
)

// A Rule is a limit on the requests that match it, for each key.
type Rule struct {
	Name     string // unique in the file
	Match    reading.Match
	Key      Key
	Policy   engine.Policy // of the algorithm, the rate and the burst; of no request if Constant is set
	Constant Constant      // the rule's own rate, if it needs no counting
	MaxWait  time.Duration // that a request waits for its tokens rather than be refused; 0 for none
	Tiers    *Tiers        // nil for none
	Cost     Cost
	Refund   Statuses // of answers whose requests count for nothing
	Refusal  *Refusal // nil for that of the file
	Shadow   bool     // count, never refuse
	MaxKeys  int
	Overflow engine.OverflowPolicy
	Spread   bool   // one bucket on all processors (engine.Spread)
	Store    *Store // of the file, if the limit is kept there; nil for this machine alone
	State    string // file in which the limit is kept beyond the process; "" for none
	Line     int    // in the file
}

// Tiers are policies for some of a rule's keys, by the value of a header.
type Tiers struct {
	Header    string          // canonical
	Values    []string        // in order: those with a policy, and then those with a constant
	Policies  []engine.Policy // of the first values; tier i+1 of the limiter is that of Values[i]
	Constants []Constant      // of the other values
}

// Of returns the tier of the header's value, in the form of [spelling.Line]: 0, the rule's own limit, for one that has
// none. Those that are counted come first, as in the limiter.
func (t *Tiers) Of(value string) int {
	return 1 + slices.IndexFunc(t.Values, func(v string) bool { return v == value || spelling.Line(t.Header, v) == value })
}

// Cost is how many tokens a request takes. With a header it is the number there: Default if
// that is missing or not a whole number above 0, and Max if it is above Max.
type Cost struct {
	Header       string // canonical; "" for Default always
	Default, Max uint64
}

// Statuses are ranges of HTTP statuses.
type Statuses []StatusRange

// A StatusRange is the statuses from First to Last.
type StatusRange struct{ First, Last int }

// Contains reports whether the status is one of them.
func (s Statuses) Contains(status int) bool {
	return slices.ContainsFunc(s, func(r StatusRange) bool { return r.First <= status && status <= r.Last })
}

// NewLimiter returns the engine for the rule. The caller closes it. That the machine has not
// the memory is the only error; with [Rule.StateOptions] those of [engine.Shared], too.
func (r *Rule) NewLimiter(options ...engine.Option) (*engine.Limiter, error) {
	own := []engine.Option{engine.MaxKeys(r.MaxKeys), engine.Overflow(r.Overflow), engine.Tiers(r.TierPolicies()...)}
	return engine.New(r.Policy, append(own, options...)...)
}

// TierPolicies returns the policies of the tiers, in their order.
func (r *Rule) TierPolicies() []engine.Policy {
	if r.Tiers == nil {
		return nil
	}
	return r.Tiers.Policies
}

// Policies returns the rule's own policy and those of its tiers.
func (r *Rule) Policies() []engine.Policy {
	return append([]engine.Policy{r.Policy}, r.TierPolicies()...)
}

// limits returns the policy, and those of the tiers, as a text.
func (r *Rule) limits() string {
	s := r.OwnLimit()
	if r.Tiers != nil {
		for i, value := range r.Tiers.Values {
			s += fmt.Sprintf("; %s: %s", value, r.tierLimit(i))
		}
	}
	return s
}

// Memory is how many bytes the rule's limiter takes; 0 for one without a table.
func (r *Rule) Memory() (uint64, error) {
	if r.Spread {
		return 0, nil
	}
	if r.State != "" {
		return r.Policy.SharedBytes(r.MaxKeys, r.TierPolicies()...)
	}
	return r.Policy.Bytes(r.MaxKeys, r.TierPolicies()...)
}

func (d *decoder) rules(n *yaml.Node, f *File) {
	if m := yamlfile.Target(n); m.Kind == yaml.MappingNode && len(m.Content) > 1 &&
		yamlfile.Target(m.Content[1]).Kind == yaml.MappingNode &&
		!slices.Contains([]string{"match", "tiers", "cost"}, m.Content[0].Value) {
		d.Fail(n, "rules: want a list, in which each rule has its name: write - name: %s, and what it says below",
			m.Content[0].Value)
		return
	}
	first := map[string]int{} // line of a name
	d.list(n, "rules", func(n *yaml.Node) {
		r, beside, name := d.rule(n)
		for _, r := range []*Rule{r, beside} {
			if r == nil {
				continue
			}
			if line, ok := first[r.Name]; ok && r.Name != "" {
				d.Fail(name, "name %s is there twice: the first is on line %d", yamlfile.Quote(r.Name), line)
			} else if name != nil {
				first[r.Name] = name.Line
			}
			f.Rules = append(f.Rules, *r)
		}
	})
	if len(f.Rules) > MaxRules {
		d.Fail(n, "%d rules: want at most %d, because a request may match all of them", len(f.Rules), MaxRules)
	}
}

// most is the largest cost, of what a limit can be.
const most = 1 << 32

// rule reads a rule, and returns with it the one for its concurrency, if it has a rate, too.
func (d *decoder) rule(n *yaml.Node) (_, beside *Rule, name *yaml.Node) {
	r := NewRule("")
	r.Line = n.Line
	before := len(d.Errors)
	var l limitNodes
	var tiers *yaml.Node
	wish := storeWish{rule: n}
	seen := d.mapping(n, "a rule",
		field{"name", func(n *yaml.Node) { r.Name = d.name(n) }},
		field{"match", func(n *yaml.Node) { r.Match = d.ruleMatch(n) }},
		field{"key", func(n *yaml.Node) { r.Key = d.key(n) }},
		later("algorithm", &l.algorithm),
		later("rate", &l.rate),
		later("burst", &l.burst),
		later("aligned", &l.aligned),
		later("concurrency", &l.concurrency),
		later("tiers", &tiers),
		d.durationField("max_wait", time.Millisecond, maxWait, &r.MaxWait),
		field{"cost", func(n *yaml.Node) { r.Cost = d.cost(n) }},
		field{"refund_status", func(n *yaml.Node) { r.Refund = d.statuses(n) }},
		field{"response", func(n *yaml.Node) { r.Refusal = d.ruleRefusal(n) }},
		d.yesField("shadow", &r.Shadow),
		d.yesField("spread", &r.Spread),
		d.integerField("max_keys", 1, 1<<31-1, &r.MaxKeys),
		field{"overflow", func(n *yaml.Node) { r.Overflow = d.overflow(n) }},
		field{"store", func(n *yaml.Node) { wish.at = n; d.yes(n, "store", &wish.want) }},
	)
	if seen == nil {
		return nil, nil, nil
	}
	if seen["name"] == nil {
		d.Fail(n, "a rule without name: it is what answers, metrics and reloads know the rule by")
	}
	if seen["rate"] == nil && seen["concurrency"] == nil {
		d.Fail(n, "a rule without rate: write for example rate: 10/s, or concurrency: 10 for so many requests at a time")
	}
	d.limits(&r, &l, tiers)
	d.checkWait(seen["max_wait"], &r)
	if r.Spread {
		d.checkSpread(seen, &r)
	}
	if r.IsInFlight() && len(r.Refund) > 0 {
		d.Fail(seen["refund_status"], "refund_status: every request leaves when it is over, whatever its status: leave this out")
	}
	if len(d.Errors) == before {
		d.checkCost(seen["cost"], &r)
	}
	d.wishes = append(d.wishes, wish)
	if l.rate != nil && l.concurrency != nil && len(d.Errors) == before {
		if beside = d.inFlightBeside(&r, &l, tiers); beside != nil {
			if wish.rule, wish.beside = l.concurrency, true; wish.want {
				wish.at = nil // it is about the rate
			}
			d.wishes = append(d.wishes, wish)
		}
	}
	return &r, beside, seen["name"]
}

// maxName is how long a name may be.
const maxName = 64

// name reads the name of a rule: it stands in header fields and metrics.
func (d *decoder) name(n *yaml.Node) string {
	s, ok := d.text(n, "name")
	if ok && (s == "" || len(s) > maxName || strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("-_.", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})) {
		d.Fail(n, "name: %s: want 1 to %d letters, digits, - _ or .", yamlfile.Quote(s), maxName)
		return ""
	}
	return s
}

func (d *decoder) cost(n *yaml.Node) Cost {
	c := Cost{Default: 1}
	if yamlfile.Target(n).Kind != yaml.MappingNode {
		d.number(n, "cost", 1, most, &c.Default)
		c.Max = c.Default
		return c
	}
	seen := d.mapping(n, "cost",
		d.headerField(&c.Header),
		d.numberField("default", 1, most, &c.Default),
		d.numberField("max", 1, most, &c.Max),
	)
	if seen == nil {
		return c
	}
	d.need(n, seen, "cost: no %s: want a number, or header and max", "header", "max")
	if c.Max > 0 && c.Default > c.Max {
		d.Fail(n, "cost: the default, %d, is above max, %d", c.Default, c.Max)
	}
	return c
}

var overflows = []string{"evict", "refuse", "admit"}

func (d *decoder) overflow(n *yaml.Node) engine.OverflowPolicy {
	word := overflows[0]
	choice(d, n, "overflow", overflows, &word)
	switch word {
	case "refuse":
		return engine.Refuse
	case "admit":
		return engine.Admit
	}
	return engine.Evict
}

// statuses reads statuses such as 404, and classes of them such as 2xx.
func (d *decoder) statuses(n *yaml.Node) (all Statuses) {
	d.list(n, "refund_status", func(n *yaml.Node) {
		s, ok := d.text(n, "refund_status")
		if !ok {
			return
		}
		if digit, ok := strings.CutSuffix(s, "xx"); ok && len(digit) == 1 && digit >= "1" && digit <= "5" {
			first := int(digit[0]-'0') * 100
			all = append(all, StatusRange{first, first + 99})
			return
		}
		status, err := strconv.Atoi(s)
		if err != nil || status < 100 || status > 599 {
			d.Fail(n, "refund_status: want a status such as 404, or a class of them, 1xx to 5xx, got %s",
				bare(yamlfile.Target(n)))
			return
		}
		all = append(all, StatusRange{status, status})
	})
	return all
}

// checkCost refuses what no request could ever pay.
func (d *decoder) checkCost(cost *yaml.Node, r *Rule) {
	if cost == nil {
		return
	}
	for i, p := range r.Policies() {
		if r.Cost.Max > p.Limit() && r.ConstantOf(i) == Counted {
			d.Fail(cost, "cost: %d is above the limit%s, %d: such a request could never pass", r.Cost.Max, r.whose(i),
				p.Limit())
			return
		}
	}
}
