package serve

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/live"
)

// ruleLimits has the policies that a rule's limiter had at some time.
type ruleLimits struct {
	rule     string
	limiter  adjustable
	policies []engine.Policy
}

// An adjustable has policies that can be changed.
type adjustable interface {
	Policy(tier int) engine.Policy
	SetPolicy(p engine.Policy, tiers ...engine.Policy) error
}

// A oneBucket adapts an [engine.Spread] to the interface adjustable. It has no tiers.
type oneBucket struct{ *engine.Spread }

func (b oneBucket) Policy(int) engine.Policy { return b.Spread.Policy() }

func (b oneBucket) SetPolicy(p engine.Policy, _ ...engine.Policy) error { return b.Spread.SetPolicy(p) }

func adjustableOf(l *live.Limiter) adjustable {
	if l.Spread != nil {
		return oneBucket{l.Spread}
	}
	return l.Limiter
}

// limitsOf returns the current policies of a rule's limiter. They may differ from the rule, because another process may
// have changed them in a file.
func limitsOf(rule *rulefile.Rule, l *live.Limiter) ruleLimits {
	limiter := adjustableOf(l)
	return ruleLimits{rule.Name, limiter, policiesOf(limiter, len(rule.TierPolicies())+1)}
}

// policiesOf returns the first n policies of a limiter: first the limiter's own policy, and then the policies of its
// tiers.
func policiesOf(l adjustable, n int) (policies []engine.Policy) {
	for tier := range n {
		policies = append(policies, l.Policy(tier))
	}
	return policies
}

// putBack restores the policies if the limiter now has others. Its error is a limitsError.
func (l ruleLimits) putBack() error {
	active := policiesOf(l.limiter, len(l.policies))
	if slices.Equal(active, l.policies) {
		return nil
	}
	if err := l.limiter.SetPolicy(l.policies[0], l.policies[1:]...); err != nil {
		return &limitsError{l.rule, active, err}
	}
	return nil
}

// A limitsError says why the limits of a rule could not be restored.
type limitsError struct {
	rule   string
	active []engine.Policy
	err    error
}

func (e *limitsError) Error() string {
	return fmt.Sprintf("rule %s: the active limits are %v, and the previous ones cannot be restored: %v", e.rule, e.active, e.err)
}

func (s *Server) stateLimits() (list []ruleLimits) {
	g := s.current.Load()
	for i := range g.file.Rules {
		if rule := &g.file.Rules[i]; rule.State != "" {
			list = append(list, limitsOf(rule, g.limiters[rule.Name]))
		}
	}
	return list
}

// putBack restores the limits in files. A process that was killed may have changed these limits, or may have announced
// a change that is not complete.
func (s *Server) putBack(limits []ruleLimits) (err error) {
	for _, l := range limits {
		if limiter, ok := l.limiter.(*engine.Limiter); ok {
			limiter.Sweep() // completes an announced change, which would otherwise replace the restored limits later
		}
		err = errors.Join(err, l.putBack())
	}
	return err
}

// policiesIn returns the policies in a file, or nil if the file cannot be read.
func policiesIn(path string) []engine.Policy {
	table, _ := engine.ReadShared(path)
	return table.Policies
}
