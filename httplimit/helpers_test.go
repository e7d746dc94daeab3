package httplimit_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/leakcheck"
	"github.com/weir-go/weir/limits"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

func newMiddleware(t testing.TB, limits []httplimit.Limit, options ...httplimit.Option) *httplimit.Middleware {
	t.Helper()
	m, err := httplimit.New(limits, options...)
	require.NoError(t, err)
	return m
}

// one returns a middleware of one limit.
func one(t testing.TB, l httplimit.Limit, options ...httplimit.Option) *httplimit.Middleware {
	t.Helper()
	if l.Name == "" {
		l.Name = "default"
	}
	return newMiddleware(t, []httplimit.Limit{l}, options...)
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })

func get(path string) *http.Request { return httptest.NewRequest(http.MethodGet, path, nil) }

func getFrom(remote string, headers ...string) *http.Request {
	r := get("/")
	r.RemoteAddr = remote
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// serve passes a request to a handler, and returns the answer.
func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func statuses(h http.Handler, n int) (codes []int) {
	for range n {
		codes = append(codes, serve(h, get("/")).Code)
	}
	return codes
}

// startServer starts a server with a handler on loopback.
func startServer(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// counts implements Metrics and counts outcomes.
type counts struct {
	seen [16]atomic.Int64
	name atomic.Pointer[string] // the latest label
}

func (c *counts) Observe(limit string, o limits.Outcome) {
	c.seen[o].Add(1)
	c.name.Store(&limit)
}

func (c *counts) of(o limits.Outcome) int { return int(c.seen[o].Load()) }
