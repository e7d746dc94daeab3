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
	redis *resp.Settings // nil where no client of Redis is served

	hashes    []hash // of limits, which are read again
	following context.Context
	follow    context.CancelFunc // ends that; nil before it begins

	shown []admin.Rule // to the administrator

	users atomic.Int64 // requests under way, and one for being the present generation
	ended func()
}

// held is what a generation may share with the generations before and after it.
type held struct {
	limiters   map[string]*live.Limiter                        // by the name of the rule
	counted    map[string]*rulefile.Rule                       // of limiters: the rule when it last counted requests
	store      *refcount.Value[*redislimit.Client]             // nil where no rule is kept in one
	stored     map[string]*refcount.Value[*redislimit.Limiter] // those that are, by the name of the rule
	redisTable *live.Limiter                                   // nil where no client of Redis is served
	buckets    map[string]*live.Limiter                        // of redisTable, by limit, which the next one took over
	upstreams  *proxy.Set                                      // nil before there are any
}

// A front is what a request passes, from its client to the handler behind the limits.
type front struct {
	ip       *httplimit.ClientIP
	rules    []*rules.Rule
	judged   *actions.Rules // the same, for actions
	read     fieldsRead
	limits   *httplimit.Middleware
	meters   *metering.Meters // of rules whose cost the answer tells; nil for none
	requests *requestLog
	cors     *cors        // nil for none
	handler  http.Handler // the limits, and the routes behind them
}

// enter returns the present generation, which the caller leaves; nil when the server has ended.
func (s *Server) enter() *generation {
	for {
		g := s.current.Load()
		for n := g.users.Load(); n > 0; n = g.users.Load() {
			if g.users.CompareAndSwap(n, n+1) {
				return g
			}
		}
		// It is closed. Unless another one has taken its place there will be none.
		if s.current.Load() == g {
			return nil
		}
	}
}

func (g *generation) leave() {
	switch {
	case g.users.Add(-1) > 0:
	case len(g.stored) > 0: // it may take a question to the store, which no request waits for
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
	defer func() { // also if the handler panics, which cuts the connection off
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
	// Before any answer: a body that is not read must not take for ever either.
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
