package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// startRedis runs a redis-server with a password until the test ends, and returns its address.
func startRedis(t *testing.T) (address string, stop func()) {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("needs redis-server: ", err)
	}
	port := freePorts(t, "redis")["redis"]
	command := exec.Command(program, "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--save", "", "--requirepass", "sesame",
		"--dir", t.TempDir())
	require.NoError(t, command.Start())
	var once sync.Once
	stop = func() { once.Do(func() { _ = command.Process.Kill(); _ = command.Wait() }) }
	t.Cleanup(stop)
	address = fmt.Sprintf("127.0.0.1:%d", port)
	until(t, "redis-server answers", func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
	return address, stop
}

// TestReplicas: two programs over one store count together, exactly, and say when it is lost.
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

	for i := range 20 { // descriptors of one counter are counted in order
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

	stop()
	until(t, "the loss is an error", func() bool {
		_, err := replicas[0].rls.ShouldRateLimit(context.Background(), request("d", "day", "y", 1))
		return status.Code(err) == codes.Unknown
	})
	_, body := replicas[0].get("debug-port", "/stats")
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
		{redisServer{name: "REDIS", url: "a:1", kind: "SINGLE", auth: "p w"}, "redis://:p%20w@a:1", ""},
		{redisServer{name: "REDIS", url: "a:1", kind: "SINGLE", auth: "u:p:w", tls: true}, "rediss://u:p%3Aw@a:1", ""},
		{redisServer{name: "REDIS", url: "m,a:1,b:2", kind: "SENTINEL"}, "redis://a:1?addr=b%3A2&master_set=m", ""},
		{redisServer{name: "REDIS", url: "a:1,b:2", kind: "CLUSTER"}, "redis://a:1?addr=b%3A2", ""},
		{redisServer{name: "REDIS", url: "a:1", kind: "CLUSTER"}, "redis://a:1?addr=a%3A1", ""},
		{redisServer{name: "REDIS", url: "a:1,b:2", kind: "SINGLE"}, "", "REDIS_URL names 2 servers with REDIS_TYPE=SINGLE: want one"},
		{redisServer{name: "REDIS", url: "m", kind: "SENTINEL"}, "", "want the name of the master"},
		{redisServer{name: "REDIS", url: "a", kind: "SINGLE"}, "", "REDIS_URL: server 1 is not host:port"},
		{redisServer{name: "REDIS", url: "/var/run/redis.sock", kind: "SINGLE"}, "", "want host:port and tcp"},
		{redisServer{name: "REDIS_PERSECOND", url: "a:1", kind: "SINGLE", socket: "unix"}, "",
			"REDIS_PERSECOND_URL=a:1 with REDIS_PERSECOND_SOCKET_TYPE=unix: want host:port and tcp"},
	} {
		got, err := test.server.address()
		if test.err != "" {
			assert.ErrorContains(t, err, test.err)
			continue
		}
		assert.NoError(t, err)
		assert.Equal(t, test.want, got)
	}
}

// TestPerSecond: limits per second are in a store of their own, all others in the first.
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
		"--redis-persecond-url="+second, "--redis-persecond-auth=sesame")
	ask := func(key string) error {
		_, err := r.rls.ShouldRateLimit(context.Background(), request("d", key, "x", 1))
		return err
	}
	assert.NoError(t, ask("second"))
	assert.NoError(t, ask("day"))
	stopFirst()
	until(t, "the loss is an error", func() bool { return ask("day") != nil })
	assert.NoError(t, ask("second"))

	for want, args := range map[string][]string{
		"REDIS_PERSECOND without REDIS_URL: want":           {"--redis-persecond", "--redis-persecond-url=a:1"},
		"REDIS_PERSECOND without REDIS_PERSECOND_URL: want": {"--redis-persecond", "--redis-url=" + second},
	} {
		assert.ErrorContains(t, parse(t, args...).serve(context.Background(), os.Stderr), want)
	}
	// Its address alone changes nothing, as in the reference.
	opened, err := (&storeFlags{PerSecondURL: "a:1"}).open(context.Background(), slog.Default())
	assert.NoError(t, err)
	assert.Equal(t, stores{}, opened)
}

// TestLeases: with REPLICAS token buckets of many tokens are decided from leases, others and windows by the store.
func TestLeases(t *testing.T) {
	address, _ := startRedis(t)
	root := write(t, map[string]string{"a.yaml": `
domain: d
descriptors:
  - {key: fast, rate_limit: {unit: second, requests_per_unit: 100000, algorithm: token-bucket}}
  - {key: slow, rate_limit: {unit: hour, requests_per_unit: 10, algorithm: token-bucket}}
  - {key: day, rate_limit: {unit: day, requests_per_unit: 100000}}
`})
	_, state := start(t, nil, "--runtime-root="+root, "--redis-url="+address, "--redis-auth=sesame", "--redis-timeout=10s").get("debug-port", "/state.json")
	assert.Equal(t, 3, strings.Count(state, `"mode":"strict"`), state)

	r := start(t, nil, "--runtime-root="+root, "--redis-url="+address, "--redis-auth=sesame", "--redis-timeout=10s", "--replicas=2", "--debug-reset",
		"--debug-keys=full")
	_, state = r.get("debug-port", "/state.json")
	assert.Equal(t, 2, strings.Count(state, `"mode":"strict"`), state)
	assert.Equal(t, 1, strings.Count(state, `"mode":"leased"`), state)
	for range 300 {
		for _, key := range []string{"fast", "slow", "day"} {
			_, err := r.rls.ShouldRateLimit(context.Background(), request("d", key, "a b", 1))
			require.NoError(t, err)
		}
	}
	// A counter in the store is looked at and reset by what is typed and by what is listed.
	const slow = `{"rule":"d.slow","parts":["a b"]}`
	_, typed := r.post("/key/peek", slow)
	assert.Contains(t, typed, `"recorded":true,"limit":10,"remaining":0,`)
	_, state = r.get("debug-port", "/state.json")
	assert.Contains(t, state, `"key":"slow=\"a b\""`)
	hash := regexp.MustCompile(`"key":"slow=[^}]*"hash":"([0-9a-f]{16})"`).FindStringSubmatch(state)
	require.NotNil(t, hash, state)
	_, listed := r.post("/key/reset", fmt.Sprintf(`{"rule":"d.slow","hash":%q}`, hash[1]))
	assert.Contains(t, listed, `"recorded":true,"limit":10,"remaining":10,`)
	_, day := r.post("/key/peek", `{"rule":"d.day","parts":["a b"]}`)
	assert.Contains(t, day, `"limit":100000,"remaining":99700,`)

	err := parse(t, "--replicas=2").serve(context.Background(), os.Stderr)
	assert.ErrorContains(t, err, "Replicas of 2 without a Store")
}
