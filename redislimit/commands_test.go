//go:build unix

package redislimit_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// The server executes nothing but scripts, and each script uses only declared keys.
func TestWhatTheServerCarriesOut(t *testing.T) {
	t.Parallel()
	server := redistest.StartWithClock(t, noon)
	store := patient(t, server.URL())
	policies := fast()
	policies["leased"] = engine.TokenBucket(engine.PerSecond(1000), 400)
	policies["leased window"] = engine.FixedWindow(1000, time.Second)
	var commands []redistest.Command
	for name, policy := range policies {
		l, err := redislimit.New(store, name, policy, redislimit.OnLoss(redislimit.FailClosed))
		require.NoError(t, err)
		require.Equal(t, strings.HasPrefix(name, "leased"), l.Mode() == redislimit.Leased, name)
		commands = append(commands, server.Monitor(func() {
			for i := range 100 {
				_, err := l.Take(t.Context(), strconv.Itoa(i%5), uint64(i%4)+1)
				require.NoError(t, err)
				if i%10 == 9 {
					require.NoError(t, l.Refund(t.Context(), strconv.Itoa(i%5), 1))
				}
			}
			// Leases are also given back here.
			require.Eventually(t, func() bool { s := l.Stats(); return s.Leases == 0 && s.Debt == 0 }, 10*time.Second, time.Millisecond)
		})...)
		require.NoError(t, l.Close())
	}

	node, scripts, writes := time.Now(), 0, 0
	var declared, bare []string // declared by the current script, and written without a time to live
	for _, c := range commands {
		require.NotEmpty(t, c.Words)
		name, key := strings.ToLower(c.Words[0]), strings.Join(c.Words[1:min(2, len(c.Words))], "")
		if !c.InScript {
			assert.Empty(t, bare, "keys without a time to live after a script")
			declared, bare = nil, nil
			switch name {
			case "eval", "evalsha":
				scripts++
				count, err := strconv.Atoi(c.Words[2])
				require.NoError(t, err)
				declared = c.Words[3 : 3+count]
				for _, argument := range c.Words[3+count:] {
					assert.False(t, isAbout(argument, node), "a node's time is in a call: %q", c.Words)
				}
			case "hello", "client", "echo", "exists":
			case "info": // the server's eviction policy, for which the client asks in the background
			case "set":
				assert.Contains(t, key, "weir:settings:")
				assert.Equal(t, "PX", c.Words[4], "%q", c.Words)
			default:
				assert.Fail(t, "not a script", "%q", c.Words)
			}
			continue
		}
		if name == "time" {
			continue
		}
		assert.Contains(t, declared, key, "a script touches a key that its call does not declare: %q", c.Words)
		switch name {
		case "set":
			writes++
			require.Len(t, c.Words, 5, "%q", c.Words)
			assert.Equal(t, "PX", c.Words[3])
			assert.NotEqual(t, "-", c.Words[4][:1])
		case "append":
			writes++
			bare = append(bare, key)
		case "pexpire":
			bare = slices.DeleteFunc(bare, func(k string) bool { return k == key })
		case "get", "del", "strlen", "getrange":
		default:
			assert.Fail(t, "a command that this test does not know", "%q", c.Words)
		}
	}
	assert.Greater(t, scripts, 100)
	assert.Greater(t, writes, 100)
}

// isAbout reports whether a number could be a Unix time, in any unit, within a year of the given time.
func isAbout(number string, at time.Time) bool {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return false
	}
	for unit := float64(time.Second); unit >= 1; unit /= 1000 {
		if math.Abs(n*unit-float64(at.UnixNano())) < float64(365*24*time.Hour) {
			return true
		}
	}
	return false
}

// In a flood of random keys, the number of leases is bounded.
func TestFloodOfRandomKeys(t *testing.T) {
	server := redistest.Start(t)
	store := patient(t, server.URL())
	l := limiter(t, store, engine.TokenBucket(engine.PerSecond(1000), 400), redislimit.OnLoss(redislimit.FailClosed))
	require.Equal(t, redislimit.Leased, l.Mode())
	tried := evaluations(t, server)
	for i := range 50_000 {
		require.True(t, l.Allow(strconv.Itoa(i)))
	}
	assert.Equal(t, tried, evaluations(t, server))
	assert.Empty(t, keysOf(server))
	require.Eventually(t, func() bool { _ = l.Allow("comes back"); return len(keysOf(server)) == 1 }, 10*time.Second, time.Millisecond)

	const most = 10
	few, err := redislimit.New(store, "few", engine.TokenBucket(engine.Per(360_000, time.Hour), 400), redislimit.OnLoss(redislimit.FailClosed), redislimit.MaxKeys(most))
	require.NoError(t, err)
	defer func() { assert.NoError(t, few.Close()) }()
	require.Equal(t, redislimit.Leased, few.Mode())
	decided := 0
	require.Eventually(t, func() bool {
		for i := range 3 * most {
			before := store.Health().Keys
			require.NoError(t, errOf(few.Take(t.Context(), "many "+strconv.Itoa(i), 1)))
			if store.Health().Keys > before {
				decided++
			}
		}
		assert.LessOrEqual(t, few.Stats().Leases, most)
		return few.Stats().Leases == most && decided > 10*most
	}, 20*time.Second, time.Millisecond)
}
