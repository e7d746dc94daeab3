package measure

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// These handlers are subjects of the everyday row: without middleware, with weir's middleware, and with the middlewares
// of the peers.
const (
	HandlerAlone = "handler alone"
	WeirHandler  = "weir, httplimit middleware"
)

func handlers() []string {
	names := []string{HandlerAlone, WeirHandler}
	for _, m := range peers.Middlewares() {
		names = append(names, m.Name)
	}
	return names
}

// The type served calls a handler. It reuses one request and one response, and changes only the address. A server's
// request is in a cache, too, because the server has just read it.
type served struct {
	handler http.Handler
	remote  *workload.Stream // addresses with ports, as net/http has them
	pool    sync.Pool        // of *exchange
}

// An exchange is a request and its response. Only the status of the response is stored.
type exchange struct {
	http.Request
	header http.Header
	passed bool // the inner handler was called
}

func (e *exchange) Header() http.Header         { return e.header }
func (e *exchange) Write(b []byte) (int, error) { return len(b), nil }
func (e *exchange) WriteHeader(status int)      { e.passed = status < http.StatusBadRequest }

func openHandler(r *workload.Row, name string, requests *workload.Stream) (Decider, func(), error) {
	next := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	s := &served{remote: requests.With(port), pool: sync.Pool{New: func() any {
		return &exchange{Request: http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}, Header: http.Header{}}, header: http.Header{}}
	}}}
	switch name {
	case HandlerAlone:
		s.handler = next
		return s, func() {}, nil
	case WeirHandler:
		l, err := Weir(r, engine.ClockTSC())
		if err != nil {
			return nil, nil, err
		}
		m, err := httplimit.New([]httplimit.Limit{{Name: "client", Limiter: l}})
		if err != nil {
			l.Close()
			return nil, nil, err
		}
		s.handler = m.Handler(next)
		return s, closeAll(l), nil
	}
	for _, m := range peers.Middlewares() {
		if m.Name == name {
			s.handler = m.New(r.Limit(), next)
			return s, func() {}, nil
		}
	}
	return nil, nil, fmt.Errorf("%q is no middleware", name)
}

func (s *served) serve(e *exchange, remote string) (allowed bool) {
	e.RemoteAddr, e.passed = remote, false
	clear(e.header)
	s.handler.ServeHTTP(e, &e.Request)
	return e.passed
}

// Decide implements Decider. The stream must be the one with which the subject was opened.
func (s *served) Decide(_ *workload.Stream, from, to int) (allowed int) {
	e := s.pool.Get().(*exchange)
	defer s.pool.Put(e)
	for i := from; i < to; i++ {
		if s.serve(e, s.remote.At(i)) {
			allowed++
		}
	}
	return allowed
}

func (s *served) Before() Decider {
	return Keyed{call(func(key string) bool {
		e := s.pool.Get().(*exchange)
		defer s.pool.Put(e)
		return s.serve(e, key+port)
	})}
}
