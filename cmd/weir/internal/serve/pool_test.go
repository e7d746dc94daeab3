package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// many is a rule that refuses none of the requests of a test.
const many = "\nrules: [{name: a, rate: 1/h, burst: 100000, max_keys: 10}]\n"

// named starts a server that answers with its name.
func named(t *testing.T, name string) string {
	return newUpstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
}

// bodies asks n times and returns the answers, and what is none by its status.
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

// A request goes to the server with the fewest under way, and equal ones take turns.
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
	assert.Contains(t, state, `{"name":"`+slow+`","up":true,"in_flight":1}`)
	close(finish)
	<-done
}

// TestAServerThatIsDown is left out after failures, and tried by one request when its time has come. Its requests go to
// another server, if that can do no harm.
func TestAServerThatIsDown(t *testing.T) {
	dead := freeAddress(t)
	s := start(t, administered+"upstream: {url: [\"http://"+dead+"\", \""+named(t, "b")+"\"], eject_after: 2}"+many)
	metric := func(name string) string {
		_, metrics := s.askAdmin("/metrics")
		for line := range strings.Lines(metrics) {
			if value, ok := strings.CutPrefix(line, name+" "); ok {
				return strings.TrimSpace(value)
			}
		}
		return "none"
	}
	up := `weir_upstream_up{upstream="http://` + dead + `"}`
	assert.Equal(t, "1", metric(up))
	assert.Equal(t, "bbbbbbbbbb", s.bodies(10))
	assert.Equal(t, "2", metric("weir_upstream_retries_total"), "and then it was left out")
	assert.Equal(t, "0", metric(up))
	assert.Contains(t, s.log.String(), `msg="upstream down: requests failed" upstream=http://`+dead+" failures=2")
	assert.Contains(t, s.log.String(), "the request goes to another server")

	s.clock.advance(10*time.Second - 1)
	s.bodies(10)
	assert.Equal(t, "2", metric("weir_upstream_retries_total"))
	s.clock.advance(1)
	assert.Equal(t, "bbbbbbbbbb", s.bodies(10))
	assert.Equal(t, "3", metric("weir_upstream_retries_total"), "one request tries it")

	s.change(administered + "headers: none\nupstream: {url: [\"http://" + dead + "\", \"" + s.current.Load().file.Upstream.
		Targets[1].String() + "\"], eject_after: 2}" + many)
	assert.Equal(t, "0", metric(up), "a reload forgets nothing")

	back, err := net.Listen("tcp", dead)
	require.NoError(t, err)
	server := &httptest.Server{Listener: back, Config: &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a") })}}
	server.Start()
	t.Cleanup(server.Close)
	s.clock.advance(10 * time.Second)
	got := s.bodies(10)
	assert.Equal(t, 5, strings.Count(got, "a"), got)
	assert.Equal(t, "1", metric(up))
	assert.Contains(t, s.log.String(), "upstream up: it answers requests")
}

// Nothing that may have been done is done twice.
func TestWhatIsNotTriedAgain(t *testing.T) {
	dead := freeAddress(t)
	s := start(t, "upstream: {url: [\"http://"+dead+"\", \""+named(t, "b")+"\"], eject_after: 0}"+many)
	count := func(method, body string) (failed int) {
		for range 10 {
			req, err := http.NewRequest(method, s.URL(), strings.NewReader(body))
			require.NoError(t, err)
			resp, err := s.client.Do(req)
			require.NoError(t, err)
			resp.Body.Close()
			if resp.StatusCode == 502 {
				failed++
			}
		}
		return failed
	}
	assert.Equal(t, 5, count("POST", ""))
	assert.Equal(t, 5, count("PATCH", ""))
	assert.Equal(t, 5, count("PUT", "body"))
	assert.Equal(t, 0, count("PUT", ""))
	assert.Equal(t, 0, count("DELETE", ""))

	var asked atomic.Int64
	breaks := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	})
	s.change("upstream: {url: [\"" + breaks + "\", \"" + breaks + "/b\"], eject_after: 0}" + many)
	assert.Equal(t, "!!!!", s.bodies(4))
	assert.EqualValues(t, 4, asked.Load(), "the connection was made")

	for err, want := range map[error]bool{
		&net.OpError{Op: "dial", Err: errors.New("x")}: true, &net.OpError{Op: "read", Err: errors.New("x")}: false,
		errNoFile: false,
	} {
		assert.Equal(t, want, mayRetry(httptest.NewRequest("GET", "/", nil).WithContext(t.Context()), err) ||
			mayRetry(&http.Request{Method: "GET"}, err), err)
	}
}

