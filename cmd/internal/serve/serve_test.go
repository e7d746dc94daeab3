package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/listen"
	"github.com/weir-go/weir/cmd/internal/proxy"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/leakcheck"
	"github.com/weir-go/weir/internal/testlog"
)

// The client library of the store may leave a goroutine that sleeps for up to a second.
func TestMain(m *testing.M) { leakcheck.Main(m) }

type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

// running is the server that a test uses. It has real ports on loopback.
type running struct {
	*Server
	t      *testing.T
	path   string // path of the rule file
	clock  *clock
	log    *testlog.Log
	client *http.Client
	stop   func() // ends Run and waits for it; may be called twice

	transports   replaced
	asleep, wake chan time.Duration // the Sleep of the server sends to asleep and then receives from wake
}

// The constant one has a rule that admits exactly five requests during a test.
const one = "rules: [{name: default, rate: 1/h, burst: 5, max_keys: 100}]\n"

// start starts a server with a rule file. If the file has no listener, the server listens on a free port.
func start(t *testing.T, text string) *running {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.yaml")
	(&running{t: t, path: path}).write(text)
	return startAt(t, path)
}

func startAt(t *testing.T, path string) *running {
	t.Helper()
	return startInheriting(t, path, nil)
}

func startInheriting(t *testing.T, path string, inherited *listen.Inherited) *running {
	t.Helper()
	r := &running{
		t: t, path: path, clock: newClock(), log: &testlog.Log{},
		asleep: make(chan time.Duration), wake: make(chan time.Duration),
	}
	load := func() (*rulefile.File, error) { return rulefile.Load(r.path) }
	file, err := load()
	require.NoError(t, err)
	r.Server, err = Start(Config{
		File: file, Load: load, Log: slog.New(slog.NewTextHandler(r.log, nil)),
		LimiterOptions: []engine.Option{engine.ClockFunc(r.clock.now)}, Clock: r.clock.now,
		Sleep: func(d time.Duration) { r.asleep <- d; <-r.wake }, Inherited: inherited, Transport: r.transports.of,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	transport := &http.Transport{}
	r.client = &http.Client{Transport: transport}
	r.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		cancel()
		assert.NoError(t, <-done)
	})
	t.Cleanup(r.stop)
	return r
}

// replaced lets a test replace the transport to upstreams.
type replaced struct {
	own  []*http.Transport
	with atomic.Pointer[http.RoundTripper] // replaces the connections to all servers; nil if they are not replaced
}

// The method of is the value of the field Transport of [Config].
func (x *replaced) of(_ proxy.Target, own http.RoundTripper) http.RoundTripper {
	x.own = append(x.own, own.(*http.Transport))
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if with := x.with.Load(); with != nil {
			return (*with).RoundTrip(r)
		}
		return own.RoundTrip(r)
	})
}

func (x *replaced) by(with http.RoundTripper) { x.with.Store(&with) }

// write replaces the rule file by a new file, as editors do.
func (r *running) write(text string) {
	r.t.Helper()
	if !strings.Contains(text, "listen:") && !strings.Contains(text, "decide:") {
		text = "listen: 127.0.0.1:0\n" + text
	}
	beside := r.path + "~"
	require.NoError(r.t, os.WriteFile(beside, []byte(text), 0o600))
	require.NoError(r.t, os.Rename(beside, r.path))
}

// change writes the rule file and reloads it. The server, which watches the file, may have reloaded it already.
func (r *running) change(text string) {
	r.t.Helper()
	r.write(text)
	require.NoError(r.t, r.Reload())
}

func (r *running) waitFor(text string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return strings.Contains(r.log.String(), text) }, 20*time.Second,
		time.Millisecond, text)
}

func (r *running) address() string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(r.URL(), "http://"), "https://"), "/")
}

type answer struct {
	status     int
	retryAfter string
	mediaType  string
	body       string
}

// ask sends a request. Header lines have the form "Name: value".
func (r *running) ask(path string, header ...string) (answer, http.Header) {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(r.URL(), "/")+path, nil)
	require.NoError(r.t, err)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Add(name, value)
	}
	resp, err := r.client.Do(req)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return answer{resp.StatusCode, resp.Header.Get("Retry-After"), resp.Header.Get("Content-Type"),
		string(body)}, resp.Header
}

func (r *running) get(path string, header ...string) answer {
	r.t.Helper()
	a, _ := r.ask(path, header...)
	return a
}

func (r *running) statuses(n int, header ...string) string {
	r.t.Helper()
	var got []string
	for range n {
		got = append(got, fmt.Sprint(r.get("/", header...).status))
	}
	return strings.Join(got, " ")
}
