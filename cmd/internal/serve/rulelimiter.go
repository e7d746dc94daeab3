package serve

import (
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/limits/live"
)

// The method limiter puts the limiter of a rule into g. This is the existing limiter if possible, or else a new one.
// The result oldLimits has the previous numbers of every limit that may have changed. This includes limits in a file
// that other processes use.
//
// A rule that counts no request (rate: 0 or rate: unlimited) keeps its limiter, because it may count again later.
func (s *Server) limiter(g, before *generation, rule *rulefile.Rule, change *rulefile.RuleChange) (oldLimits []ruleLimits, err error) {
	old := before.limiters[rule.Name]
	g.lastCounting[rule.Name] = rule
	if oldRule := before.lastCounting[rule.Name]; old != nil && change.Limit != rulefile.Replace {
		switch {
		case !rule.Counts():
			g.limiters[rule.Name], g.lastCounting[rule.Name] = old.Acquire(), oldRule
			return nil, nil
		case oldRule.Counts():
			otherKeys, rekeyed := change.ChangedKeys, change.Rekeyed
			*change = rulefile.Compare(oldRule, rule)
			change.ChangedKeys, change.Rekeyed = otherKeys, rekeyed
		default:
			change.Limit = rulefile.Add
		}
		if change.Limit == rulefile.Keep || change.Limit == rulefile.Adjust {
			if oldLimits, err = adjust(old, rule, change); err == nil {
				g.limiters[rule.Name] = old.Acquire()
				return oldLimits, nil
			}
			if rule.State != "" { // a new limiter would use the same file
				return nil, &LimiterError{rule.Name, err}
			}
			change.Limit, change.Reason = rulefile.Carry, "the limiter does not accept the new numbers: "+err.Error()
		}
	}
	oldPolicies := policiesIn(rule.State)
	limiter, err := s.newLimiter(rule)
	if err != nil {
		return nil, &LimiterError{rule.Name, err}
	}
	g.limiters[rule.Name] = limiter
	if oldPolicies != nil {
		oldLimits = []ruleLimits{{rule.Name, limiter.Limiter, oldPolicies}}
	}
	if change.Limit == rulefile.Carry {
		if err := old.HandOver(limiter); err != nil {
			return nil, &LimiterError{rule.Name, err}
		}
	}
	return oldLimits, nil
}

func adjust(l *live.Limiter, rule *rulefile.Rule, change *rulefile.RuleChange) ([]ruleLimits, error) {
	limits := limitsOf(rule, l)
	change.Correct(rule, limits.policies)
	if change.Limit == rulefile.Keep {
		return nil, nil
	}
	return []ruleLimits{limits}, limits.limiter.SetPolicy(rule.Policy, rule.TierPolicies()...)
}
