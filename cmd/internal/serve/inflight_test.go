package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowly starts an upstream. It ends its answer to a request for /hold when the test calls the returned function let.
// At /echo, it changes to a protocol that echoes lines.
func slowly(t *testing.T) (url string, let func(*http.Response)) {
	var held sync.Map // channels for which answers wait, by the field Hold of the answer
	var last atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hold":
			end := make(chan struct{})
			w.Header().Set("Hold", strconv.FormatInt(last.Add(1), 10))
			held.Store(w.Header().Get("Hold"), end)
			io.WriteString(w, "half ")
			http.NewResponseController(w).Flush()
			select {
			case <-end:
			case <-r.Context().Done():
			}
			io.WriteString(w, "whole")
		case "/echo":
			conn, buffer, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			fmt.Fprint(buffer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			buffer.Flush()
			for line, err := buffer.ReadString('\n'); err == nil; line, err = buffer.ReadString('\n') {
				fmt.Fprint(buffer, line)
				buffer.Flush()
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func(answer *http.Response) {
		end, _ := held.Load(answer.Header.Get("Hold"))
		close(end.(chan struct{}))
	}
}

// hold sends a request and returns when the answer has begun.
func (r *running) hold(ctx context.Context) *http.Response {
	r.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL()+"hold", nil)
	require.NoError(r.t, err)
	resp, err := r.client.Do(request)
	require.NoError(r.t, err)
	return resp
}

func (r *running) passes() {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.get("/").status == http.StatusOK }, 20*time.Second, time.Millisecond)
}

// TestConcurrencyUntilTheAnswerIsSent: a request is in flight until its answer is sent or its client has gone.
func TestConcurrencyUntilTheAnswerIsSent(t *testing.T) {
	upstream, let := slowly(t)
	s := start(t, "upstream: "+upstream+"\nrules: [{name: a, concurrency: 2, max_keys: 100}]\n")
	first := s.hold(t.Context())
	assert.Equal(t, http.StatusOK, first.StatusCode)
	assert.Equal(t, `"a";q=2;qu="concurrent-requests"`, first.Header.Get("RateLimit-Policy"))
	gone, goes := context.WithCancel(t.Context())
	second := s.hold(gone)
	refused := s.get("/")
	assert.Equal(t, http.StatusTooManyRequests, refused.status)
	assert.Empty(t, refused.retryAfter)
	assert.Contains(t, refused.body, `"violated-policies":["a"]`)
	goes()
	second.Body.Close()
	s.passes()
	third := s.hold(t.Context())
	assert.Equal(t, "429", s.statuses(1))
	let(first)
	body, err := io.ReadAll(first.Body)
	require.NoError(t, err)
	first.Body.Close()
	assert.Equal(t, "half whole", string(body))
	s.passes()
	let(third)
	third.Body.Close()
}

// TestAWebSocketIsInFlight: a WebSocket is in flight as long as it is open.
func TestAWebSocketIsInFlight(t *testing.T) {
	upstream, _ := slowly(t)
	s := start(t, "upstream: "+upstream+"\nrules: [{name: a, concurrency: 1, max_keys: 100}]\n")
	conn, err := net.Dial("tcp", s.address())
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	s.clock.advance(40 * 24 * time.Hour)
	for range 3 {
		fmt.Fprint(conn, "hello\n")
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, "hello\n", line)
		assert.Equal(t, "429", s.statuses(1))
	}
	conn.Close()
	s.passes()
}

// TestConcurrencyBesideARate: if a rule has a rate and a concurrency, a request is decided once by both. Answers and
// metrics show two rules.
func TestConcurrencyBesideARate(t *testing.T) {
	upstream, let := slowly(t)
	s := start(t, "upstream: "+upstream+"\nrules: [{name: a, rate: 3/h, concurrency: 1, max_keys: 100}]\n")
	held := s.hold(t.Context())
	assert.Equal(t, `"a";q=3;w=3600, "a.concurrency";q=1;qu="concurrent-requests"`, held.Header.Get("RateLimit-Policy"))
	assert.Contains(t, s.get("/").body, `"violated-policies":["a.concurrency"]`)
	let(held)
	held.Body.Close()
	s.passes()
	assert.Equal(t, "200", s.statuses(1), "what the concurrency refused took nothing from the rate")
	refused := s.get("/")
	assert.Contains(t, refused.body, `"violated-policies":["a"]`)
	assert.Equal(t, "1200", refused.retryAfter)
}

