//go:build unix

package redislimit_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// The memory of a key in the store does not exceed the figure in docs/distributed.md.
func TestMemoryOfAKey(t *testing.T) {
	server := redistest.Start(t)
	client := patient(t, server.URL())
	policies := algorithms()
	for _, limit := range []uint64{10, 1000, 4096} {
		policies["sliding log of "+strconv.Itoa(int(limit))] = engine.SlidingLog(limit, time.Hour)
	}
	for name, policy := range policies {
		server.Do("FLUSHALL")
		l, err := redislimit.New(client, name, policy, redislimit.OnLoss(redislimit.FailClosed))
		require.NoError(t, err)
		for _, n := range []uint64{policy.Limit() - 5, 1, 1, 1, 1, 1} { // a log has room to grow
			require.True(t, take(t, l, "192.0.2.1", n).Allowed)
		}
		bytes, err := strconv.Atoi(server.Do("MEMORY", "USAGE", keysOf(server)[0], "SAMPLES", "0"))
		require.NoError(t, err)
		t.Logf("%s: %d bytes", name, bytes)
		most := 200
		if policy.Algorithm() == engine.AlgorithmSlidingLog {
			most += 18 * int(policy.Limit())
		}
		assert.LessOrEqual(t, bytes, most, name)
		require.NoError(t, l.Close())
	}
}

func keysOf(server *redistest.Server) []string {
	return strings.FieldsFunc(server.Do("KEYS", "weir:{*"), func(r rune) bool { return r == '\n' })
}

// Calls of large logs carry few keys, so that the server has time for other limits between them.
func TestCallsOfLargeLogsAreShort(t *testing.T) {
	client := patient(t, redistest.Start(t).URL())
	for limit, most := range map[uint64]float64{4096: 8, 1000: 32, 10: 64} {
		l := limiter(t, client, engine.SlidingLog(limit, time.Hour), redislimit.OnLoss(redislimit.FailClosed))
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
