package config

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
)

// A Constant is a rate that needs no counting.
type Constant uint8

// What Constant can be.
const (
	Counted   Constant = iota // none: the limit is a policy
	Denied                    // rate: 0
	Unlimited                 // rate: unlimited
)

var constants = [...]string{"", "0", "unlimited"}

// String returns the rate as a file has it.
func (c Constant) String() string { return constants[c] }

// describe says what becomes of requests, for people.
func (c Constant) describe() string {
	if c == Denied {
		return "none: every request is refused"
	}
	return c.String()
}

// constant reads a rate that is a constant; Counted for any other value.
func constant(n *yaml.Node) Constant {
	if n != nil {
		for c, word := range constants[1:] {
			if v := yamlfile.Target(n); v.Kind == yaml.ScalarNode && v.Value == word {
				return Constant(c + 1)
			}
		}
	}
	return Counted
}

// ConstantOf returns what a tier is if its requests are not counted: see [Tiers.Of].
func (r *Rule) ConstantOf(tier int) Constant {
	if tier == 0 {
		return r.Constant
	}
	if i := tier - 1 - len(r.Tiers.Policies); i >= 0 {
		return r.Tiers.Constants[i]
	}
	return Counted
}

// OwnLimit returns the limit of requests in no tier, as a text.
func (r *Rule) OwnLimit() string {
	if r.Constant != Counted {
		return r.Constant.describe()
	}
	return describePolicy(r.Policy)
}

// tierLimit returns the limit of the i-th value of the tiers, as a text.
func (r *Rule) tierLimit(i int) string {
	if c := r.ConstantOf(i + 1); c != Counted {
		return c.describe()
	}
	return describePolicy(r.Tiers.Policies[i])
}

// LimitIn returns the limit of a tier as a text, with the value by which a request is in it.
func (r *Rule) LimitIn(tier int) string {
	if tier == 0 {
		return r.OwnLimit()
	}
	return fmt.Sprintf("%s for %s: %s", r.tierLimit(tier-1), r.Tiers.Header, r.Tiers.Values[tier-1])
}

// Counts reports whether the rule counts any request at all.
func (r *Rule) Counts() bool { return r.Constant == Counted || len(r.TierPolicies()) > 0 }

// fillConstant gives a rule whose own rate is a constant the policy that its limiter is made with. No request is
// counted by it, but a limiter has one: that of a tier, which suits the others, or else the least.
func (r *Rule) fillConstant() {
	if r.Counts() {
		r.Policy = r.Tiers.Policies[0]
		return
	}
	r.Policy, r.MaxKeys = engine.TokenBucket(engine.PerSecond(1), 1), 1
}

// noBurst refuses what a constant rate has no use for.
func (d *decoder) noBurst(l *limitNodes, c Constant) {
	if l.burst != nil {
		d.Fail(l.burst, "burst: a rate of %v has none: leave it out", c)
	}
	if l.aligned != nil {
		d.Fail(l.aligned, "aligned: a rate of %v has no window: leave it out", c)
	}
}

// whose names whose limit a policy is, in a message about one of them.
func (r *Rule) whose(tier int) string {
	if tier == 0 {
		return ""
	}
	return " of tier " + strconv.Quote(r.Tiers.Values[tier-1])
}
