package httplimit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
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

	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

// failuresOnly returns a middleware with a limit of 9 tokens that gives tokens back for successes. It also returns a
// function that returns the number of tokens left.
func failuresOnly(t testing.TB, options ...httplimit.Option) (*httplimit.Middleware, func() uint64) {
	t.Helper()
	l := shared("failures", testclock.New().Burst(t, 9))
	l.Refund = httplimit.RefundStatus(200, 299)
	return one(t, l, options...), func() uint64 { return left(l.Limiter) }
}

func TestRefundByStatus(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		left    uint64
	}{
		{"nothing", func(http.ResponseWriter, *http.Request) {}, 9},
		{"a body", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("x")) }, 9},
		{"a string", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") }, 9},
		{"a copy", func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, io.LimitReader(strings.NewReader("x"), 1)) }, 9},
		{"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 9},
		{"302", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(302) }, 8},
		{"401", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, 8},
		{"401 and a body", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }, 8},
		{"early hints, then 401", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(http.StatusUnauthorized)
		}, 8},
		{"early hints, then 200", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.Write(nil) }, 9},
		{"a body, then a late 500", func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("x"))
			w.WriteHeader(500)
		}, 9},
		{"a flush, then a late 500", func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.WriteHeader(500)
		}, 9},
		{"two statuses", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); w.WriteHeader(200) }, 8},
		{"a status behind an Unwrap", func(w http.ResponseWriter, _ *http.Request) {
			http.NewResponseController(w).Flush()
		}, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, left := failuresOnly(t)
			s := startServer(t, m.Handler(c.handler))
			resp, err := s.Client().Get(s.URL)
			require.NoError(t, err)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			s.Close() // waits for the handler
			assert.Equal(t, c.left, left())
		})
	}
}

// TestPanicsAreFailures: a panic counts as a failure, even if it only aborts the response. The middleware lets the
// panic continue.
func TestPanicsAreFailures(t *testing.T) {
	boom := errors.New("boom")
	for _, panicked := range []error{boom, http.ErrAbortHandler} {
		for _, before := range []func(http.ResponseWriter){
			func(http.ResponseWriter) {},
			func(w http.ResponseWriter) { w.WriteHeader(200) },
			func(w http.ResponseWriter) { w.Write([]byte("half")) },
		} {
			m, left := failuresOnly(t)
			h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				before(w)
				panic(panicked)
			}))
			assert.PanicsWithError(t, panicked.Error(), func() { serve(h, get("/")) })
			assert.EqualValues(t, 8, left())
		}
	}
	// Now the limit is the opposite: it gives back the cost of failures of the server, not of successes.
	l := shared("work", testclock.New().Burst(t, 9))
	l.Refund = httplimit.RefundStatus(500, 599)
	h := one(t, l).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(boom) }))
	assert.Panics(t, func() { serve(h, get("/")) })
	assert.EqualValues(t, 9, left(l.Limiter))
}

// TestWhatIsCutOffIsNotRefunded: nothing is given back for an answer that was cut off, because the client may have
// caused the end.
func TestWhatIsCutOffIsNotRefunded(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		gone    bool
	}{
		"half an answer":      {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("half")) }, false},
		"a status alone":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }, false},
		"a client that left":  {func(http.ResponseWriter, *http.Request) {}, true},
		"both, the other way": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := shared("any", testclock.New().Burst(t, 9))
			l.Refund = httplimit.RefundStatus(100, 599)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h := one(t, l).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.handler(w, r)
				if c.gone {
					cancel()
				}
				panic(http.ErrAbortHandler)
			}))
			assert.Panics(t, func() { serve(h, get("/").WithContext(ctx)) })
			assert.EqualValues(t, 8, left(l.Limiter))
		})
	}
}

// TestABodyThatBreaksOffIsNotRefunded: if a request's body breaks off, the server behind a proxy may have worked on the
// request. So the proxy's error gives nothing back.
func TestABodyThatBreaksOffIsNotRefunded(t *testing.T) {
	worked := make(chan struct{}, 1)
	server := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		worked <- struct{}{}
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	to, err := url.Parse(server.URL)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		chunks string
		status string
		left   uint64
	}{
		"whole":      {"0\r\n\r\n", "503", 9},
		"broken off": {"no chunk\r\n", "502", 8},
		"too long":   {"5\r\nhello\r\n0\r\n\r\n", "502", 9},
	} {
		t.Run(name, func(t *testing.T) {
			l := shared("failures", testclock.New().Burst(t, 9))
			l.Refund = httplimit.RefundStatus(500, 599)
			proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ErrorLog: log.New(io.Discard, "", 0)}
			limited := one(t, l).Handler(proxy)
			s := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Body = http.MaxBytesReader(w, r.Body, 8)
				limited.ServeHTTP(w, r)
			}))
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
			require.NoError(t, err)
			<-worked
			_, err = io.WriteString(conn, c.chunks)
			require.NoError(t, err)
			answer, err := bufio.NewReader(conn).ReadString('\n')
			require.NoError(t, err)
			assert.Contains(t, answer, c.status)
			s.Close() // waits for the handler
			assert.Equal(t, c.left, left(l.Limiter))
		})
	}
}

