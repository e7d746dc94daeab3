package config

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/weir/internal/limit"
	"github.com/weir-go/weir/engine"
)

// limitNodes are the values of a rule, or a tier, that make a policy, nil where there is none,
// and what they came to.
type limitNodes struct {
	algorithm, rate, burst, aligned *yaml.Node
	limits                          []uint64 // the most tokens of each tier
}

// numbers are those of a policy.
type numbers struct {
	rate  limit.Rate
	burst *uint64
}

// limits reads the policy of a rule and those of its tiers.
func (d *decoder) limits(r *Rule, l *limitNodes, tiers *yaml.Node) {
	before := len(d.errors)
	a := d.algorithm(l.algorithm)
	r.Algorithm = a.String()
	r.Aligned = d.aligned(l.aligned, a)
	n := d.numbers(l, a, numbers{})
	r.Rate = n.rate
	if l.rate != nil && len(d.errors) == before {
		r.Policy = a.Policy(n.rate, n.burst, r.Aligned)
		l.limits = []uint64{a.Limit(n.rate, n.burst)}
		if !d.try(l.rate, r) {
			r.Policy = engine.Policy{}
		}
	}
	if tiers != nil {
		d.tiers(tiers, r, a, n, l)
	}
}

// hasPolicy reports whether the rule's own numbers are good. If not, its tiers are still read, for
// the mistakes in them, but cannot be tried.
func (r *Rule) hasPolicy() bool { return r.Policy != engine.Policy{} }

// try makes the limiter, for a single key.
func (d *decoder) try(at *yaml.Node, r *Rule) bool {
	if !r.hasPolicy() {
		return false
	}
	limiter, err := r.probe(1)
	if err != nil {
		d.fail(at, "%s", plain(err))
		return false
	}
	_ = limiter.Close() // always nil
	return true
}

// plain is the text of an error of the engine, which names itself and its options.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "engine: "), "Tiers: ")
}

func (d *decoder) algorithm(n *yaml.Node) *limit.Algorithm {
	if n == nil {
		return limit.Find("")
	}
	s, ok := d.text(n, "algorithm")
	if a := limit.Find(s); a != nil && s != "" {
		return a
	}
	if ok {
		d.fail(n, "unknown algorithm %s%s", quote(s), didYouMean(s, limit.All()))
	}
	return limit.Find("") // to read on
}

func (d *decoder) aligned(n *yaml.Node, a *limit.Algorithm) (aligned bool) {
	if n == nil {
		return false
	}
	d.yes(n, "aligned", &aligned)
	if aligned && !a.HasAligned() {
		d.fail(n, "aligned: for fixed windows only, and this is a %s", a)
		return false
	}
	return aligned
}

// numbers reads rate and burst; what is not there is as in base.
func (d *decoder) numbers(l *limitNodes, a *limit.Algorithm, base numbers) numbers {
	n := base
	if l.rate != nil {
		n.rate = d.rate(l.rate, a)
	}
	switch {
	case l.burst == nil:
	case a.HasBurst():
		n.burst = new(uint64)
		d.number(l.burst, "burst", 1, most, n.burst)
	default:
		d.fail(l.burst, "burst: a %s has none, because all of its limit may come at once: leave it out, or use algorithm: token-bucket", a)
	}
	return n
}

func (d *decoder) rate(n *yaml.Node, a *limit.Algorithm) (r limit.Rate) {
	s, ok := d.text(n, "rate")
	if !ok {
		return r
	}
	if err := r.UnmarshalText([]byte(s)); err != nil {
		d.fail(n, "%s", plain(err))
		return r
	}
	if !a.WantsWhole() {
		return r
	}
	if _, _, err := r.Whole(); err != nil {
		d.fail(n, "rate: %v: a %s wants a whole number of requests: %v", r, a, err)
	}
	return r
}

// tiers reads the policies of a rule's tiers and tries each of them.
func (d *decoder) tiers(n *yaml.Node, r *Rule, a *limit.Algorithm, base numbers, l *limitNodes) {
	t := &Tiers{}
	seen := d.mapping(n, "tiers",
		field{"header", func(n *yaml.Node) {
			if s, ok := d.text(n, "header"); ok {
				t.Header, _ = d.headerName(n, s)
			}
		}},
		field{"values", func(n *yaml.Node) {
			d.pairs(n, "values", func(key, value *yaml.Node) {
				limit, policy, ok := d.tier(key, value, r, a, base)
				if ok {
					t.Values = append(t.Values, target(key).Value)
					t.Policies = append(t.Policies, policy)
					l.limits = append(l.limits, limit)
				}
			})
		}},
	)
	if seen == nil {
		return
	}
	for _, name := range []string{"header", "values"} {
		if seen[name] == nil {
			d.fail(n, "tiers: no %s: want a header and the limits for some of its values", name)
		}
	}
	if v := seen["values"]; v != nil && target(v).Kind == yaml.MappingNode && len(target(v).Content) == 0 {
		d.fail(v, "tiers: no values")
	}
	if len(t.Policies) == 0 {
		return
	}
	r.Tiers = t
	d.try(n, r)
}

// tier reads one tier and tries it beside the rule's own policy.
func (d *decoder) tier(key, n *yaml.Node, r *Rule, a *limit.Algorithm, base numbers) (uint64, engine.Policy, bool) {
	what := "tier " + strconv.Quote(target(key).Value)
	var l limitNodes
	seen := d.mapping(n, what,
		field{"rate", func(n *yaml.Node) { l.rate = n }},
		field{"burst", func(n *yaml.Node) { l.burst = n }},
	)
	if seen == nil {
		return 0, engine.Policy{}, false
	}
	if len(seen) == 0 {
		d.fail(n, "%s: neither rate nor burst", what)
		return 0, engine.Policy{}, false
	}
	before := len(d.errors)
	own := d.numbers(&l, a, base)
	if len(d.errors) > before {
		return 0, engine.Policy{}, false
	}
	switch {
	case !r.hasPolicy():
		return 0, engine.Policy{}, false
	case a.RefillsAtOnce() && l.rate != nil && own.rate != base.rate:
		d.fail(l.rate, "%s: a tier of a %s has the rule's rate, %v, and a burst of its own", what, a, base.rate)
		return 0, engine.Policy{}, false
	case a.WantsWhole() && !a.RefillsAtOnce() && !own.rate.SamePeriod(base.rate):
		d.fail(l.rate, "%s: a tier of a %s has the rule's period: write the rate as so many in the period of %v", what, a, base.rate)
		return 0, engine.Policy{}, false
	}
	policy := a.Policy(own.rate, own.burst, r.Aligned)
	probe := *r
	probe.Tiers = &Tiers{Policies: []engine.Policy{policy}}
	return a.Limit(own.rate, own.burst), policy, d.try(n, &probe)
}
