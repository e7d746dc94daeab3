package serve

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/weir-go/weir/cmd/internal/actions"
	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/listen"
	"github.com/weir-go/weir/cmd/internal/metering"
	"github.com/weir-go/weir/cmd/internal/proxy"
	"github.com/weir-go/weir/cmd/internal/refcount"
	"github.com/weir-go/weir/cmd/internal/resp"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits/live"
	"github.com/weir-go/weir/redislimit"
)

// A generation is everything that was made from one rule file. It is closed after its last request.
type generation struct {
	file   *rulefile.File
	number uint64 // from 0
	sharedParts
	front
	redis *resp.Settings // nil if the file has no listener for Redis clients

	hashes      []hash // hashes with limits, which are read at intervals
	hashContext context.Context
	stopHashes  context.CancelFunc // ends the reading of hashes; nil before it begins

	pageRules []admin.Rule // the rules in the form for the administrator's page

	users   atomic.Int64 // requests in progress, plus one while this is the current generation
	onClose func()
}

// sharedParts has the parts of a generation that the previous and the next generation may also use.
type sharedParts struct {
	limiters     map[string]*live.Limiter                        // by the names of rules
	lastCounting map[string]*rulefile.Rule                       // each rule as it was when its limiter counted last
	store        *refcount.Value[*redislimit.Client]             // nil if no rule is in a store
	stored       map[string]*refcount.Value[*redislimit.Limiter] // limiters in the store, by the names of rules
	redisTable   *live.Limiter                                   // nil if the file has no listener for Redis clients
	buckets      map[string]*live.Limiter                        // parts of redisTable that limits have taken over
	upstreams    *proxy.Set                                      // nil before there are any
}

// A front is the chain of handlers from the client to the upstream.
type front struct {
	ip          *httplimit.ClientIP
	rules       []*rules.Rule
	actionRules *actions.Rules // the same rules, for actions
	fields      fieldsRead
	limits      *httplimit.Middleware
	meters      *metering.Meters // for rules whose cost comes from the answer; nil if there are none
	requests    *requestLog
	cors        *cors        // nil if there is none
	handler     http.Handler // the limits, and the routes behind them
}

// enter returns the current generation, or nil if the server has ended. The caller must call leave on the generation.
func (s *Server) enter() *generation {
	for {
		g := s.current.Load()
		for n := g.users.Load(); n > 0; n = g.users.Load() {
			if g.users.CompareAndSwap(n, n+1) {
				return g
			}
		}
		// This generation is closed. If it is still the current one, the server has ended.
		if s.current.Load() == g {
			return nil
		}
	}
}

func (g *generation) leave() {
	switch {
	case g.users.Add(-1) > 0:
	case len(g.stored) > 0: // in the background, because it may call the store, and no request should wait for that
		go g.close()
	default:
		g.close()
	}
}

func (g *generation) close() {
	if g.stopHashes != nil {
		g.stopHashes()
	}
	g.sharedParts.close()
	if g.onClose != nil {
		g.onClose()
	}
}

func (h *sharedParts) close() {
	for _, l := range h.limiters {
		l.Release()
	}
	for _, l := range h.stored {
		l.Release()
	}
	for _, l := range h.buckets {
		l.Release()
	}
	if h.redisTable != nil {
		h.redisTable.Release()
	}
	if h.store != nil { // closed after its limiters
		h.store.Release()
	}
	if h.upstreams != nil {
		h.upstreams.Close()
	}
}

// refuseBeforeRules returns the status and the text of the answer to a request that weir refuses before any rule
// decides, or 0. It also removes the fields of the connection from the request.
func refuseBeforeRules(r *http.Request, f *rulefile.File, fields *fieldsRead) (status int, text string) {
	if strings.EqualFold(r.Method, http.MethodConnect) {
		return http.StatusMethodNotAllowed, "CONNECT opens a tunnel, and weir is a proxy of its upstreams only"
	}
	dropHopByHop(r, f)
	if err := checkTarget(r); err != nil {
		return http.StatusBadRequest, "The request is malformed: " + err.Error()
	}
	if err := fields.check(r); err != nil {
		return http.StatusBadRequest, "The request is ambiguous: " + err.Error()
	}
	return 0, ""
}

// ServeHTTP answers a client.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := s.enter()
	if g == nil {
		panic(http.ErrAbortHandler) // the request came on a connection that is being cut off
	}
	defer g.leave()
	s.traffic.requests.Add(1)
	s.traffic.inFlight.Add(1)
	x := newExchange(w, r)
	w = x
	defer func() { // also runs after a panic of the handler, which cuts off the connection
		s.traffic.inFlight.Add(-1)
		s.traffic.countAnswer(x)
		g.requests.logAnswer(x, r)
	}()
	settings := &g.file.Server
	if x.stream = listen.NewStreamSender(x.ResponseWriter, r, settings.SendTimeout, settings.WriteTimeout); x.stream != nil {
		defer func() {
			if x.bytes > 0 {
				x.stream.Last()
			}
		}()
	}
	// This comes before every answer, because even a body that no handler reads must not take forever.
	x.body = listen.NewBody(w, r, settings.MinBodyRate, settings.ReadTimeout)
	if g.cors.answer(w, r) {
		s.traffic.undecided.Add(1)
		return
	}
	if status, reason := refuseBeforeRules(r, g.file, &g.fields); status != 0 {
		s.traffic.undecided.Add(1)
		fail(w, r, g.file.Response.Body, status, reason)
		return
	}
	g.handler.ServeHTTP(w, r)
}