// TestAllServersAreDown: then all are tried, and the answer is 502.
func TestAllServersAreDown(t *testing.T) {
	s := start(t, "upstream: {url: [\"http://"+freeAddress(t)+"\", \"http://"+freeAddress(t)+"\"], eject_after: 1}"+many)
	assert.Equal(t, "!!!", s.bodies(3))
	s.waitFor("upstream down")
	s.change("upstream: [\"" + named(t, "a") + "\", \"" + named(t, "b") + "\"]" + many)
	assert.NotContains(t, s.bodies(4), "!")
}

// TestHealthChecks: a server that fails them gets no requests, and some again when it passes.
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
	assert.Contains(t, state, `{"name":"`+a+`/app","up":false,"in_flight":0}`)
	sick.Store(false)
	s.waitFor(`msg="upstream up: it passes checks"`)
	assert.Contains(t, s.bodies(6), "a")
}

// A roundTripper is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestACheckWithoutAConnection: where all connections to upstreams are in use, no check says that a server is sick.
func TestACheckWithoutAConnection(t *testing.T) {
	for err, sick := range map[error]bool{errNoFile: false, io.ErrUnexpectedEOF: true} {
		ctx, cancel := context.WithCancel(t.Context())
		checks := 0
		m := &member{Target: config.Target{URL: &url.URL{Scheme: "http", Host: "a"}}, log: slog.New(slog.DiscardHandler)}
		m.transport = roundTripper(func(*http.Request) (*http.Response, error) {
			if checks++; checks > 3 {
				cancel()
			}
			return nil, fmt.Errorf("dial: %w", err)
		})
		m.watch(ctx, &config.Health{Path: "/", Interval: time.Millisecond, Timeout: time.Minute, Passes: 1, Fails: 2})
		assert.Equal(t, sick, m.sick.Load(), err)
	}
}

// Each server has its own base path, also the one that a request goes to in the end.
func TestTheServersOfAnUpstreamHaveTheirOwnPaths(t *testing.T) {
	path := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.RequestURI()+" "+r.Host)
	})
	s := start(t, "upstream: {url: [\"http://"+freeAddress(t)+"/dead\", \""+path+"/b?k=1\"], eject_after: 0}"+many)
	for range 4 {
		assert.Equal(t, "/b/x%2fy?k=1&a=b "+strings.TrimPrefix(path, "http://"), s.get("/x%2fy?a=b").body)
	}
	s.change("upstream: {url: [\"http://" + freeAddress(t) + "/dead\", \"" + path + "/b\"], eject_after: 0, keep_host: true}" +
		many)
	for range 4 {
		assert.Equal(t, "/b/x own.example", s.get("/x", "Host: own.example").body)
	}
}

// An upstream may be a Unix socket.
func TestAnUpstreamOnAUnixSocket(t *testing.T) {
	socket := filepath.Join(socketDir(t), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host+r.URL.Path) })}}
	server.Start()
	t.Cleanup(server.Close)
	s := start(t, administered+"upstream: \"unix:"+socket+"\""+many)
	assert.Equal(t, "localhost/a", s.get("/a").body)
	_, metrics := s.askAdmin("/metrics")
	assert.Contains(t, metrics, `weir_upstream_up{upstream="unix:`+socket+`"} 1`)
}

// TestTheExampleOfSeveralServers runs that of docs/operations.md, with one server of the two dead.
func TestTheExampleOfSeveralServers(t *testing.T) {
	live := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			_, _ = io.WriteString(w, "b")
		}
	})
	s := start(t, snippet(t, "yaml", "3002", "127.0.0.1:3001", freeAddress(t), "127.0.0.1:3002",
		strings.TrimPrefix(live, "http://")))
	assert.Equal(t, strings.Repeat("b", 20)+"!", s.bodies(21), "20 are the burst, however often they are tried")
}
