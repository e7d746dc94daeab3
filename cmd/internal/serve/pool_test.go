package serve

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/freeport"
)

const many = "\nrules: [{name: a, rate: 1/h, burst: 100000, max_keys: 10}]\n"

func named(t *testing.T, name string) string {
	return newUpstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
}

// bodies sends n requests and returns the bodies of the answers. If the status of an answer is not 200, it returns the
// status instead of the body.
func (r *running) bodies(n int) string {
	r.t.Helper()
	var all strings.Builder
	for range n {
		if a := r.get("/"); a.status == 200 {
			all.WriteString(a.body)
		} else {
			all.WriteString("!")
		}
	}
	return all.String()
}

// TestLeastConnections: requests go to the server with the fewest requests in progress. If several servers have the
// fewest, they take turns.
func TestLeastConnections(t *testing.T) {
	finish, entered := make(chan struct{}), make(chan struct{})
	var hold atomic.Bool
	slow := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		if hold.CompareAndSwap(true, false) {
			entered <- struct{}{}
			<-finish
		}
		_, _ = io.WriteString(w, "a")
	})
	s := start(t, administered+"upstream: [\""+slow+"\", \""+named(t, "b")+"\"]"+many)
	got := s.bodies(10)
	assert.Equal(t, 5, strings.Count(got, "a"), got)
	assert.Equal(t, 5, strings.Count(got, "b"), got)
	hold.Store(true)
	done := make(chan string)
	go func() {
		for hold.Load() {
			_ = s.bodies(1)
		}
		done <- ""
	}()
	<-entered
	assert.Equal(t, "bbbbbb", s.bodies(6), "a has one under way")
	_, state := s.askAdmin("/state.json")
	assert.Contains(t, state, `{"name":"`+slow+`","up":true,"in_flight":1,`)
	close(finish)
	<-done
}

// metric returns the value of a metric, or "none".
func (r *running) metric(name string) string {
	r.t.Helper()
	_, metrics := r.askAdmin("/metrics")
	for line := range strings.Lines(metrics) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return "none"
}

func serveAt(t *testing.T, address, name string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })}}
	server.Start()
	t.Cleanup(server.Close)
}

// TestAServerThatIsDown: a server that cannot be reached gets no requests for some time. Then one request tries it. If
// the server is still down, this request goes to another server.
func TestAServerThatIsDown(t *testing.T) {
	dead := freeport.Address(t)
	s := start(t, administered+"upstream: [\"http://"+dead+"\", \""+named(t, "b")+"\"]"+many)
	up := `weir_upstream_up{upstream="http://` + dead + `"}`
	assert.Equal(t, "1", s.metric(up))
	assert.Equal(t, "bbbbbbbbbb", s.bodies(10))
	assert.Equal(t, "1", s.metric("weir_upstream_retries_total"), "and then it was left out")
	assert.Equal(t, "0", s.metric(up))
	assert.Contains(t, s.log.String(), `msg="upstream down: no connection can be made" upstream=http://`+dead)
	assert.Contains(t, s.log.String(), "the request goes to another server")

	s.clock.advance(time.Second - 1)
	s.bodies(10)
	assert.Equal(t, "1", s.metric("weir_upstream_retries_total"))
	s.clock.advance(1)
	assert.Equal(t, "bbbbbbbbbb", s.bodies(10))
	assert.Equal(t, "2", s.metric("weir_upstream_retries_total"), "one request tries it")

	s.change(administered + "headers: none\nupstream: [\"http://" + dead + "\", \"" + s.current.Load().file.Upstream.
		Targets[1].String() + "\"]" + many)
	assert.Equal(t, "0", s.metric(up), "a reload forgets nothing")

	serveAt(t, dead, "a")
	s.clock.advance(time.Second)
	got := s.bodies(10)
	assert.Equal(t, 5, strings.Count(got, "a"), got)
	assert.Equal(t, "1", s.metric(up))
	assert.Contains(t, s.log.String(), "upstream up: it answers again")
}

// TestASingleServerThatIsDown: if an upstream has only one server, the server is reported as down, but gets every
// request.
func TestASingleServerThatIsDown(t *testing.T) {
	dead := freeport.Address(t)
	s := start(t, administered+"upstream: \"http://"+dead+"\""+many)
	up := `weir_upstream_up{upstream="http://` + dead + `"}`
	assert.Equal(t, "1", s.metric(up))
	assert.Equal(t, "!!", s.bodies(2))
	assert.Equal(t, "0", s.metric(up))
	assert.EqualValues(t, 2, s.upstreams.Failures())
	serveAt(t, dead, "a")
	assert.Equal(t, "a", s.bodies(1), "without a wait")
	assert.Equal(t, "1", s.metric(up))
}

// TestAServerThatClosesConnections: a server that closes connections without an answer does not count as down.
// Otherwise one client could make the server unavailable to all other clients.
func TestAServerThatClosesConnections(t *testing.T) {
	closes := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/closed") {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "a")
	})
	s := start(t, administered+"upstream: [\""+closes+"\", \""+closes+"/b\"]"+many)
	for range 20 {
		resp, err := s.client.Post(s.URL()+"/closed", "", strings.NewReader("x"))
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, 502, resp.StatusCode)
	}
	assert.Equal(t, "aaaaaaaaaa", s.bodies(10))
	for _, name := range []string{closes, closes + "/b"} {
		assert.Equal(t, "1", s.metric(`weir_upstream_up{upstream="`+name+`"}`))
	}
}

