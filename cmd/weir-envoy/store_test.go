package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/internal/freeport"
	"github.com/weir-go/weir/redislimit"
)

// startRedis runs a redis-server with a password until the test ends. It returns its address, and a function that stops
// it.
func startRedis(t *testing.T) (address string, stop func()) {
	t.Helper()
	port := freeport.Number(t)
	return fmt.Sprintf("127.0.0.1:%d", port), runRedis(t, port, "--port", fmt.Sprint(port), "--requirepass", "sesame", "--save", "")
}

// runRedis runs a redis-server on a port until the test ends.
func runRedis(t *testing.T, port int, args ...string) (stop func()) {
	t.Helper()
	stop, _ = startedRedis(t, port, args...)
	return stop
}

// startedRedis does the same as runRedis, and also returns the process.
func startedRedis(t *testing.T, port int, args ...string) (stop func(), process *os.Process) {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("needs redis-server: ", err)
	}
	command := exec.Command(program, append(args, "--bind", "127.0.0.1", "--dir", t.TempDir())...)
	require.NoError(t, command.Start())
	var once sync.Once
	stop = func() { once.Do(func() { _ = command.Process.Kill(); _ = command.Wait() }) }
	t.Cleanup(stop)
	until(t, "redis-server answers", func() bool {
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
	return stop, command.Process
}

// TestReplicas: two programs with one store count exactly as one program. Both report a lost store.
func TestReplicas(t *testing.T) {
	address, stop := startRedis(t)
	root := write(t, map[string]string{"a.yaml": strings.Replace(file, "requests_per_unit: 3", "requests_per_unit: 200", 1)})
	args := []string{"--runtime-root=" + root, "--redis-url=" + address, "--redis-auth=sesame", "--redis-timeout=10s"}
	replicas := []*running{start(t, nil, args...), start(t, nil, args...)}

	var all sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				response, err := replicas[i%2].rls.ShouldRateLimit(context.Background(), request("d", "day", "x", 1))
				mu.Lock()
				if assert.NoError(t, err) && response.GetOverallCode() == rlsv3.RateLimitResponse_OK {
					passed++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	assert.Equal(t, 200, passed)

	for i := range 20 { // descriptors with the same counter are counted in order
		ask := request("d", "day", fmt.Sprint("in order ", i), 1)
		for range 4 {
			ask.Descriptors = append(ask.Descriptors, ask.GetDescriptors()[0])
		}
		response, err := replicas[0].rls.ShouldRateLimit(context.Background(), ask)
		require.NoError(t, err)
		for j, status := range response.GetStatuses() {
			require.EqualValues(t, 199-j, status.GetLimitRemaining())
		}
	}

	_, body := replicas[0].get("prometheus-port", "/metrics")
	assert.Regexp(t, `(?m)^# TYPE ratelimit_redis_pool_cx_active gauge\nratelimit_redis_pool_cx_active [1-9]`, body)
	assert.Contains(t, body, "# TYPE ratelimit_redis_pool_cx_total counter\n")
	assert.Contains(t, body, "weir_envoy_store_lost_parts{pool=\"redis_pool\"} 0\n")
	stop()
	until(t, "the connections are closed", func() bool {
		_, body := replicas[0].get("prometheus-port", "/metrics")
		return strings.Contains(body, "ratelimit_redis_pool_cx_active 0\n") && !strings.Contains(body, "ratelimit_redis_pool_cx_local_close 0\n")
	})
	until(t, "the loss is an error", func() bool {
		_, err := replicas[0].rls.ShouldRateLimit(context.Background(), request("d", "day", "y", 1))
		return status.Code(err) == codes.Unknown
	})
	_, body = replicas[0].get("debug-port", "/stats")
	assert.NotContains(t, body, "redis_error: 0\n")
}

func TestStoreAddresses(t *testing.T) {
	for _, test := range []struct {
		server redisServer
		want   string
		err    string
	}{
		{redisServer{name: "REDIS", url: "a:1", kind: "SINGLE"}, "redis://a:1", ""},
		{redisServer{name: "REDIS", url: "redis://a:1", kind: "single"}, "redis://a:1", ""},
		{redisServer{name: "REDIS", url: "redis://:p%40w@a", kind: "SINGLE"}, "redis://:p%40w@a:6379", ""},
		{redisServer{name: "REDIS", url: "rediss://u:pw@a:1/2", kind: "SINGLE"}, "rediss://u:pw@a:1/2", ""},
		{redisServer{name: "REDIS", url: "m,redis://:pw@a:1,b:2", kind: "SENTINEL"}, "redis://:pw@a:1?addr=b%3A2&master_set=m", ""},
		{redisServer{name: "REDIS", url: "redis://:pw@a:1", kind: "SINGLE", auth: "pw"}, "redis://:pw@a:1", ""},
		{redisServer{name: "REDIS", url: "redis://:secret@a:1", kind: "SINGLE", auth: "pw"}, "", "server 1 has another user or password than REDIS_AUTH"},
		{redisServer{name: "REDIS", url: "redis://:sec/ret@a:1", kind: "SINGLE"}, "", "in a password write %40"},
		{redisServer{name: "REDIS", url: "unix://a:1", kind: "SINGLE"}, "", "server 1 is not redis://"},
		{redisServer{name: "REDIS", url: "a:1", kind: "SINGLE", auth: "p w"}, "redis://:p%20w@a:1", ""},
		{redisServer{name: "REDIS", url: "a:1", kind: "SINGLE", auth: "u:p:w", tls: true}, "rediss://u:p%3Aw@a:1", ""},
		{redisServer{name: "REDIS", url: "m,a:1,b:2", kind: "SENTINEL"}, "redis://a:1?addr=b%3A2&master_set=m", ""},
		{redisServer{name: "REDIS", url: "a:1,b:2", kind: "CLUSTER"}, "redis://a:1?addr=b%3A2", ""},
		{redisServer{name: "REDIS", url: "a:1", kind: "CLUSTER"}, "redis://a:1?addr=a%3A1", ""},
		{redisServer{name: "REDIS", url: "a:1,b:2", kind: "SINGLE"}, "", "REDIS_URL names 2 servers with REDIS_TYPE=SINGLE: want one"},
		{redisServer{name: "REDIS", url: "m", kind: "SENTINEL"}, "", "want the name of the master"},
		{redisServer{name: "REDIS", url: "a", kind: "SINGLE"}, "", "REDIS_URL: server 1 is not host:port"},
		{redisServer{name: "REDIS", url: "a:1?db=2", kind: "SINGLE"}, "", "REDIS_URL: server 1 is not host:port"},
		{redisServer{name: "REDIS", url: "redis://a:1,rediss://b:2?skip_verify=1", kind: "CLUSTER"}, "", "REDIS_URL: server 2 has something after ? or #"},
		{redisServer{name: "REDIS", url: "redis://a:1#b", kind: "SINGLE"}, "", "REDIS_URL: server 1 has something after ? or #"},
		{redisServer{name: "REDIS", url: "redis://a:1?", kind: "SINGLE"}, "", "REDIS_URL: server 1 has something after ? or #"},
		{redisServer{name: "REDIS", url: "/var/run/redis.sock", kind: "SINGLE"}, "", "want host:port and tcp"},
		{redisServer{name: "REDIS_PERSECOND", url: "a:1", kind: "SINGLE", socket: "unix"}, "",
			"REDIS_PERSECOND_URL=a:1 with REDIS_PERSECOND_SOCKET_TYPE=unix: want host:port and tcp"},
	} {
		got, err := test.server.address()
		if test.err != "" {
			assert.ErrorContains(t, err, test.err)
			assert.NotContains(t, fmt.Sprint(err), "sec")
			continue
		}
		assert.NoError(t, err)
		assert.Equal(t, test.want, got)
	}
}

// TestPerSecond: limits per second are in the second store, all others in the first.
func TestPerSecond(t *testing.T) {
	first, stopFirst := startRedis(t)
	second, _ := startRedis(t)
	root := write(t, map[string]string{"a.yaml": `
domain: d
descriptors:
  - {key: second, rate_limit: {unit: second, requests_per_unit: 1000000}}
  - {key: day, rate_limit: {unit: day, requests_per_unit: 1000000}}
`})
	r := start(t, nil, "--runtime-root="+root, "--redis-url="+first, "--redis-auth=sesame", "--redis-timeout=1s", "--redis-persecond",
		"--redis-persecond-url=redis://:sesame@"+second)
	ask := func(key string) error {
		_, err := r.rls.ShouldRateLimit(context.Background(), request("d", key, "x", 1))
		return err
	}
	assert.NoError(t, ask("second"))
	assert.NoError(t, ask("day"))
	stopFirst()
	until(t, "the loss is an error", func() bool { return ask("day") != nil })
	assert.NoError(t, ask("second"))

	assert.ErrorContains(t, parse(t, "--redis-persecond", "--redis-url="+second).serve(context.Background(), os.Stderr),
		"REDIS_PERSECOND without REDIS_PERSECOND_URL: want")
}

// TestNoAddress: it is an error if a flag or variable suggests a Redis, but there is no address.
func TestNoAddress(t *testing.T) {
	none := &parse(t).storeFlags
	_, err := none.open(context.Background(), slog.Default(), []string{"PATH=/bin", "REDIS_TLS=false", "REDIS_URL="})
	assert.NoError(t, err)
	for _, test := range []struct {
		args        []string
		environment []string
		names       string
	}{
		{nil, []string{"REDIS_POOL_SIZE=5", "REDIS_AUTH=x"}, "REDIS_AUTH, REDIS_POOL_SIZE"},
		{nil, []string{"BACKEND_TYPE=redis"}, "BACKEND_TYPE"},
		{[]string{"--redis-persecond"}, []string{"REDIS_PERSECOND=true"}, "REDIS_PERSECOND"},
		{[]string{"--redis-persecond-url=a:1"}, nil, "REDIS_PERSECOND_URL"},
		{[]string{"--redis-auth=x", "--redis-type=CLUSTER"}, nil, "REDIS_AUTH, REDIS_TYPE"},
		{[]string{"--cache-key-prefix=x", "--local-cache-size-in-bytes=9"}, nil, "CACHE_KEY_PREFIX, LOCAL_CACHE_SIZE_IN_BYTES"},
	} {
		_, err := parse(t, test.args...).open(context.Background(), slog.Default(), test.environment)
		assert.EqualError(t, err, "REDIS_URL is not set, but "+test.names+": set its address, or remove them to count in memory")
	}
}

// TestStoreComesLate: the program waits for a store that does not answer at the start.
func TestStoreComesLate(t *testing.T) {
	port := freeport.Number(t)
	root := write(t, map[string]string{"a.yaml": file})
	args := []string{"--runtime-root=" + root, fmt.Sprintf("--redis-url=127.0.0.1:%d", port), "--redis-timeout=10s"}
	err := parse(t, append(args, "--redis-startup-max-elapsed-time=1ms")...).serve(context.Background(), os.Stderr)
	assert.ErrorIs(t, err, redislimit.ErrStore)
	err = parse(t, append(args, "--redis-startup-initial-interval=0s")...).serve(context.Background(), os.Stderr)
	assert.ErrorContains(t, err, "REDIS_STARTUP_INITIAL_INTERVAL=0s: want a millisecond or more")
	err = parse(t, append(args, "--redis-persecond-timeout=11s", "--redis-persecond", "--redis-persecond-url=127.0.0.1:1",
		"--redis-timeout=11s")...).serve(context.Background(), os.Stderr)
	assert.ErrorContains(t, err, "redislimit: Timeout(11s): want 1ms to 10s") // the error came at once, without retries

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.NoError(t, parse(t, args...).serve(ctx, os.Stderr)) // the program gets a SIGTERM while it waits

	said := &lines{}
	log := slog.New(slog.NewTextHandler(said, nil))
	opened := make(chan error, 1)
	flags := parse(t, append(args, "--redis-startup-initial-interval=1ms", "--redis-startup-max-interval=10ms")...)
	go func() {
		shared, err := flags.open(context.Background(), log, nil)
		shared.close()
		opened <- err
	}()
	until(t, "the wait is logged", func() bool { return strings.Contains(said.String(), "the start waits for it") })
	runRedis(t, port, "--port", fmt.Sprint(port), "--save", "")
	assert.NoError(t, <-opened)
}

// TestStartsWithoutItsStore: with REDIS_ON_LOSS open or share, the program starts without its store and reports this.
// It uses the store as soon as the store answers. The store is then charged for the tokens that were admitted from
// shares.
func TestStartsWithoutItsStore(t *testing.T) {
	for _, loss := range []string{"share", "open"} {
		port := freeport.Number(t)
		root := write(t, map[string]string{"a.yaml": strings.Replace(file, "requests_per_unit: 3", "requests_per_unit: 10", 1)})
		r := start(t, nil, "--runtime-root="+root, fmt.Sprintf("--redis-url=127.0.0.1:%d", port), "--redis-on-loss="+loss, "--replicas=2")
		passed := 0
		for range 20 {
			response, err := r.rls.ShouldRateLimit(t.Context(), request("d", "day", "x", 1))
			require.NoError(t, err)
			if response.GetOverallCode() == rlsv3.RateLimitResponse_OK {
				passed++
			}
		}
		assert.Equal(t, map[string]int{"share": 5, "open": 20}[loss], passed)
		_, body := r.get("debug-port", "/stats")
		assert.Contains(t, body, "ratelimit.service.without_store: 20\n")
		_, body = r.get("debug-port", "/metrics")
		assert.Contains(t, body, "weir_store_lost_parts 1\n")

		runRedis(t, port, "--port", fmt.Sprint(port), "--save", "")
		left := uint32(10 - map[string]int{"share": 5}[loss])
		look := request("d", "day", "x", 0)
		look.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
		until(t, "the store is joined", func() bool {
			response, err := r.rls.ShouldRateLimit(t.Context(), look)
			return err == nil && response.GetStatuses()[0].GetLimitRemaining() == left
		})
	}
}

// TestDebtsOfAStore: names of files with debts depend on the stores, and contain no password.
func TestDebtsOfAStore(t *testing.T) {
	of := func(url string) string {
		f := storeFlags{RedisURL: url, State: "/state"}
		return f.debts()
	}
	assert.Empty(t, new(storeFlags).debts())
	assert.Regexp(t, "^/state/envoy-[0-9a-f]{16}$", of("a:6379"))
	assert.Equal(t, of("redis://:one@a:6379"), of("redis://:two@a:6379"))
	assert.NotEqual(t, of("a:6379"), of("b:6379"))
	assert.NotEqual(t, of("m,a:1,a:2"), of("m,a:1,a:3"))
}

type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestSentinelPassword: sentinels have a separate password.
func TestSentinelPassword(t *testing.T) {
	master, _ := startRedis(t)
	host, port, err := net.SplitHostPort(master)
	require.NoError(t, err)
	settings := filepath.Join(t.TempDir(), "sentinel.conf")
	require.NoError(t, os.WriteFile(settings, fmt.Appendf(nil, "sentinel monitor m %s %s 1\nsentinel auth-pass m sesame\n", host, port), 0o600))
	at := freeport.Number(t)
	runRedis(t, at, settings, "--sentinel", "--port", fmt.Sprint(at), "--requirepass", "gate")
	open := func(args ...string) error {
		flags := parse(t, append(args, fmt.Sprintf("--redis-url=m,127.0.0.1:%d", at), "--redis-type=SENTINEL", "--redis-auth=sesame",
			"--redis-timeout=10s", "--redis-startup-max-elapsed-time=1ms")...)
		opened, err := flags.open(context.Background(), slog.New(slog.DiscardHandler), nil)
		opened.close()
		return err
	}
	assert.ErrorContains(t, open(), "NOAUTH")
	assert.ErrorContains(t, open("--redis-sentinel-auth=wrong"), "WRONGPASS")
	assert.NoError(t, open("--redis-sentinel-auth=gate"))
	assert.NoError(t, open("--redis-sentinel-auth=default:gate"))
	flags := parse(t, "--redis-url="+master, "--redis-auth=sesame", "--redis-sentinel-auth=gate")
	_, err = flags.open(context.Background(), slog.Default(), nil)
	assert.ErrorContains(t, err, "SentinelUser: the address has no master_set")
}

// TestAnyName: with a flag, a server's certificate may have any name. The CA must still be the right one.
func TestAnyName(t *testing.T) {
	right, wrong := newAuthority(t), newAuthority(t)
	certificate, key := right.sign("somewhere.else")
	port := freeport.Number(t)
	runRedis(t, port, "--port", "0", "--tls-port", fmt.Sprint(port), "--tls-cert-file", certificate, "--tls-key-file", key,
		"--tls-ca-cert-file", right.file, "--tls-auth-clients", "no", "--save", "")
	open := func(args ...string) error {
		flags := parse(t, append(args, fmt.Sprintf("--redis-url=127.0.0.1:%d", port), "--redis-tls", "--redis-timeout=10s",
			"--redis-startup-max-elapsed-time=1ms")...)
		opened, err := flags.open(context.Background(), slog.New(slog.DiscardHandler), nil)
		opened.close()
		return err
	}
	assert.ErrorContains(t, open("--redis-tls-ca="+right.file), "x509: ")
	assert.NoError(t, open("--redis-tls-ca="+right.file, "--redis-tls-skip-hostname-verification"))
	assert.ErrorContains(t, open("--redis-tls-ca="+wrong.file, "--redis-tls-skip-hostname-verification"), "x509: ")
}

// TestAnExpiredCertificate: the log reports a store's expired certificate, at the start and later.
func TestAnExpiredCertificate(t *testing.T) {
	ca := newAuthority(t)
	port := freeport.Number(t)
	run := func(end time.Time) (stop func()) {
		certificate, key := ca.signUntil("localhost", end)
		return runRedis(t, port, "--port", "0", "--tls-port", fmt.Sprint(port), "--tls-cert-file", certificate, "--tls-key-file", key,
			"--tls-ca-cert-file", ca.file, "--tls-auth-clients", "no", "--save", "")
	}
	for _, loss := range []string{"closed", "share"} {
		stop := run(time.Now().Add(time.Hour))
		args := []string{"--runtime-root=" + write(t, map[string]string{"a.yaml": file}), fmt.Sprintf("--redis-url=localhost:%d", port),
			"--redis-tls", "--redis-tls-ca=" + ca.file, "--redis-on-loss=" + loss, "--replicas=2", "--drain=1ms"}
		r := start(t, nil, args...)
		stop()
		stop = run(time.Now().Add(-time.Minute))
		until(t, "the certificate is named", func() bool {
			_, _ = r.rls.ShouldRateLimit(t.Context(), request("d", "day", "x", 1))
			return regexp.MustCompile(`lost" kind=certificate error=".*certificate has expired`).MatchString(r.log())
		})
		require.NoError(t, r.end())
		err := parse(t, append(args, "--redis-startup-max-elapsed-time=1ms")...).serve(t.Context(), os.Stderr)
		assert.ErrorContains(t, err, "certificate has expired", loss)
		stop()
	}
}
