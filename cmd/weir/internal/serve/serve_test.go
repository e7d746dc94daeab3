package serve

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weir-go/weir/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that moves only when the test says so.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

// journal is a log that a test can read while the server writes it.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// running is a server under test, on a real loopback port.
type running struct {
	*Server
	t      *testing.T
	clock  *clock
	log    *journal
	client *http.Client
	stop   func() // ends Run and waits; may be called twice
}

// start starts one at 1/s burst 5.
func start(t *testing.T, key, upstream string) *running {
	t.Helper()
	return startAt(t, engine.TokenBucket(engine.PerSecond(1), 5), key, upstream)
}

func startAt(t *testing.T, policy engine.Policy, key, upstream string) *running {
	t.Helper()
	r := &running{t: t, clock: newClock(), log: &journal{}}
	limiter, err := engine.New(policy, engine.MaxKeys(100), engine.ClockFunc(r.clock.now))
	require.NoError(t, err)

	config := Config{Limiter: limiter, Log: slog.New(slog.NewTextHandler(r.log, nil))}
	require.NoError(t, config.Listen.UnmarshalText([]byte("127.0.0.1:0")))
	require.NoError(t, config.Key.UnmarshalText([]byte(key)))
	if upstream != "" {
		config.Upstream = &Upstream{}
		require.NoError(t, config.Upstream.UnmarshalText([]byte(upstream)))
	}
	r.Server, err = Listen(config)
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
		assert.NoError(t, limiter.Close())
	})
	t.Cleanup(r.stop)
	return r
}

type answer struct {
	status     int
	retryAfter string
	mediaType  string
	body       string
}

// get asks for path with the given header lines, "Name: value".
func (r *running) get(path string, header ...string) answer {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(r.URL(), "/")+path, nil)
	require.NoError(r.t, err)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	resp, err := r.client.Do(req)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return answer{resp.StatusCode, resp.Header.Get("Retry-After"), resp.Header.Get("Content-Type"), string(body)}
}

// statuses asks n times and returns what came back.
func (r *running) statuses(n int, header ...string) []int {
	r.t.Helper()
	got := make([]int, n)
	for i := range got {
		got[i] = r.get("/", header...).status
	}
	return got
}
