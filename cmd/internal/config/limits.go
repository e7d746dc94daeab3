package config

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
)

// limitNodes are the values of a rule, or a tier, that make a policy, nil where there is none.
type limitNodes struct {
	algorithm, rate, burst, aligned, concurrency *yaml.Node
}

// limits reads the policy of a rule and those of its tiers.
func (d *decoder) limits(r *Rule, l *limitNodes, tiers *yaml.Node) {
	before := len(d.Errors)
	if l.rate == nil && l.concurrency != nil {
		d.alone(r, l, tiers)
		return
	}
	d.besides = l.concurrency != nil
	n := limit.Numbers{Algorithm: d.algorithm(l.algorithm)}
	if r.Constant = constant(l.rate); r.Constant != Counted {
		d.noBurst(l, r.Constant)
		if tiers != nil {
			d.tiers(tiers, r, n)
		}
		if len(d.Errors) == before {
			r.fillConstant()
		}
		return
	}
	n.Aligned = d.aligned(l.aligned, n.Algorithm)
	d.numbers(l, &n)
	if l.rate != nil && len(d.Errors) == before {
		if policy := n.Policy(); d.check(l.rate, policy) {
			r.Policy = policy
		}
	}
	if tiers != nil {
		d.tiers(tiers, r, n)
	}
}

// hasPolicy reports whether the rule's own numbers are good. If not, its tiers are still read, for
// the mistakes in them, but cannot be checked.
func (r *Rule) hasPolicy() bool { return r.Policy != engine.Policy{} }

// check notes what the engine has against a policy, and tiers beside it.
func (d *decoder) check(at *yaml.Node, p engine.Policy, tiers ...engine.Policy) bool {
	if err := p.Check(tiers...); err != nil {
		d.Fail(at, "%s", plain(err))
		return false
	}
	return true
}

// plain is the text of an error of the engine, which names itself and its options.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "engine: "), "Tiers: ")
}

func (d *decoder) algorithm(n *yaml.Node) engine.Algorithm {
	name := limit.Name(engine.AlgorithmTokenBucket)
	if n != nil {
		choice(d, n, "algorithm", limit.Names(), &name)
	}
	var a engine.Algorithm
	if err := a.UnmarshalText([]byte(name)); err != nil {
		panic(err) // it is one of the choice
	}
	return a
}

func (d *decoder) aligned(n *yaml.Node, a engine.Algorithm) (aligned bool) {
	if n == nil {
		return false
	}
	d.yes(n, "aligned", &aligned)
	if aligned && !limit.FormOf(a).Aligned {
		d.Fail(n, "aligned: for fixed windows only, and this is a %s", limit.Name(a))
		return false
	}
	return aligned
}

// numbers reads rate and burst; what is not there stays as it is.
func (d *decoder) numbers(l *limitNodes, n *limit.Numbers) {
	if l.rate != nil {
		n.Rate = d.rate(l.rate, n.Algorithm)
	}
	switch {
	case l.burst == nil:
	case limit.FormOf(n.Algorithm).Burst:
		n.Burst = new(uint64)
		d.number(l.burst, "burst", 1, most, n.Burst)
	default:
		d.Fail(l.burst, "burst: a %s has none, because all of its limit may come at once: leave it out, or use "+
			"algorithm: token-bucket", limit.Name(n.Algorithm))
	}
}

func (d *decoder) rate(n *yaml.Node, a engine.Algorithm) engine.Rate {
	s, ok := d.text(n, "rate")
	if !ok {
		return engine.Rate{}
	}
	r, err := engine.ParseRate(s)
	if err != nil {
		d.Fail(n, "%s", plain(err))
		return r
	}
	if !limit.FormOf(a).Whole {
		return r
	}
	if err := limit.Whole(r); err != nil {
		d.Fail(n, "rate: %v: a %s wants a whole number of requests: %v", r, limit.Name(a), err)
	}
	return r
}

