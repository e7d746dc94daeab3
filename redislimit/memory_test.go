//go:build unix

package redislimit_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// What a key costs in the store, as docs/distributed.md states it: 200 bytes, and 128 more for each token of a log.
func TestMemoryOfAKey(t *testing.T) {
	server := redistest.Start(t)
	client := patient(t, server.URL())
	policies := algorithms()
	for _, limit := range []uint64{10, 1000, 4096} {
		policies["sliding log of "+strconv.Itoa(int(limit))] = engine.SlidingLog(limit, time.Hour)
	}
	for name, policy := range policies {
		server.Do("FLUSHALL")
		l, err := redislimit.New(client, name, policy, redislimit.OnFailure(redislimit.FailClosed))
		require.NoError(t, err)
		require.True(t, take(t, l, "192.0.2.1", policy.Limit()).Allowed)
		bytes, err := strconv.Atoi(server.Do("MEMORY", "USAGE", server.Do("RANDOMKEY"), "SAMPLES", "0"))
		require.NoError(t, err)
		t.Logf("%s: %d bytes", name, bytes)
		most := 200
		if policy.Algorithm() == engine.AlgorithmSlidingLog {
			most += 128 * int(policy.Limit())
		}
		assert.LessOrEqual(t, bytes, most, name)
		require.NoError(t, l.Close())
	}
}

// Calls of large logs carry few keys, so that the server has time for other limits between them.
func TestCallsOfLargeLogsAreShort(t *testing.T) {
	client := patient(t, redistest.Start(t).URL())
	for limit, most := range map[uint64]float64{4096: 1, 1000: 4, 10: 64} {
		l := limiter(t, client, engine.SlidingLog(limit, time.Hour), redislimit.OnFailure(redislimit.FailClosed))
		before := client.Health()
		var all sync.WaitGroup
		for i := range 300 {
			all.Go(func() { take(t, l, strconv.Itoa(i), 1) })
		}
		all.Wait()
		h := client.Health()
		assert.LessOrEqual(t, float64(h.Keys-before.Keys)/float64(h.Calls-before.Calls), most, "%d", limit)
	}
}