// TestAFailedGRPCCallIsNoSuccess: a failed gRPC call does not count as a success, although its HTTP status is 200.
func TestAFailedGRPCCallIsNoSuccess(t *testing.T) {
	for name, c := range map[string]struct {
		contentType, field, status string
		left                       uint64
	}{
		"OK":                     {"application/grpc", "Grpc-Status", "0", 9},
		"not announced":          {"application/grpc+proto", http.TrailerPrefix + "Grpc-Status", "0", 9},
		"UNAUTHENTICATED":        {"application/grpc", "Grpc-Status", "16", 8},
		"the same, unannounced":  {"application/grpc", http.TrailerPrefix + "Grpc-Status", "16", 8},
		"none":                   {"application/grpc", "X-Other", "0", 8},
		"gRPC-Web, in the body":  {"application/grpc-web", "X-Other", "0", 8},
		"no gRPC, and a success": {"text/plain", "Grpc-Status", "16", 9},
	} {
		m, left := failuresOnly(t)
		serve(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.contentType)
			w.WriteHeader(200)
			w.Header().Set(c.field, c.status)
		})), get("/"))
		assert.Equal(t, c.left, left(), name)
	}
}

// TestHijackedConnections: a hijacked connection counts as the status 101. How the handler gets the connection does not
// matter.
func TestHijackedConnections(t *testing.T) {
	for _, byController := range []bool{false, true} {
		l := shared("upgrades", testclock.New().Burst(t, 9))
		seen := make(chan int, 1)
		l.Refund = func(_ *http.Request, status int) bool {
			seen <- status
			return status == http.StatusSwitchingProtocols
		}
		s := startServer(t, one(t, l).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			var conn net.Conn
			var err error
			if byController {
				conn, _, err = http.NewResponseController(w).Hijack()
			} else {
				conn, _, err = w.(http.Hijacker).Hijack()
			}
			if err == nil {
				io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
				conn.Close()
			}
		})))
		conn := dial(t, s.Listener.Addr())
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, "HTTP/1.1 101 Switching Protocols\r\n", line)
		conn.Close()
		assert.Equal(t, 101, <-seen)
		s.Close()
		// The test polls, because Close does not wait for hijacked connections. Also, seen is called before the tokens
		// are given back.
		assert.Eventually(t, func() bool { return left(l.Limiter) == 9 }, time.Minute, time.Millisecond)
	}
}

// TestTheWriterStaysWhatItIs: without Refund, the handler gets the original writer. With Refund, it gets a writer that
// has exactly the optional methods of the original.
func TestTheWriterStaysWhatItIs(t *testing.T) {
	recorder := httptest.NewRecorder()
	same := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { assert.Same(t, recorder, w) })
	one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 9)}).Handler(same).ServeHTTP(recorder, get("/"))

	type plain struct{ http.ResponseWriter }
	m, _ := failuresOnly(t)
	for _, c := range []struct {
		original                 http.ResponseWriter
		flushes, hijacks, pushes bool
	}{
		{plain{recorder}, false, false, false},
		{recorder, true, false, false},
		{struct {
			plain
			http.Hijacker
		}{plain: plain{recorder}}, false, true, false},
		{struct {
			plain
			http.Flusher
			http.Hijacker
		}{plain: plain{recorder}}, true, true, false},
		{struct {
			plain
			http.Flusher
			http.Pusher
		}{plain: plain{recorder}}, true, false, true},
	} {
		called := false
		m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			called = true
			_, flushes := w.(http.Flusher)
			_, hijacks := w.(http.Hijacker)
			_, pushes := w.(http.Pusher)
			assert.Equal(t, []bool{c.flushes, c.hijacks, c.pushes}, []bool{flushes, hijacks, pushes})
			assert.Equal(t, c.original, w.(interface{ Unwrap() http.ResponseWriter }).Unwrap())
		})).ServeHTTP(c.original, get("/"))
		assert.True(t, called)
	}
}

// TestControllersReachTheConnection: the handler gets a writer that records the status. Through it, an
// http.ResponseController reaches the connection.
func TestControllersReachTheConnection(t *testing.T) {
	m, left := failuresOnly(t)
	s := startServer(t, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		assert.NoError(t, c.SetReadDeadline(time.Now().Add(time.Hour)))
		assert.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Hour)))
		assert.NoError(t, c.EnableFullDuplex())
		io.WriteString(w, "first")
		assert.NoError(t, c.Flush())
	})))
	resp, err := s.Client().Get(s.URL)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, "first", string(body))
	s.Close()
	assert.EqualValues(t, 9, left())
}