// tiers reads the policies of a rule's tiers and checks each of them.
func (d *decoder) tiers(n *yaml.Node, r *Rule, base limit.Numbers) {
	t := &Tiers{}
	var constants []string
	seen := d.mapping(n, "tiers",
		d.headerField(&t.Header),
		field{"values", func(n *yaml.Node) {
			d.pairs(n, "values", func(key, value *yaml.Node) {
				policy, c, ok := d.tier(key, value, r, base)
				switch name := yamlfile.Target(key).Value; {
				case !ok:
				case c != Counted:
					constants = append(constants, name)
					t.Constants = append(t.Constants, c)
				default:
					t.Values = append(t.Values, name)
					t.Policies = append(t.Policies, policy)
				}
			})
		}},
	)
	if seen == nil {
		return
	}
	d.need(n, seen, "tiers: no %s: want a header and the limits for some of its values", "header", "values")
	if v := seen["values"]; v != nil && yamlfile.Target(v).Kind == yaml.MappingNode && len(yamlfile.Target(v).Content) == 0 {
		d.Fail(v, "tiers: no values")
	}
	if t.Values = append(t.Values, constants...); len(t.Values) == 0 {
		return
	}
	r.Tiers = t
	switch {
	case r.hasPolicy():
		d.check(n, r.Policy, t.Policies...)
	case len(t.Policies) > 0:
		d.check(n, t.Policies[0], t.Policies...)
	}
}

// tier reads one tier and checks it beside the rule's own policy.
func (d *decoder) tier(key, n *yaml.Node, r *Rule, base limit.Numbers) (_ engine.Policy, c Constant, ok bool) {
	what := "tier " + strconv.Quote(yamlfile.Target(key).Value)
	var l limitNodes
	seen := d.mapping(n, what,
		later("rate", &l.rate),
		later("burst", &l.burst),
		later("concurrency", &l.concurrency),
	)
	if seen == nil {
		return engine.Policy{}, Counted, false
	}
	if l.concurrency != nil && !d.besides {
		d.Fail(l.concurrency, "%s: a concurrency, and the rule has none", what)
		return engine.Policy{}, Counted, false
	}
	if len(seen) == 1 && l.concurrency != nil {
		return engine.Policy{}, Counted, false // the rule's own rate
	}
	if len(seen) == 0 {
		d.Fail(n, "%s: neither rate nor burst", what)
		return engine.Policy{}, Counted, false
	}
	before := len(d.Errors)
	if c = constant(l.rate); c != Counted {
		d.noBurst(&l, c)
		return engine.Policy{}, c, len(d.Errors) == before
	}
	if r.Constant != Counted && l.rate == nil {
		d.Fail(n, "%s: no rate, and the rule's own is %v: write one", what, r.Constant)
		return engine.Policy{}, Counted, false
	}
	own := base
	d.numbers(&l, &own)
	if r.Constant != Counted {
		if len(d.Errors) > before {
			return engine.Policy{}, Counted, false
		}
		policy := own.Policy()
		return policy, Counted, d.check(n, policy)
	}
	if len(d.Errors) > before || !r.hasPolicy() || !d.sameRule(&l, what, base, own) {
		return engine.Policy{}, Counted, false
	}
	policy := own.Policy()
	return policy, Counted, d.check(n, r.Policy, policy)
}

// sameRule refuses what differs in a tier and must not.
func (d *decoder) sameRule(l *limitNodes, what string, base, own limit.Numbers) bool {
	switch base.Algorithm {
	case engine.AlgorithmBatchRefill:
		if own.Rate != base.Rate {
			d.Fail(l.rate, "%s: a tier of a %s has the rule's rate, %v, and a burst of its own",
				what, limit.Name(base.Algorithm), base.Rate)
			return false
		}
	case engine.AlgorithmFixedWindow, engine.AlgorithmSlidingWindow, engine.AlgorithmSlidingLog:
		if own.Rate.Period() != base.Rate.Period() {
			d.Fail(l.rate, "%s: a tier of a %s has the rule's period: write the rate as so many in the period of %v",
				what, limit.Name(base.Algorithm), base.Rate)
			return false
		}
	case engine.AlgorithmTokenBucket, engine.AlgorithmConcurrency, engine.NoAlgorithm:
	}
	return true
}

// maxWait is the longest that a request may wait for tokens: a client holds a connection meanwhile.
const maxWait = time.Minute

// checkWait refuses a wait for what cannot be taken ahead.
func (d *decoder) checkWait(n *yaml.Node, r *Rule) {
	if n != nil && r.hasPolicy() && r.Policy.Algorithm() != engine.AlgorithmTokenBucket {
		d.Fail(n, "max_wait: only tokens of a token-bucket can be waited for, and this is a %s: leave it out",
			limit.Name(r.Policy.Algorithm()))
	}
}