// TestAReloadKeepsWhatIsInFlight: requests in flight still count after a reload changes the concurrency.
func TestAReloadKeepsWhatIsInFlight(t *testing.T) {
	upstream, let := slowly(t)
	file := func(n int) string {
		return fmt.Sprintf("upstream: %s\nrules: [{name: a, concurrency: %d, max_keys: 100}]\n", upstream, n)
	}
	s := start(t, file(2))
	one, two := s.hold(t.Context()), s.hold(t.Context())
	s.change(file(3))
	three := s.hold(t.Context())
	assert.Equal(t, "429", s.statuses(1), "all three are in flight")
	s.change(file(1))
	for _, held := range []*http.Response{one, two} {
		let(held)
		_, err := io.Copy(io.Discard, held.Body)
		require.NoError(t, err)
		held.Body.Close()
	}
	assert.Equal(t, "429", s.statuses(1), "the third is in flight")
	let(three)
	three.Body.Close()
	s.passes()
	assert.True(t, strings.Contains(s.log.String(), "rule a: 3 at a time, was 2 at a time"), s.log.String())
}

// TestAConcurrencyThatIsRemoved: requests in flight under a removed rule end as usual, and block no later requests.
func TestAConcurrencyThatIsRemoved(t *testing.T) {
	upstream, let := slowly(t)
	s := start(t, "upstream: "+upstream+"\nrules: [{name: a, concurrency: 1, max_keys: 100}]\n")
	held := s.hold(t.Context())
	s.change("upstream: " + upstream + "\nrules: [{name: b, rate: 100/s, max_keys: 100}]\n")
	assert.Equal(t, "200", s.statuses(1))
	let(held)
	body, err := io.ReadAll(held.Body)
	require.NoError(t, err)
	held.Body.Close()
	assert.Equal(t, "half whole", string(body))
}

// TestARefusalInFlightIsLogged: if a concurrency refuses a request, the log line has no time to wait, because no one
// knows when requests end.
func TestARefusalInFlightIsLogged(t *testing.T) {
	upstream, let := slowly(t)
	s := start(t, "upstream: "+upstream+"\nlog: {refusals: all}\nrules: [{name: a, concurrency: 1, max_keys: 100}]\n")
	held := s.hold(t.Context())
	assert.Equal(t, "429", s.statuses(1))
	s.waitFor("wait=unknown")
	let(held)
	held.Body.Close()
}

// TestInFlightInTheStore: a key must wait for a request in flight on another machine. The page does not show how long.
func TestInFlightInTheStore(t *testing.T) {
	upstream, let := slowly(t)
	store := miniredis.RunT(t)
	file := func(n int) string {
		return fmt.Sprintf("admin: {address: \"127.0.0.1:0\", keys: full}\nupstream: %s\n"+
			"store: {url: \"redis://%s\", timeout: 2s}\nrules: [{name: a, concurrency: %d, key: header:A}]\n", upstream, store.Addr(), n)
	}
	a, b := start(t, file(1)), start(t, file(1))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+"hold", nil)
	require.NoError(t, err)
	request.Header.Set("A", "alice")
	held, err := a.client.Do(request)
	require.NoError(t, err)
	assert.Equal(t, `"a";q=1;qu="concurrent-requests"`, held.Header.Get("RateLimit-Policy"))
	refused := b.get("/", "A: alice")
	assert.Equal(t, http.StatusTooManyRequests, refused.status)
	assert.Empty(t, refused.retryAfter)
	assert.Equal(t, "200", b.statuses(1, "A: bob"))
	_, view := b.key("peek", `{"rule":"a","parts":["alice"]}`)
	assert.Equal(t, keyView{Hash: view.Hash, Recorded: true, Limit: 1, RetryAfter: "when one of them is over"}, view)
	assert.Contains(t, b.metrics(), `weir_requests_total{outcome="refused",rule="a"} 1`)

	a.change(file(2))
	assert.Equal(t, "200", a.statuses(1, "A: alice"), "one of two is free")
	a.change(file(1))
	assert.Equal(t, "429", a.statuses(1, "A: alice"), "what was in flight before the reloads is")
	let(held)
	held.Body.Close()
	require.Eventually(t, func() bool { return b.statuses(1, "A: alice") == "200" }, 20*time.Second, time.Millisecond)
}
