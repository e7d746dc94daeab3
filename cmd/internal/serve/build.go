package serve

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/proxy"
	"github.com/weir-go/weir/cmd/internal/refcount"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits/live"
	"github.com/weir-go/weir/redislimit"
)

// build makes the generation of a file. It takes over parts of the previous generation where possible. The parameter
// changes says what happens to each limiter. If a limiter does not accept its new numbers, build corrects changes.
// After an error nothing has changed.
func (s *Server) build(file *rulefile.File, before *generation, changes *rulefile.Changes,
	a *admin.Admin) (_ *generation, err error) {
	g := &generation{file: file, sharedParts: sharedParts{
		limiters: map[string]*live.Limiter{}, lastCounting: map[string]*rulefile.Rule{},
		stored:  map[string]*refcount.Value[*redislimit.Limiter]{},
		buckets: map[string]*live.Limiter{},
	}}
	if before.handler != nil {
		g.number = before.number + 1
	}
	var oldLimits []ruleLimits
	defer func() {
		if err != nil {
			for _, u := range oldLimits {
				err = errors.Join(err, u.putBack())
			}
			g.close()
		}
	}()
	if err := s.openStore(g, before); err != nil {
		return nil, err
	}
	if oldLimits, err = s.openRedis(g, before, changes); err != nil {
		return nil, err
	}
	changedLimits, err := s.limitersOf(g, before, changes)
	if oldLimits = append(oldLimits, changedLimits...); err != nil {
		return nil, err
	}
	if g.ip, err = rules.ClientIP(file); err != nil {
		return nil, err
	}
	if g.rules, err = rules.Compile(file, g.ip); err != nil {
		return nil, err
	}
	if err := s.readHashes(g, before); err != nil {
		return nil, err
	}
	g.actionRules, g.requests, g.cors = g.newActionRules(), newRequestLog(file, g.ip, s.config.Log), newCORS(file)
	if !file.RedisAlone() { // otherwise there are no requests over HTTP
		if g.meters, err = metersOf(g.rules, &s.tokens, g.ip.Prefix); err != nil {
			return nil, err
		}
		if g.limits, err = s.middleware(g, a); err != nil {
			return nil, err
		}
		g.fields = newFieldsRead(file, g.rules)
		g.handler = s.withActions(g, s.withLimits(g, s.forwardAdmitted(s.routes(g, before))))
	}
	g.pageRules = g.newPageRules()
	s.followHashes(g)
	g.users.Store(1)
	s.generations.Add(1)
	g.onClose = s.generations.Done
	return g, nil
}

// limitersOf puts the limiters of all rules into g. The result oldLimits has the previous limits of every limiter that
// may have changed.
func (s *Server) limitersOf(g, before *generation, changes *rulefile.Changes) (oldLimits []ruleLimits, err error) {
	for i := range g.file.Rules {
		rule := &g.file.Rules[i]
		if rule.Store != nil {
			if err := storedLimiter(g, before, rule); err != nil {
				return oldLimits, err
			}
			continue
		}
		changedLimits, err := s.limiter(g, before, rule, &changes.Rules[i])
		if err != nil {
			return oldLimits, err
		}
		oldLimits = append(oldLimits, changedLimits...)
	}
	return oldLimits, nil
}

// A LimiterError says why the limiter of a rule cannot be made: there is too little memory, or its state file is
// refused.
type LimiterError struct {
	Rule string
	Err  error
}

// Error returns the rule and the reason.
func (e *LimiterError) Error() string { return fmt.Sprintf("rule %s: %v", e.Rule, e.Err) }

// Unwrap returns the reason.
func (e *LimiterError) Unwrap() error { return e.Err }

func (s *Server) middleware(g *generation, a *admin.Admin) (*httplimit.Middleware, error) {
	limits := make([]httplimit.Limit, len(g.rules))
	for i, rule := range g.rules {
		if rule.Quota != nil && rule.Quota.File != "" {
			s.logQuotas(rule)
		}
		limits[i] = g.limitOf(rule)
	}
	options, err := answerOptions(g.file, g.meters)
	if err != nil {
		return nil, err
	}
	if exempt := rules.Exempt(g.file, g.ip); exempt != nil {
		options = append(options, httplimit.Skip(exempt))
	}
	onLimited := g.requests.logRefusal
	if a != nil {
		options = append(options, httplimit.ObserveWith(a))
		onLimited = func(r *http.Request, c httplimit.Check) {
			g.requests.logRefusal(r, c)
			a.Limited(r, c)
		}
	}
	options = append(options, httplimit.OnLimited(onLimited), httplimit.OnError(s.logLimitError), httplimit.Modes(s.modes),
		httplimit.MaxWaiting(g.file.Server.MaxWaiting))
	if s.config.Clock != nil {
		options = append(options, httplimit.Clock(s.config.Clock))
	}
	return httplimit.New(limits, options...)
}

func (s *Server) forwardAdmitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.traffic.allowed.Add(1)
		x := exchangeOf(r)
		if r.URL.Path == "*" { // OPTIONS * is a request about this server (RFC 9110, section 9.3.7)
			x.answeredBy = byWeir
			w.WriteHeader(http.StatusOK)
			return
		}
		x.answeredBy = byUpstream
		next.ServeHTTP(w, r)
		x.isComplete = true // not reached if the answer breaks off, because that panics
	})
}

// routes makes the proxies. Connections to an upstream that both generations have stay open.
func (s *Server) routes(g, before *generation) *routes {
	var upstreams []*proxy.Upstream
	for i := range g.file.Routes {
		upstreams = append(upstreams, g.upstream(&g.file.Routes[i].Upstream))
	}
	if g.file.Upstream != nil {
		upstreams = append(upstreams, g.upstream(g.file.Upstream))
	}
	set, proxies := s.upstreams.Open(before.upstreams, upstreams)
	g.upstreams = set
	rs := &routes{file: g.file}
	for _, p := range proxies {
		rs.handlers = append(rs.handlers, upstreamHandler{p})
	}
	switch routeCount := len(g.file.Routes); {
	case g.file.Upstream != nil:
		rs.handlers, rs.fallback = rs.handlers[:routeCount], rs.handlers[routeCount]
	case g.file.Echo():
		rs.fallback = echo(g.ip)
	}
	return rs
}
