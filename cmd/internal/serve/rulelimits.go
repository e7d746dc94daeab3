package serve

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-go/weir/cmd/internal/config"
	"github.com/weir-go/weir/engine"
)

// ruleLimits are the policies that the limiter of a rule had at some time.
type ruleLimits struct {
	rule    string
	limiter *engine.Limiter
	had     []engine.Policy
}

// limitsOf returns those that the limiter of a rule has now. Another process may have changed those in a file.
func limitsOf(rule *config.Rule, l *engine.Limiter) ruleLimits {
	return ruleLimits{rule.Name, l, policiesOf(l, len(rule.TierPolicies())+1)}
}

// policiesOf returns the first n policies of a limiter: its own, and those of tiers.
func policiesOf(l *engine.Limiter, n int) (all []engine.Policy) {
	for tier := range n {
		all = append(all, l.Policy(tier))
	}
	return all
}

// putBack gives the limiter the policies that it had, if it has others. The error is a limitsError.
func (l ruleLimits) putBack() error {
	has := policiesOf(l.limiter, len(l.had))
	if slices.Equal(has, l.had) {
		return nil
	}
	if err := l.limiter.SetPolicy(l.had[0], l.had[1:]...); err != nil {
		return &limitsError{l.rule, has, err}
	}
	return nil
}

// A limitsError says why the limits of a rule could not be put back.
type limitsError struct {
	rule string
	has  []engine.Policy
	err  error
}

// Error names the rule and the limits that it has.
func (e *limitsError) Error() string {
	return fmt.Sprintf("rule %s: the limits in force are %v, and cannot be put back: %v", e.rule, e.has, e.err)
}

// stateLimits returns the limits of all rules with a file.
func (s *Server) stateLimits() (all []ruleLimits) {
	g := s.current.Load()
	for i := range g.file.Rules {
		if rule := &g.file.Rules[i]; rule.State != "" {
			all = append(all, limitsOf(rule, g.limiters[rule.Name].Limiter))
		}
	}
	return all
}

// putBack undoes what a process that was killed has changed of the limits in the files, or was about to change.
func (s *Server) putBack(limits []ruleLimits) (err error) {
	for _, l := range limits {
		l.limiter.Sweep() // completes what it had announced, which would overtake what is put back
		err = errors.Join(err, l.putBack())
	}
	return err
}

// policiesIn returns the policies that a file has, nil if there is no file whose policies could be told.
func policiesIn(path string) []engine.Policy {
	table, err := engine.OpenSharedTable(path)
	if err != nil {
		return nil
	}
	defer table.Close()
	return table.Header().Policies
}
