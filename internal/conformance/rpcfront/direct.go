package rpcfront

import (
	"context"
	"net/netip"
	"sync/atomic"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

// Direct returns a front that calls package rpclimit as the interceptors of a framework do, but without the framework.
// If source is not nil, it runs the cases with a store. The framework's front does not run them: its module does not
// require a store, and an interceptor does not see where a limit is stored. If source is nil, Direct runs the other
// cases, to show that it behaves as the framework's front does.
func Direct(name string, source conformance.SourceFunc) conformance.Front {
	return conformance.Front{
		Name: name, InBubble: InBubble,
		Runs: func(k *conformance.Case) bool { return k.Stored == (source != nil) && !k.Promise },
		Start: func(env *conformance.Env, c conformance.Config) (conformance.Server, error) {
			s := &direct{env: env, limiters: conformance.Limiters{Env: env, Source: source}}
			return s, s.Reload(c)
		},
	}
}

// direct is a server whose limits can change. It is called without a network.
type direct struct {
	env      *conformance.Env
	limiters conformance.Limiters
	current  atomic.Pointer[activeLimits]
}

type activeLimits struct {
	limits []conformance.Limit
	set    *rpclimit.Limits
}

func (s *direct) Reload(c conformance.Config) error {
	set, err := Limits(&s.limiters, c)
	if err == nil {
		s.current.Store(&activeLimits{c.Limits, set})
	}
	return err
}

func (s *direct) Send(ctx context.Context, q conformance.Request) conformance.Answer {
	current := s.current.Load()
	res := current.set.Decide(rpclimit.Call{
		Context: ctx, Method: Method(q.Path), Peer: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Metadata: metadata(Metadata(q)),
	})
	if res.Allowed() {
		return Code(s.serve(ctx, &res, q, current.limits), ctx.Err())
	}
	a := Code(res.Code(), res.Err())
	if retry := res.RetryAfter(); retry != engine.Never {
		a.RetryAfter = retry
	}
	for i := range res.Len() {
		if check := res.Check(i); check.Outcome == limits.Refused {
			a.Refused = append(a.Refused, check.Name())
		}
	}
	return a
}

// serve calls the handler. A handler that panics does not end the server.
func (s *direct) serve(ctx context.Context, res *rpclimit.Result, q conformance.Request, list []conformance.Limit) (code rpclimit.Code) {
	code = rpclimit.Internal // the code if the handler panics
	defer func() {
		_ = recover()
		res.Finish(code)
	}()
	return Serve(res.Context(ctx), s.env, q.ID, list)
}

func (s *direct) Close() {}

type metadata map[string]string

func (m metadata) Values(_ context.Context, name string) ([]string, bool) {
	if value, ok := m[name]; ok {
		return []string{value}, true
	}
	return nil, true
}
