package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestOverdrawInStore: in every mode of the store, a charge beyond the limit counts for all replicas.
func TestOverdrawInStore(t *testing.T) {
	address, _ := startRedis(t)
	root := write(t, map[string]string{"a.yaml": `
domain: d
descriptors:
  - {key: bucket, rate_limit: {unit: day, requests_per_unit: 10, algorithm: token-bucket, overdraw: true}}
  - {key: leased, rate_limit: {unit: second, requests_per_unit: 1000, burst: 10000000, algorithm: token-bucket, overdraw: true}}
  - {key: window, rate_limit: {unit: year, requests_per_unit: 10, algorithm: sliding-window, overdraw: true}}
  - {key: log, rate_limit: {unit: year, requests_per_unit: 10, algorithm: sliding-log, overdraw: true}}
  - {key: fixed, rate_limit: {unit: year, requests_per_unit: 10, overdraw: true}}
`})
	args := []string{"--runtime-root=" + root, "--redis-url=" + address, "--redis-auth=sesame", "--redis-timeout=10s", "--replicas=2"}
	one, other := start(t, nil, args...), start(t, nil, args...)
	ask := func(r *running, key string, hits uint64) rlsv3.RateLimitResponse_Code {
		question := request("d", key, "x", 1)
		question.Descriptors[0].HitsAddend = wrapperspb.UInt64(hits)
		response, err := r.rls.ShouldRateLimit(context.Background(), question)
		require.NoError(t, err)
		return response.GetOverallCode()
	}
	for key, limit := range map[string]uint64{"bucket": 10, "leased": 10_000_000, "window": 10, "log": 10, "fixed": 10} {
		assert.Equal(t, rlsv3.RateLimitResponse_OK, ask(one, key, 0), key)
		assert.Equal(t, rlsv3.RateLimitResponse_OK, ask(one, key, limit-1), key)
		assert.Equal(t, rlsv3.RateLimitResponse_OVER_LIMIT, ask(one, key, limit), key)
		assert.Equal(t, rlsv3.RateLimitResponse_OVER_LIMIT, ask(other, key, 0), "%s: it is overdrawn for all", key)
		assert.Equal(t, rlsv3.RateLimitResponse_OVER_LIMIT, ask(one, key, 0), key)
	}
}

// TestLocalCache: if a window is known to be exceeded, requests are refused without a call to the store, and are not
// counted.
func TestLocalCache(t *testing.T) {
	address, stop := startRedis(t)
	root := write(t, map[string]string{"a.yaml": file})
	r := start(t, nil, "--runtime-root="+root, "--redis-url="+address, "--redis-auth=sesame", "--redis-timeout=10s",
		"--local-cache-size-in-bytes=100000", "--debug-reset", "--debug-keys=full")
	for _, want := range []int{2, 1, 0, -1, -1, -1} {
		assert.Equal(t, want, r.left("day", "x"))
	}
	_, body := r.get("debug-port", "/stats")
	assert.Contains(t, body, "d.day.over_limit: 3\n")
	assert.Contains(t, body, "d.day.over_limit_with_local_cache: 2\n")
	_, _ = r.post("/key/reset", `{"rule":"d.day","parts":["x"]}`)
	assert.Equal(t, 2, r.left("day", "x"), "a reset counter is not remembered")
	for range 3 {
		r.left("day", "x")
	}
	stop()
	assert.Equal(t, -1, r.left("day", "x"))
	until(t, "other counters need the store", func() bool {
		_, err := r.rls.ShouldRateLimit(context.Background(), request("d", "day", "y", 1))
		return err != nil
	})
	assert.Equal(t, -1, r.left("day", "x"))
}

// TestLeases: with REPLICAS, large token buckets are decided from leases. All other limits are decided by the store.
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
	// For a counter in the store, the page can peek at a typed value. It can reset a refused counter by its hash.
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
