package serve

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// canned is an upstream without a network: what is measured is the proxy's own share.
type canned struct{}

func (canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: 5,
		Header: http.Header{"Content-Type": {"text/plain"}, "Content-Length": {"5"}},
		Body:   io.NopCloser(strings.NewReader("hello")),
	}, nil
}

// proxies returns a bare [httputil.ReverseProxy] with a BufferPool, and weir with a rule for all requests.
func proxies(t testing.TB) map[string]http.Handler {
	t.Helper()
	target, err := url.Parse("http://127.0.0.1:9")
	require.NoError(t, err)
	bare := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
		},
		Transport: canned{}, BufferPool: answerBuffers,
	}
	file, err := config.Parse("weir.yaml", []byte("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstream: \"http://127.0.0.1:9\"\n"+
		"rules: [{name: clients, rate: 1000000/s, burst: 1000000, max_keys: 1000}]\n"))
	require.NoError(t, err)
	server, err := Start(Config{File: file, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(server.stop)
	for _, p := range server.current.Load().pools {
		p.value.members[0].transport = canned{}
	}
	return map[string]http.Handler{"bare": bare, "weir": server}
}

// emptyWriter is a response that costs nothing.
type emptyWriter struct{ header http.Header }

func (w *emptyWriter) Header() http.Header         { return w.header }
func (w *emptyWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *emptyWriter) WriteHeader(int)             {}
func (w *emptyWriter) Flush()                      {}

// oneRequest is a request as a browser sends it.
func oneRequest() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/a/b?c=d", nil)
	r.Header = http.Header{"User-Agent": {"test"}, "Accept": {"*/*"}, "Accept-Encoding": {"gzip"}, "Cookie": {"a=b"}}
	r.Body = http.NoBody
	return r
}

// BenchmarkProxy compares what a request costs, but for the network.
func BenchmarkProxy(b *testing.B) {
	for name, handler := range proxies(b) {
		b.Run(name, func(b *testing.B) {
			r := oneRequest()
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(&emptyWriter{http.Header{}}, r)
			}
		})
	}
}

// TestAllocationsOfARequest: weir allocates little beyond what Go's proxy does.
func TestAllocationsOfARequest(t *testing.T) {
	allocations := map[string]float64{}
	for name, handler := range proxies(t) {
		r := oneRequest()
		allocations[name] = testing.AllocsPerRun(1000, func() { handler.ServeHTTP(&emptyWriter{http.Header{}}, r) })
	}
	t.Logf("%v", allocations)
	assert.LessOrEqual(t, allocations["weir"]-allocations["bare"], 1.0)
}
