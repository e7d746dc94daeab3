package httplimit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

// TestMain makes the tests fail if one of them leaves a goroutine behind.

// dial returns a raw connection to a server.
func dial(t *testing.T, addr net.Addr) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// TestBodiesCutShort: a client announces a longer body than it sends. This request is charged once.
func TestBodiesCutShort(t *testing.T) {
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nfew",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nfew",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\nExpect: 100-continue\r\n\r\n",
	} {
		m, left := failuresOnly(t)
		failed := make(chan error, 1)
		s := startServer(t, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			failed <- err
			w.WriteHeader(http.StatusBadRequest)
		})))
		conn := dial(t, s.Listener.Addr())
		fmt.Fprint(conn, request)
		require.NoError(t, conn.CloseWrite())
		assert.Error(t, <-failed)
		answers := bufio.NewReader(conn)
		resp, err := http.ReadResponse(answers, nil)
		require.NoError(t, err)
		for resp.StatusCode == http.StatusContinue {
			resp, err = http.ReadResponse(answers, nil)
			require.NoError(t, err)
		}
		resp.Body.Close()
		conn.Close()
		s.Close()
		assert.EqualValues(t, 8, left())
	}
}

// TestRefusedBodiesAreNotRead: a refusal is sent before the body of the request has arrived.
func TestRefusedBodiesAreNotRead(t *testing.T) {
	h := one(t, shared("none", testclock.New().Burst(t, 1))).Handler(hello)
	serve(h, get("/"))
	s := startServer(t, h)
	conn := dial(t, s.Listener.Addr())
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, 429, resp.StatusCode)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Contains(t, string(body), "quota-exceeded")
}

// TestClientsThatGoAway: if a client goes away in the middle of the answer, its request still counts.
func TestClientsThatGoAway(t *testing.T) {
	l := shared("work", testclock.New().Burst(t, 9))
	l.Refund = func(*http.Request, int) bool { return true }
	s := startServer(t, one(t, l).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // as a ReverseProxy does
	})))
	conn := dial(t, s.Listener.Addr())
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "HTTP/1.1 200 OK\r\n", line)
	conn.Close()
	s.Close() // waits for the handler
	assert.EqualValues(t, 8, left(l.Limiter), "whatever the limit gives back")
}

// TestMalformedHeaders: a limit accepts every header that net/http accepts.
func TestMalformedHeaders(t *testing.T) {
	ip := clientIP(t, httplimit.TrustProxies("127.0.0.0/8"))
	seen := make(chan string, 1)
	m := one(t, httplimit.Limit{
		Limiter: testclock.New().Burst(t, 9),
		Key:     httplimit.Join(header(t, "X-API-Key", ip.Key), httplimit.Path, httplimit.Host),
	})
	s := startServer(t, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res := m.Decide(r)
		check, _ := res.Tightest()
		seen <- check.KeyText(r)
	})))
	for _, c := range []struct{ request, want string }{
		{"GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For:\r\n\r\n", "ip:127.0.0.1"},
		{"GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: \x80\xff\r\n\r\n", "ip:127.0.0.1"},
		{"GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.9\r\nX-FORWARDED-FOR: ,\r\n\r\n", "ip:127.0.0.1"},
		{"GET / HTTP/1.1\r\nHost: x\r\nx-forwarded-for: 203.0.113.9\r\n\r\n", "ip:203.0.113.9"},
		{"GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: " + strings.Repeat("1.1.1.1,", 50_000) + "203.0.113.9\r\n\r\n",
			"ip:203.0.113.9"},
		{"GET / HTTP/1.0\r\nX-API-Key: \t k \t\r\n\r\n", "text:k"},
		{"OPTIONS / HTTP/1.1\r\nHost: x\r\nX-API-Key: " + strings.Repeat("k", 100_000) + "\r\n\r\n",
			"text:" + strings.Repeat("k", 100_000)},
	} {
		conn := dial(t, s.Listener.Addr())
		fmt.Fprint(conn, c.request)
		text := <-seen
		assert.True(t, strings.HasPrefix(text, fmt.Sprintf("text:%d:%s", len(c.want), c.want)), "%.80q: %.80q",
			c.request,
			text)
		conn.Close()
	}
}

// TestBodiesOfRefusals checks the exact text of a refusal in each format.
func TestBodiesOfRefusals(t *testing.T) {
	gone := &backend{err: errors.New("gone")}
	closed := httplimit.Limit{Name: "shared", Source: source(t, gone), OnLoss: limits.Closed}
	never := shared("small", testclock.New().Burst(t, 1))
	never.Cost = func(*http.Request) uint64 { return 2 }
	empty := shared("used \"up\"", testclock.New().Burst(t, 1))
	serve(one(t, empty).Handler(hello), get("/"))
	for _, c := range []struct {
		limit       httplimit.Limit
		format      httplimit.BodyFormat
		status      int
		contentType string
		body        string
	}{
		{empty, httplimit.ProblemJSON, 429, "application/problem+json",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
				`"title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,` +
				`"detail":"Try again in 1 s.","violated-policies":["used \"up\""]}`},
		{never, httplimit.ProblemJSON, 429, "application/problem+json",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
				`"title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,` +
				`"detail":"This request can never be admitted: it costs 2 and the limit is 1.","violated-policies":["small"]}`},
		{closed, httplimit.ProblemJSON, 503, "application/problem+json",
			`{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",` +
				`"title":"Request cannot be satisfied due to temporary server capacity constraints","status":503,` +
				`"detail":"The rate limiter's store does not answer."}`},
		{empty, httplimit.PlainJSON, 429, "application/json", `{"error":"Too many requests","retryAfter":1}`},
		{never, httplimit.PlainJSON, 429, "application/json", `{"error":"Too many requests","retryAfter":null}`},
		{closed, httplimit.PlainJSON, 503, "application/json", `{"error":"Service unavailable","retryAfter":null}`},
	} {
		h := one(t, c.limit, httplimit.Body(c.format)).Handler(hello)
		w := serve(h, get("/"))
		assert.Equal(t, c.status, w.Code)
		assert.Equal(t, c.contentType, w.Header().Get("Content-Type"))
		assert.Equal(t, c.body+"\n", w.Body.String())

		s := startServer(t, h)
		head, err := s.Client().Head(s.URL)
		require.NoError(t, err)
		head.Body.Close()
		assert.Equal(t, c.status, head.StatusCode)
		assert.EqualValues(t, len(c.body)+1, head.ContentLength, "HEAD is answered as GET is, without the body")
		s.Close()
	}

	custom := one(t, empty, httplimit.RefuseWith(func(w http.ResponseWriter, _ *http.Request, res httplimit.Result) {
		tightest, _ := res.Tightest()
		http.Error(w, fmt.Sprintf("%s: wait %v", tightest.Name(), res.RetryAfter()), res.Status())
	}))
	w := serve(custom.Handler(hello), get("/"))
	assert.Equal(t, 429, w.Code)
	assert.Equal(t, "used \"up\": wait 1s\n", w.Body.String())
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
}

// TestCanceledRequestsAreDecided: a request whose context is done is decided and charged like any other request.
func TestCanceledRequestsAreDecided(t *testing.T) {
	l := shared("all", testclock.New().Burst(t, 2))
	h := one(t, l).Handler(hello)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.Equal(t, 200, serve(h, get("/").WithContext(ctx)).Code)
	assert.EqualValues(t, 1, left(l.Limiter))
}
