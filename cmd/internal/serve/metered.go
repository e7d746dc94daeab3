package serve

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/weir-go/weir/cmd/internal/metering"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/httplimit"
)

// metersOf returns the meters of all rules whose cost comes from the answer, or nil if there are none. The states have
// what meters have learned and counted, also before a reload. The function client returns the client of a request.
func metersOf(list []*rules.Rule, states *metering.States, client func(*http.Request) netip.Prefix) (*metering.Meters, error) {
	var meters []*metering.Meter
	for _, rule := range list {
		if rule.Tokens == nil {
			continue
		}
		m, err := metering.NewMeter(rule.Rule, rule.Limit().Match, states)
		if err != nil {
			return nil, err
		}
		meters = append(meters, m)
	}
	if meters == nil {
		return nil, nil
	}
	return metering.NewMeters(meters, states, client), nil
}

// withLimits returns a handler that applies the limits. If rules have meters, it reads the request before the limits
// decide. It settles the cost when the answer reports it.
func (s *Server) withLimits(g *generation, next http.Handler) http.Handler {
	limitsHandler := g.limits.Handler(next)
	if g.meters == nil {
		return limitsHandler
	}
	exempt, now := rules.Exempt(g.file, g.ip), s.config.Clock
	if now == nil {
		now = time.Now
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if exempt != nil && exempt(r) || s.isExempt(r) {
			limitsHandler.ServeHTTP(w, r)
			return
		}
		r, done, err := g.meters.Read(r)
		if err != nil {
			s.traffic.undecided.Add(1)
			s.warnOfBodies(g, r, err)
			w.Header().Set("Retry-After", "1")
			fail(w, r, g.file.Response.Body, http.StatusServiceUnavailable, "Too many bodies of requests are being read")
			return
		}
		defer done()
		x := exchangeOf(r)
		serveMetered(w, r, g.limits, g.meters, s.life.base, now(), next.ServeHTTP, func() metering.Settled {
			isOurs := x.answeredBy == byWeir
			return metering.Settled{Complete: x.isComplete && !isOurs, Reached: !isOurs || x.reachedUpstream}
		})
	})
}

// serveMetered decides a request that the meters have read, and answers it or passes it to the function next. See
// [metering.Meters.Serve] for base and ended.
func serveMetered(w http.ResponseWriter, r *http.Request, limits *httplimit.Middleware, meters *metering.Meters, base context.Context,
	now time.Time, next http.HandlerFunc, ended func() metering.Settled) {
	res := limits.Decide(r)
	meters.WriteFields(w.Header(), &res, now)
	if !res.Allowed() {
		meters.Refused(&res)
		res.Refuse(w, r)
		return
	}
	res.Serve(w, r, func(w http.ResponseWriter, r *http.Request) int {
		meters.Serve(w, r, &res, base, next, ended)
		return 0
	})
}

// warnOfBodies logs why there is no room for the body of a request.
func (s *Server) warnOfBodies(g *generation, r *http.Request, reason error) {
	text := "bodies of requests take all the memory for bodies: further requests are answered 503"
	if errors.Is(reason, metering.ErrShare) {
		text = "the bodies of one client take its share of the memory for bodies: its further requests are answered 503"
	}
	s.config.Log.Warn(text, "client", g.ip.Prefix(r).String())
}
