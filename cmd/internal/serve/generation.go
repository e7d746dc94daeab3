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

// A generation is everything that was made from one rule file. It exists until its last request has been answered.
type generation struct {
	file   *rulefile.File
	number uint64 // from 0
	held
	front
	redis *resp.Settings // nil if no Redis clients are served

	hashes    []hash // hashes of limits, which are read again and again
	following context.Context
	follow    context.CancelFunc // ends the reading of hashes; nil before it begins

	shown []admin.Rule // to the administrator

	users atomic.Int64 // requests in progress, plus one while it is the current generation
	ended func()
}

// held has the values that a generation may share with the generations before and after it.
type held struct {
	limiters   map[string]*live.Limiter                        // by the name of the rule
	counted    map[string]*rulefile.Rule                       // the rule when its limiter last counted
	store      *refcount.Value[*redislimit.Client]             // nil if no rule is in a store
	stored     map[string]*refcount.Value[*redislimit.Limiter] // the limiters in the store, by the name of the rule
	redisTable *live.Limiter                                   // nil if no Redis clients are served
	buckets    map[string]*live.Limiter                        // parts of redisTable taken over, by limit
	upstreams  *proxy.Set                                      // nil before there are any
}

// A front is the chain through which a request passes, from its client to the handler behind the limits.
type front struct {
	ip       *httplimit.ClientIP
	rules    []*rules.Rule
	judged   *actions.Rules // the same, for actions
	read     fieldsRead
	limits   *httplimit.Middleware
	meters   *metering.Meters // of rules whose cost comes from the answer; nil for none
	requests *requestLog
	cors     *cors        // nil for none
	handler  http.Handler // the limits, and the routes behind them
}

// enter returns the current generation; nil when the server has ended. The caller must leave it.
func (s *Server) enter() *generation {
	for {
		g := s.current.Load()
		for n := g.users.Load(); n > 0; n = g.users.Load() {
			if g.users.CompareAndSwap(n, n+1) {
				return g
			}
		}
		// The generation is closed. If no other has replaced it, the server has ended.
		if s.current.Load() == g {
			return nil
		}
	}
}

func (g *generation) leave() {
	switch {
	case g.users.Add(-1) > 0:
	case len(g.stored) > 0: // it may call the store, and no request should wait for that
		go g.close()
	default:
		g.close()
	}
}

func (g *generation) close() {
	if g.follow != nil {
		g.follow()
	}
	g.held.close()
	if g.ended != nil {
		g.ended()
	}
}

func (h *held) close() {
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
	if h.store != nil { // after its limiters
		h.store.Release()
	}
	if h.upstreams != nil {
		h.upstreams.Close()
	}
}

// ServeHTTP answers a client.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := s.enter()
	if g == nil {
		panic(http.ErrAbortHandler) // a request on a connection that is being cut off
	}
	defer g.leave()
	s.traffic.requests.Add(1)
	s.traffic.inFlight.Add(1)
	x := newExchange(w, r)
	w = x
	defer func() { // also after a panic of the handler, which cuts the connection off
		s.traffic.inFlight.Add(-1)
		s.traffic.ended(x)
		g.requests.answered(x, r)
	}()
	settings := &g.file.Server
	if x.stream = listen.NewStreamSender(x.ResponseWriter, r, settings.SendTimeout, settings.WriteTimeout); x.stream != nil {
		defer func() {
			if x.bytes > 0 {
				x.stream.Last()
			}
		}()
	}
	// Before any answer, because a body that is not read must not take forever either.
	x.body = listen.NewBody(w, r, settings.MinBodyRate, settings.ReadTimeout)
	if g.cors.answer(w, r) {
		return
	}
	if strings.EqualFold(r.Method, http.MethodConnect) {
		fail(w, r, g.file.Response.Body, http.StatusMethodNotAllowed, "CONNECT opens a tunnel, and weir is a proxy of "+
			"its upstreams only")
		return
	}
	dropPerHop(r, g.file)
	if err := checkTarget(r); err != nil {
		fail(w, r, g.file.Response.Body, http.StatusBadRequest, "The request is malformed: "+err.Error())
		return
	}
	if err := g.read.check(r); err != nil {
		fail(w, r, g.file.Response.Body, http.StatusBadRequest, "The request is ambiguous: "+err.Error())
		return
	}
	g.handler.ServeHTTP(w, r)
}
