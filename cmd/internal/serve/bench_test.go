package serve

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/proxy"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/internal/testalloc"
)

// canned is an upstream without a network. With it, a benchmark measures only the proxy.
type canned struct{}

func (canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: 5,
		Header: http.Header{"Content-Type": {"text/plain"}, "Content-Length": {"5"}},
		Body:   io.NopCloser(strings.NewReader("hello")),
	}, nil
}

func bareProxy(t testing.TB, upstream string, transport http.RoundTripper) http.Handler {
	target, err := url.Parse(upstream)
	require.NoError(t, err)
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
		},
		Transport: transport, BufferPool: proxy.Buffers,
	}
}

func startWeir(t testing.TB, upstream string, by func(proxy.Target, http.RoundTripper) http.RoundTripper) *Server {
	file, err := rulefile.Parse("weir.yaml", []byte("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstream: \""+upstream+"\"\n"+
		"rules: [{name: clients, key: \"header:X-Client\", rate: 1000000/s, burst: 1000000, max_keys: 1000}]\n"))
	require.NoError(t, err)
	server, err := Start(Config{File: file, Log: slog.New(slog.DiscardHandler), Transport: by})
	require.NoError(t, err)
	t.Cleanup(server.stop)
	return server
}

func proxies(t testing.TB) map[string]http.Handler {
	t.Helper()
	const upstream = "http://127.0.0.1:9"
	server := startWeir(t, upstream, func(proxy.Target, http.RoundTripper) http.RoundTripper { return canned{} })
	return map[string]http.Handler{"bare": bareProxy(t, upstream, canned{}), "weir": server}
}

type emptyWriter struct {
	header http.Header
	status int
}

func (w *emptyWriter) Header() http.Header         { return w.header }
func (w *emptyWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *emptyWriter) WriteHeader(status int)      { w.status = status }
func (w *emptyWriter) Flush()                      {}

func oneRequest() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/a/b?c=d", nil)
	r.Header = http.Header{
		"User-Agent": {"test"}, "Accept": {"*/*"}, "Accept-Encoding": {"gzip"}, "X-Client": {"client-100001"},
	}
	r.Body = http.NoBody
	return r
}

// answerOne makes a handler answer a copy of the request r. It checks that the request is admitted.
func answerOne(t testing.TB, handler http.Handler, r *http.Request) {
	one, w := *r, emptyWriter{header: http.Header{}}
	handler.ServeHTTP(&w, &one)
	if w.status != http.StatusOK {
		t.Fatalf("the answer has the status %d", w.status)
	}
}

// BenchmarkProxy compares the cost of a request in weir and in Go's own proxy, without the network.
func BenchmarkProxy(b *testing.B) {
	for name, handler := range proxies(b) {
		b.Run(name, func(b *testing.B) {
			r := oneRequest()
			b.ReportAllocs()
			for b.Loop() {
				answerOne(b, handler, r)
			}
		})
	}
}

// TestAllocationsOfARequest: for a request, weir allocates no more often than Go's own proxy, although that proxy has
// no limits.
func TestAllocationsOfARequest(t *testing.T) {
	allocations := map[string]float64{}
	for name, handler := range proxies(t) {
		r := oneRequest()
		allocations[name] = testalloc.PerCall(func() { answerOne(t, handler, r) })
	}
	t.Logf("%v", allocations)
	assert.LessOrEqual(t, allocations["weir"], allocations["bare"])
}

// BenchmarkProxyOverLoopback compares weir and Go's own proxy over real connections.
func BenchmarkProxyOverLoopback(b *testing.B) {
	upstream := quickUpstream(b)
	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	bare := httptest.NewUnstartedServer(bareProxy(b, upstream, transport))
	bare.Config.ReadHeaderTimeout, bare.Config.IdleTimeout = 10*time.Second, time.Minute
	bare.Start()
	b.Cleanup(func() { bare.Close(); transport.CloseIdleConnections() })
	for name, address := range map[string]string{"bare": bare.URL, "weir": startWeir(b, upstream, nil).URL()} {
		b.Run(name, func(b *testing.B) {
			conn, err := net.Dial("tcp", strings.Trim(address, "htp:/"))
			require.NoError(b, err)
			defer conn.Close()
			request := []byte("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nX-Client: client-100001\r\n\r\n")
			answer := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				_, err := conn.Write(request)
				require.NoError(b, err)
				n, err := conn.Read(answer)
				require.NoError(b, err)
				if !bytes.HasSuffix(answer[:n], []byte("hello")) {
					b.Fatalf("%q", answer[:n])
				}
			}
		})
	}
}

// quickUpstream returns the URL of an upstream that answers at once, whatever bytes it reads.
func quickUpstream(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	b.Cleanup(func() { l.Close() })
	answer := []byte("HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 22 Nov 2026 13:00:00 GMT\r\nContent-Type: text/plain\r\n" +
		"Content-Length: 5\r\n\r\nhello")
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				request := make([]byte, 4096)
				for {
					if _, err := conn.Read(request); err != nil {
						return
					}
					if _, err := conn.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}
