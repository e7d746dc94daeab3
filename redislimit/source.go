package redislimit

import (
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

// Source returns the limiter as what decides a limit of packages limits, httplimit and rpclimit, quotas included. It
// asks for one key at a time.
func (l *Limiter) Source() limits.Source {
	s, err := limits.NewSource(l, l.policy, func(p engine.Policy) (limits.Backend, error) { return l.Quota(p) })
	if err != nil {
		panic("redislimit: Source: " + err.Error()) // cannot happen: l is not nil
	}
	return s
}
