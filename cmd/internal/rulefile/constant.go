package rulefile

import (
	"fmt"

	"github.com/weir-go/weir/engine"
)

// A Constant is a rate with the same decision for every request, so that requests need not be counted.
type Constant uint8

const (
	Counted   Constant = iota // not a constant; requests are counted by a policy
	Denied                    // rate: 0
	Unlimited                 // rate: unlimited
)

var constants = [...]string{"", "0", "unlimited"}

// String returns the rate as in a file.
func (c Constant) String() string { return constants[c] }

func (c Constant) describe() string {
	if c == Denied {
		return "none: every request is refused"
	}
	return c.String()
}

// constantOf returns the Constant of a policy, or Counted.
func constantOf(p engine.Policy) Constant {
	switch p {
	case engine.Blocked():
		return Denied
	case engine.Unlimited():
		return Unlimited
	}
	return Counted
}

// ConstantOf returns the Constant of a tier, or Counted. tier is a number from [Tiers.TierOf].
func (r *Rule) ConstantOf(tier int) Constant {
	if tier == 0 {
		return r.Constant
	}
	if i := tier - 1 - len(r.Tiers.Policies); i >= 0 {
		return r.Tiers.Constants[i]
	}
	return Counted
}

// PolicyIn returns the policy of a tier.
func (r *Rule) PolicyIn(tier int) engine.Policy {
	switch c := r.ConstantOf(tier); {
	case c == Denied:
		return engine.Blocked()
	case c == Unlimited:
		return engine.Unlimited()
	case tier == 0:
		return r.Policy
	}
	return r.Tiers.Policies[tier-1]
}

// OwnLimit returns, as text, the limit of requests that have no tier.
func (r *Rule) OwnLimit() string {
	if r.Constant != Counted {
		return r.Constant.describe()
	}
	return describePolicy(r.Policy)
}

// tierLimit returns, as text, the limit of the tier with the i-th value.
func (r *Rule) tierLimit(i int) string {
	if c := r.ConstantOf(i + 1); c != Counted {
		return c.describe()
	}
	return describePolicy(r.Tiers.Policies[i])
}

func (r *Rule) tierLines() (lines []string) {
	if r.Tiers == nil {
		return nil
	}
	for i, value := range r.Tiers.Values {
		lines = append(lines, fmt.Sprintf("%s for %s: %s", r.tierLimit(i), r.Tiers.Header, value))
	}
	return lines
}

// LimitIn returns the limit of a tier as text, together with the header value that selects the tier.
func (r *Rule) LimitIn(tier int) string {
	if tier == 0 {
		return r.OwnLimit()
	}
	return fmt.Sprintf("%s for %s: %s", r.tierLimit(tier-1), r.Tiers.Header, r.Tiers.Values[tier-1])
}

// Counts reports whether the rule counts any requests.
func (r *Rule) Counts() bool {
	return r.Constant == Counted || r.Quota != nil || r.Tiers != nil && len(r.Tiers.Policies) > 0
}

// fillConstant sets a policy if the rule's own rate is a constant. Such a policy counts no request, but a limiter needs
// a policy that fits the tiers and plans. So it is the policy of a tier or plan that counts requests, or else the
// smallest policy.
func (r *Rule) fillConstant() {
	switch {
	case r.Quota != nil:
		for _, p := range r.Quota.Plans {
			if constantOf(p.Policy) == Counted {
				r.Policy = p.Policy
				return
			}
		}
	case r.Counts():
		r.Policy = r.Tiers.Policies[0]
		return
	}
	r.Policy, r.MaxKeys = engine.TokenBucket(engine.PerSecond(1), 1), 1
}
