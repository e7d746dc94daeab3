// Package httpfront runs the cases of package conformance against package httplimit, as a middleware of a real HTTP
// server.
package httpfront

import (
	"net/http"
	"sync/atomic"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/internal/conformance/overhttp"
	"github.com/weir-go/weir/limits"
)

// Front returns the front. If source is not nil, the front runs only the cases with a store. Otherwise it runs only the
// other cases.
func Front(source conformance.SourceFunc) conformance.Front {
	return conformance.Front{
		Name:     "httplimit",
		InBubble: func(k *conformance.Case) bool { return !k.Stored && !k.Files },
		Runs:     func(k *conformance.Case) bool { return k.Stored == (source != nil) && !k.Promise },
		Start: func(env *conformance.Env, c conformance.Config) (conformance.Server, error) {
			s := &server{env: env, limiters: conformance.Limiters{Env: env, Source: source}}
			if err := s.Reload(c); err != nil {
				return nil, err
			}
			s.Client = overhttp.Serve(env, http.HandlerFunc(s.handle))
			return s, nil
		},
	}
}

type server struct {
	*overhttp.Client
	env      *conformance.Env
	limiters conformance.Limiters
	handler  atomic.Pointer[http.Handler]
}

func (s *server) handle(w http.ResponseWriter, r *http.Request) { (*s.handler.Load()).ServeHTTP(w, r) }

// Reload makes a middleware with the limits. Start also calls Reload, to make the first middleware.
func (s *server) Reload(c conformance.Config) error {
	list := make([]httplimit.Limit, len(c.Limits))
	for i, l := range c.Limits {
		var err error
		if list[i], err = s.limit(c, l); err != nil {
			return err
		}
	}
	m, err := httplimit.New(list)
	if err != nil {
		return err
	}
	if err := s.limiters.Commit(); err != nil {
		return err
	}
	answer := overhttp.Backend(s.env)
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := overhttp.Request(r)
		answer.ServeHTTP(w, r)
		for _, l := range c.Limits {
			if l.Hold {
				limits.HoldFrom(r.Context(), l.Name).Settle(q.Actual)
			}
		}
	}))
	s.handler.Store(&h)
	return nil
}

func (s *server) limit(c conformance.Config, l conformance.Limit) (result httplimit.Limit, err error) {
	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("127.0.0.1"), httplimit.TrustUnixSocket(), httplimit.IPv6Prefix(l.IPv6()))
	if err != nil {
		return result, err
	}
	if result, err = conformance.LimitOf[*http.Request](&s.limiters, c, l); err != nil {
		return result, err
	}
	result.Key = ip.Key
	switch {
	case l.Spread:
		result.Key = nil
	case l.Key == conformance.Everyone:
		result.Key = httplimit.Everyone
	case l.Key == conformance.User:
		if result.Key, err = httplimit.Header(overhttp.User, nil); err != nil {
			return result, err
		}
	}
	if l.Path != "" {
		result.Match = func(r *http.Request) bool { return r.URL.Path == l.Path }
	}
	if l.Cost {
		result.Cost = func(r *http.Request) uint64 { return overhttp.Request(r).Takes() }
	}
	if len(l.Tiers) > 0 {
		result.Tier = func(r *http.Request) int { return l.Tier(r.Header.Get(overhttp.Tier)) }
	}
	if l.ByQuota() {
		result.Quota = func(r *http.Request) (engine.Policy, error) { return l.Under(overhttp.Request(r)), nil }
	}
	switch l.Refund {
	case conformance.Good:
		result.Refund = httplimit.RefundStatus(200, 299)
	case conformance.Bad:
		result.Refund = httplimit.RefundStatus(500, 599)
	}
	return result, nil
}
