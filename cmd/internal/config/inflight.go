package config

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
)

// inFlightName is what the name of a rule with a rate and a concurrency gets for the latter: that is a rule of its own.
const inFlightName = ".concurrency"

// remembered is for how long a request in flight is certainly counted: a server knows when each of its requests is
// over, so none is to be forgotten before.
const remembered = 365 * 24 * time.Hour

// IsInFlight reports whether the rule is about how many requests are in flight at a time.
func (r *Rule) IsInFlight() bool { return r.Policy.Algorithm() == engine.AlgorithmConcurrency }

// alone reads the limit of a rule that has a concurrency and no rate.
func (d *decoder) alone(r *Rule, l *limitNodes, tiers *yaml.Node) {
	for _, n := range []struct {
		key  string
		node *yaml.Node
	}{{"algorithm", l.algorithm}, {"burst", l.burst}, {"aligned", l.aligned}} {
		if n.node != nil {
			d.Fail(n.node, "%s: it is for a rate, and the rule has none: leave it out", n.key)
		}
	}
	d.besides = false
	d.inFlight(r, l.concurrency, tiers)
}

// inFlight reads how many requests may be in flight, and for which tiers it is how many.
func (d *decoder) inFlight(r *Rule, n, tiers *yaml.Node) {
	var limit uint64
	if !d.number(n, "concurrency", 1, atomicbucket.MaxInFlight, &limit) {
		return
	}
	if d.concurrent == nil {
		d.concurrent = n
	}
	r.Policy = engine.Concurrency(limit, remembered)
	if tiers != nil {
		d.tiersInFlight(tiers, r)
	}
}

// inFlightBeside returns the rule for the concurrency of one that has a rate, too: about the same requests and keys.
func (d *decoder) inFlightBeside(r *Rule, l *limitNodes, tiers *yaml.Node) *Rule {
	if len(r.Name)+len(inFlightName) > maxName {
		d.Fail(l.concurrency, "concurrency: the name of the rule, with %s for its concurrency, has more than %d characters",
			inFlightName, maxName)
		return nil
	}
	own := NewRule(r.Name + inFlightName)
	own.Match, own.Key, own.Shadow, own.Refusal = r.Match, r.Key, r.Shadow, r.Refusal
	own.MaxKeys, own.Overflow, own.Line = r.MaxKeys, r.Overflow, r.Line
	d.inFlight(&own, l.concurrency, tiers)
	return &own
}

// tiersInFlight reads the concurrencies of tiers. Beside a rate a tier need not have one.
func (d *decoder) tiersInFlight(n *yaml.Node, r *Rule) {
	t := &Tiers{}
	d.mapping(n, "tiers",
		d.headerField(&t.Header),
		field{"values", func(n *yaml.Node) {
			d.pairs(n, "values", func(key, value *yaml.Node) {
				var l limitNodes
				what := fmt.Sprintf("tier %q", yamlfile.Target(key).Value)
				if d.mapping(value, what, later("rate", &l.rate), later("burst", &l.burst), later("concurrency", &l.concurrency)) == nil {
					return
				}
				if l.concurrency == nil {
					if !d.besides {
						d.Fail(value, "%s: no concurrency, and the rule has no rate", what)
					}
					return
				}
				var limit uint64
				if d.number(l.concurrency, "concurrency", 1, atomicbucket.MaxInFlight, &limit) {
					t.Values = append(t.Values, yamlfile.Target(key).Value)
					t.Policies = append(t.Policies, engine.Concurrency(limit, remembered))
				}
			})
		}},
	)
	if len(t.Values) > 0 {
		r.Tiers = t
		d.check(n, r.Policy, t.Policies...)
	}
}

// checkInFlight refuses a concurrency where weir cannot know when a request is over, and what is no use to it.
func (d *decoder) checkInFlight(f *File) {
	if d.concurrent != nil && f.Decide != nil {
		d.Fail(d.concurrent, "concurrency: a proxy that asks at decide does not say when a request is over: leave out decide, or limit its requests in the proxy")
	}
}

// describePolicy is a policy as a text for people.
func describePolicy(p engine.Policy) string {
	if p.Algorithm() == engine.AlgorithmConcurrency {
		return fmt.Sprintf("%d at a time", p.Limit())
	}
	return p.String()
}