// TestWhatGoesToAnotherServer: if no connection to a server can be made, a request goes to another server. If the
// request may have been executed, it is not sent again.
func TestWhatGoesToAnotherServer(t *testing.T) {
	echo := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	s := start(t, "upstream: [\"http://"+freeport.Address(t)+"\", \""+echo+"\"]"+many)
	count := func(method, body, header string) (failed int) {
		for range 10 {
			s.clock.advance(time.Second) // from now on, one request may try the server that is down
			req, err := http.NewRequest(method, s.URL(), strings.NewReader(body))
			require.NoError(t, err)
			if header != "" {
				req.Header.Set(header, "1")
			}
			resp, err := s.client.Do(req)
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			resp.Body.Close()
			switch resp.StatusCode {
			case 502:
				failed++
			default:
				assert.Equal(t, body, string(got))
			}
		}
		return failed
	}
	long := strings.Repeat("x", 1<<20)
	assert.Equal(t, 0, count("POST", "", ""))
	assert.Equal(t, 0, count("POST", long, ""))
	assert.Equal(t, 0, count("PATCH", "body", ""))
	assert.Equal(t, 0, count("PUT", "body", "Idempotency-Key"))
	assert.Equal(t, 0, count("POST", "", "Idempotency-Key"))
	assert.Equal(t, 0, count("POST", "body", "X-Idempotency-Key"))

	var asked atomic.Int64
	breaks := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	})
	s.change("upstream: [\"" + breaks + "\", \"" + breaks + "/b\"]" + many)
	assert.Equal(t, "!!!!", s.bodies(4))
	assert.EqualValues(t, 4, asked.Load(), "the connection was made")
}

// TestAllServersAreDown: if all servers are down, a request tries all of them, and the answer is 502.
func TestAllServersAreDown(t *testing.T) {
	s := start(t, "upstream: {url: [\"http://"+freeport.Address(t)+"\", \"http://"+freeport.Address(t)+"\"]}"+many)
	assert.Equal(t, "!!!", s.bodies(3))
	s.waitFor("upstream down")
	s.change("upstream: [\"" + named(t, "a") + "\", \"" + named(t, "b") + "\"]" + many)
	assert.NotContains(t, s.bodies(4), "!")
}

// TestHealthChecks: a server gets requests only while it passes its health checks.
func TestHealthChecks(t *testing.T) {
	var sick atomic.Bool
	var agent atomic.Value
	a := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/app/well" {
			agent.Store(r.UserAgent() + " " + r.URL.RawQuery)
			if sick.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		}
		_, _ = io.WriteString(w, "a")
	})
	s := start(t, administered+"upstream: {url: [\""+a+"/app\", \""+named(t, "b")+
		"\"], health: {path: /well?x=1, interval: 1ms, passes: 2, fails: 2}}"+many)
	s.bodies(1)
	sick.Store(true)
	s.waitFor(`level=WARN msg="upstream down: it fails checks" upstream=` + a + `/app fails=2 err="status 503"`)
	assert.Equal(t, "weir health check x=1", agent.Load())
	assert.Equal(t, "bbbbbb", s.bodies(6))
	_, state := s.askAdmin("/state.json")
	assert.Contains(t, state, `{"name":"`+a+`/app","up":false,"in_flight":0,`)
	sick.Store(false)
	s.waitFor(`msg="upstream up: it passes checks"`)
	assert.Contains(t, s.bodies(6), "a")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTheServersOfAnUpstreamHaveTheirOwnPaths: if a request is sent again to another server, it gets that server's base
// path.
func TestTheServersOfAnUpstreamHaveTheirOwnPaths(t *testing.T) {
	path := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.RequestURI()+" "+r.Host)
	})
	s := start(t, "upstream: {url: [\"http://"+freeport.Address(t)+"/dead\", \""+path+"/b?k=1\"]}"+many)
	for range 4 {
		assert.Equal(t, "/b/x%2fy?k=1&a=b "+strings.TrimPrefix(path, "http://"), s.get("/x%2fy?a=b").body)
	}
	s.change("upstream: {url: [\"http://" + freeport.Address(t) + "/dead\", \"" + path + "/b\"], keep_host: true}" +
		many)
	for range 4 {
		assert.Equal(t, "/b/x own.example", s.get("/x", "Host: own.example").body)
	}
}

// TestTheExampleOfSeveralServers runs the example of docs/operations.md. One of its servers is down.
func TestTheExampleOfSeveralServers(t *testing.T) {
	live := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			_, _ = io.WriteString(w, "b")
		}
	})
	s := start(t, snippet(t, "yaml", "3002", "127.0.0.1:3001", freeport.Address(t), "127.0.0.1:3002",
		strings.TrimPrefix(live, "http://")))
	assert.Equal(t, strings.Repeat("b", 20)+"!", s.bodies(21), "20 are the burst, however often they are tried")
}