// TestFinishOnce: only the first call of Finish has an effect. After a refusal, no call has one.
func TestFinishOnce(t *testing.T) {
	var seen counts
	m, left := failuresOnly(t, httplimit.ObserveWith(&seen))
	first, second := m.Decide(get("/")), m.Decide(get("/"))
	assert.EqualValues(t, 7, left())
	first.Finish(get("/"), 200)
	first.Finish(get("/"), 200)
	assert.EqualValues(t, 8, left())
	assert.Equal(t, limits.Refunded, first.Check(0).Outcome)
	second.Finish(get("/"), 401)
	second.Finish(get("/"), 200)
	assert.EqualValues(t, 8, left(), "the response had one status")
	for range 8 {
		m.Decide(get("/"))
	}
	w := httptest.NewRecorder()
	first.Refuse(w, get("/"))
	assert.Empty(t, w.Header(), "it was allowed")
	refused := m.Decide(get("/"))
	refused.Finish(get("/"), 200)
	assert.EqualValues(t, 0, left())
	assert.Equal(t, 1, seen.of(limits.Refunded))
}

// TestRefundOfCostsShadowsAndBackends: each limit gives back the tokens that it took.
func TestRefundOfCostsShadowsAndBackends(t *testing.T) {
	c := testclock.New()
	success := httplimit.RefundStatus(200, 299)
	dear := shared("dear", c.Burst(t, 9))
	dear.Cost, dear.Refund = func(*http.Request) uint64 { return 5 }, success
	shadow := shared("trial", c.Burst(t, 1))
	shadow.Shadow, shadow.Refund = true, success
	s := &backend{limiter: c.Burst(t, 9)}
	kept := shared("kept", c.Burst(t, 9))
	m := newMiddleware(t, []httplimit.Limit{dear, shadow, {Name: "store", Source: source(t, s), Refund: success}, kept})
	var ctx context.Context
	cancel := func() {}
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = "changed"
		w.WriteHeader(http.StatusOK)
		cancel() // the client goes away after it has got its answer
	}))
	for range 3 {
		ctx, cancel = context.WithCancel(t.Context())
		t.Cleanup(cancel)
		assert.Equal(t, 200, serve(h, getFrom(direct).WithContext(ctx)).Code)
	}
	assert.EqualValues(t, 9, left(dear.Limiter))
	assert.EqualValues(t, 1, left(shadow.Limiter))
	assert.EqualValues(t, 9, s.limiter.Peek(s.limiter.Key("ip:198.51.100.7"), 0).Remaining)
	assert.EqualValues(t, 6, left(kept.Limiter))
	assert.Zero(t, m.Failures())
}

// TestABackendThatFailsToRefund: if a backend fails to refund, the failure is counted, and the answer does not change.
func TestABackendThatFailsToRefund(t *testing.T) {
	gone := errors.New("gone")
	s := &backend{limiter: testclock.New().Burst(t, 9)}
	var told []error
	m := one(t, httplimit.Limit{Source: source(t, s), Refund: httplimit.RefundStatus(200, 299)},
		httplimit.OnError(func(_ string, err error) { told = append(told, err) }))
	w := serve(m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.err = gone })), get("/"))
	assert.Equal(t, 200, w.Code)
	require.Len(t, told, 1)
	assert.ErrorIs(t, told[0], gone)
	assert.EqualValues(t, 1, m.Failures())
}

// TestAClientThatGoesBeforeTheAnswerGetsNothingBack: a client that goes away may cause a status that is refunded. The
// client must get nothing back.
func TestAClientThatGoesBeforeTheAnswerGetsNothingBack(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"status": func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"body":   func(w http.ResponseWriter) { _, _ = w.Write([]byte("gone")) },
		"none":   func(http.ResponseWriter) {},
		"panic":  func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		l := shared("all", testclock.New().Burst(t, 9))
		l.Refund = func(*http.Request, int) bool { return true }
		ctx, cancel := context.WithCancel(t.Context())
		h := one(t, l).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			cancel()
			answer(w)
		}))
		func() {
			defer func() { _ = recover() }()
			serve(h, getFrom(direct).WithContext(ctx))
		}()
		assert.EqualValues(t, 8, left(l.Limiter), name)
	}
}

// TestAClientThatGoesAfterTheAnswerBegan: a client that goes away after the answer has begun did not cause its status.
// So the tokens are given back.
func TestAClientThatGoesAfterTheAnswerBegan(t *testing.T) {
	l := shared("all", testclock.New().Burst(t, 9))
	l.Refund = func(_ *http.Request, status int) bool { return status == http.StatusInternalServerError }
	ctx, cancel := context.WithCancel(t.Context())
	h := one(t, l).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		cancel()
		_, _ = w.Write([]byte("gone by now"))
	}))
	serve(h, getFrom(direct).WithContext(ctx))
	assert.EqualValues(t, 9, left(l.Limiter))
}
