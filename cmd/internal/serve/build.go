package serve

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/config"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits/live"
	"github.com/weir-go/weir/redislimit"
)

// build makes the generation of a file. What it can use of the one before it takes over, and
// changes says what becomes of the limiters; it is corrected where a limiter does not take the new numbers
// after all. On an error everything is as before.
func (s *Server) build(file *config.File, before *generation, changes *config.Changes,
	a *admin.Admin) (_ *generation, err error) {
	g := &generation{
		file:       file,
		limiters:   map[string]*live.Limiter{},
		counted:    map[string]*config.Rule{},
		stored:     map[string]*refcounted[*redislimit.Limiter]{},
		transports: map[transportKey]*refcounted[*http.Transport]{},
		pools:      map[poolKey]*refcounted[*pool]{},
	}
	if before.handler != nil {
		g.number = before.number + 1
	}
	var undo []ruleLimits
	defer func() {
		if err != nil {
			for _, u := range undo {
				err = errors.Join(err, u.putBack())
			}
			g.close()
		}
	}()
	if err := s.openStore(g, before); err != nil {
		return nil, err
	}
	if err := s.openRedis(g, before, changes); err != nil {
		return nil, err
	}
	for i := range file.Rules {
		if file.Rules[i].Store != nil {
			if err := storedLimiter(g, before, &file.Rules[i]); err != nil {
				return nil, err
			}
			continue
		}
		u, err := s.limiter(g, before, &file.Rules[i], &changes.Rules[i])
		if err != nil {
			return nil, err
		}
		undo = append(undo, u...)
	}
	if g.ip, err = rules.ClientIP(file); err != nil {
		return nil, err
	}
	if g.rules, err = rules.Compile(file, g.ip); err != nil {
		return nil, err
	}
	g.requests, g.cors = newRequestLog(file, g.ip, s.config.Log), newCORS(file)
	if !file.RedisAlone() { // nothing comes over HTTP then
		if g.limits, err = s.middleware(g, a); err != nil {
			return nil, err
		}
		g.read = newFieldsRead(file, g.rules)
		g.handler = g.limits.Handler(s.admitted(s.routes(g, before)))
	}
	g.shown = g.shownRules()
	g.users.Store(1)
	s.generations.Add(1)
	g.ended = s.generations.Done
	return g, nil
}

// A LimiterError says why the limiter of a rule cannot be made: there is not the memory, or its file is refused.
type LimiterError struct {
	Rule string
	Err  error
}

// Error names the rule and what is wrong.
func (e *LimiterError) Error() string { return fmt.Sprintf("rule %s: %v", e.Rule, e.Err) }

// Unwrap returns what is wrong.
func (e *LimiterError) Unwrap() error { return e.Err }

// middleware makes the limits of all rules.
func (s *Server) middleware(g *generation, a *admin.Admin) (*httplimit.Middleware, error) {
	limits := make([]httplimit.Limit, len(g.rules))
	for i, rule := range g.rules {
		limits[i] = g.limitOf(rule)
	}
	options, err := answerOptions(g.file)
	if err != nil {
		return nil, err
	}
	if exempt := rules.Exempt(g.file, g.ip); exempt != nil {
		options = append(options, httplimit.Skip(exempt))
	}
	onLimited := g.requests.refused
	if a != nil {
		options = append(options, httplimit.ObserveWith(a))
		onLimited = func(r *http.Request, c httplimit.Check) {
			g.requests.refused(r, c)
			a.Limited(r, c)
		}
	}
	options = append(options, httplimit.OnLimited(onLimited), httplimit.MaxWaiting(g.file.Server.MaxWaiting))
	if s.config.Clock != nil {
		options = append(options, httplimit.Clock(s.config.Clock))
	}
	return httplimit.New(limits, options...)
}

// admitted counts what comes through the limits.
func (s *Server) admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.traffic.allowed.Add(1)
		x := exchangeOf(r)
		if r.URL.Path == "*" { // of OPTIONS: it is about the server that was asked (RFC 9110, section 9.3.7)
			x.by = byWeir
			w.WriteHeader(http.StatusOK)
			return
		}
		x.by = byUpstream
		next.ServeHTTP(w, r)
	})
}

// routes makes the proxies. Connections to upstreams that stay the same stay open.
func (s *Server) routes(g, before *generation) *routes {
	rs := &routes{file: g.file}
	for i := range g.file.Routes {
		rs.routed = append(rs.routed, s.proxy(g, before, &g.file.Routes[i].Upstream))
	}
	switch {
	case g.file.Upstream != nil:
		rs.fallback = s.proxy(g, before, g.file.Upstream)
	case g.file.Echo():
		rs.fallback = echo(g.ip)
	}
	return rs
}

func (s *Server) proxy(g, before *generation, u *config.Upstream) http.Handler {
	key := poolOf(u)
	members := make([]*member, len(u.Targets))
	for i, t := range u.Targets { // also for a pool that there is: the generation holds its connections
		name := t.String()
		members[i] = &member{
			Target: t, name: name, transport: s.transport(g, before, transportOf(u, t)),
			seconds: s.traffic.header.WithLabelValues(name),
		}
	}
	if g.pools[key] == nil {
		if p := before.pools[key]; p != nil {
			g.pools[key] = p.acquire()
		} else {
			g.pools[key] = newRefcounted(newPool(u, members, s.now, s.config.Log), (*pool).close)
		}
	}
	p := newProxy(u, g.pools[key].value, g.file, g.ip, s.traffic, s.config.Log)
	if u.IgnoreAbort {
		p.server, p.longest = s.base, u.ResponseTimeout
	}
	return p
}

// transport returns the connections to a server: the present ones, or new ones.
func (s *Server) transport(g, before *generation, key transportKey) *http.Transport {
	if g.transports[key] == nil {
		if t := before.transports[key]; t != nil {
			g.transports[key] = t.acquire()
		} else {
			g.transports[key] = newRefcounted(key.newTransport(&s.upstreams), (*http.Transport).CloseIdleConnections)
		}
	}
	return g.transports[key].value
}

// now is the time by which servers of upstreams are left out.
func (s *Server) now() time.Time {
	if s.config.Clock != nil {
		return s.config.Clock()
	}
	return time.Now()
}
