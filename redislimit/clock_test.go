//go:build unix

package redislimit_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// noon is long before the clocks of the nodes, and the beginning of a window.
var noon = time.Date(2010, 1, 2, 12, 0, 0, 0, time.UTC)

const (
	tenPerSecond = 10
	window       = time.Second
)

func fast() map[string]engine.Policy {
	return map[string]engine.Policy{
		"token bucket":   engine.TokenBucket(engine.PerSecond(tenPerSecond), tenPerSecond),
		"fixed window":   engine.FixedWindow(tenPerSecond, window),
		"aligned window": engine.FixedWindow(tenPerSecond, window).Aligned(),
		"sliding window": engine.SlidingWindow(tenPerSecond, window),
		"sliding log":    engine.SlidingLog(tenPerSecond, window),
	}
}

// The function all takes tokens until a request is refused.
func all(t *testing.T, l *redislimit.Limiter, key string) (took int, refusal engine.Decision) {
	t.Helper()
	for {
		d := take(t, l, key, 1)
		if !d.Allowed {
			return took, d
		}
		took++
		require.LessOrEqual(t, took, 100*tenPerSecond)
	}
}

// If the server's clock jumps forward by J, a key gets at most rate*J tokens, and at most one burst.
func TestServersClockJumps(t *testing.T) {
	server := redistest.StartWithClock(t, noon)
	store := patient(t, server.URL())
	for name, policy := range fast() {
		for _, jump := range []time.Duration{
			time.Millisecond, 300 * time.Millisecond, time.Second, time.Hour, 1000 * 24 * time.Hour,
			-time.Millisecond, -300 * time.Millisecond, -time.Second, -time.Hour, -1000 * 24 * time.Hour,
		} {
			t.Run(name+" "+jump.String(), func(t *testing.T) {
				server.Do("FLUSHALL")
				at := noon
				server.SetClock(at)
				l := limiter(t, store, policy, redislimit.OnLoss(redislimit.FailClosed), redislimit.InMode(redislimit.Strict), redislimit.TrustRefusals(0))
				took, _ := all(t, l, "k")
				require.Equal(t, tenPerSecond, took)

				at = at.Add(jump)
				server.SetClock(at)
				took, refusal := all(t, l, "k")
				switch {
				case jump < 0:
					assert.Zero(t, took, "a clock that went back admits something")
				case name == "token bucket":
					assert.Equal(t, int(min(tenPerSecond*jump.Seconds(), tenPerSecond)), took)
				case jump < window:
					assert.Zero(t, took, "the window is not over")
				case name == "sliding window" && jump == window:
					assert.Zero(t, took, "all of the window before is inside still")
				default:
					assert.Equal(t, tenPerSecond, took)
				}
				assert.LessOrEqual(t, refusal.RetryAfter, 2*window+time.Microsecond, "a jump locked the key")
				if jump < 0 && name == "token bucket" {
					assert.Equal(t, window/tenPerSecond, refusal.RetryAfter, "going back costs more than what had come back")
				}
				assert.Positive(t, refusal.RetryAfter)
				for _, key := range keysOf(server) {
					life, err := strconv.Atoi(server.Do("PTTL", key))
					require.NoError(t, err)
					assert.Positive(t, life, "a key lives for ever")
					assert.LessOrEqual(t, life, 3002, "a key lives for longer than its state can be of use")
				}

				server.SetClock(at.Add(refusal.RetryAfter - time.Microsecond))
				assert.False(t, take(t, l, "k", 1).Allowed)
				server.SetClock(at.Add(refusal.RetryAfter))
				assert.True(t, take(t, l, "k", 1).Allowed, "RetryAfter is exact")
				server.SetClock(at.Add(time.Minute))
				assert.Empty(t, keysOf(server), "an idle key stays")
			})
		}
	}
}

// The bound of TestServersClockJumps also applies to leases.
func TestServersClockJumpsUnderLeases(t *testing.T) {
	const limit, nodes, overdraft = 1000, 2, 8
	server := redistest.StartWithClock(t, noon)
	policy := engine.TokenBucket(engine.PerSecond(limit), limit)
	var each [nodes]*redislimit.Limiter
	for i := range each {
		each[i] = limiter(t, patient(t, server.URL()), policy, redislimit.Nodes(nodes), redislimit.Overdraft(overdraft), redislimit.OnLoss(redislimit.FailClosed))
		require.Equal(t, redislimit.Leased, each[i].Mode())
	}
	admitted := 0
	use := func(want int) { // takes until the number want of tokens is admitted, and a while longer
		t.Helper()
		more := 0
		require.Eventually(t, func() bool {
			for _, l := range each {
				for l.Allow("k") {
					admitted++
				}
			}
			if admitted >= want {
				more++
			}
			return more > 100
		}, 20*time.Second, time.Millisecond, "%d admitted of %d", admitted, want)
	}
	// A renewal gets at most a quarter of the tokens that are left.
	const leftOver = 4 * nodes
	use(limit - leftOver)
	assert.LessOrEqual(t, admitted, limit+nodes*overdraft)
	at, expected := noon, limit
	for _, jump := range []time.Duration{300 * time.Millisecond, -300 * time.Millisecond, time.Hour, -time.Hour} {
		at = at.Add(jump)
		server.SetClock(at)
		if jump > 0 {
			expected += int(min(limit*jump.Seconds(), limit))
		}
		use(expected - leftOver)
		assert.LessOrEqual(t, admitted, expected+nodes*overdraft, "after a jump of %v", jump)
	}
}

// No key of a real server ends before its state does.
func TestNoKeyEndsBeforeItsState(t *testing.T) {
	server := redistest.StartWithClock(t, noon)
	store := patient(t, server.URL())
	policies := fast()
	policies["97 a second"] = engine.TokenBucket(engine.PerSecond(97), 50)
	policies["burst of 1"] = engine.TokenBucket(engine.PerSecond(333), 1)
	policies["a million a second"] = engine.TokenBucket(engine.PerSecond(1e6), 5)
	policies["short window"] = engine.FixedWindow(5, 1700*time.Microsecond)
	policies["short sliding window"] = engine.SlidingWindow(5, 1700*time.Microsecond)
	policies["short log"] = engine.SlidingLog(5, 1700*time.Microsecond)
	steps := 120
	if testing.Short() {
		steps = 50
	}
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			l := limiter(t, store, policy, redislimit.OnLoss(redislimit.FailClosed), redislimit.InMode(redislimit.Strict), redislimit.TrustRefusals(0))
			limit, err := script.NewLimit(policy, script.Terms{})
			require.NoError(t, err)
			random := rand.New(rand.NewPCG(1, 2))
			var model script.Model
			at, allowed, ended := noon, 0, 0
			server.SetClock(at)
			rate := policy.Rate()
			period := time.Duration(float64(rate.Period) * float64(policy.Limit()) / rate.Tokens) // until all is back
			for i := range steps {
				switch random.IntN(4) {
				case 0:
				case 1:
					at = at.Add(time.Duration(random.Int64N(int64(2*period))) + time.Microsecond)
				default:
					at = at.Add(time.Duration(random.Int64N(int64(period/4))) + time.Microsecond)
				}
				at = at.Truncate(time.Microsecond)
				server.SetClock(at)
				if server.Do("KEYS", "*:=k") == "" {
					ended++
				}
				n := random.Uint64N(policy.Limit()) + 1
				want := model.Ask(limit, at.UnixMicro(), script.Ask{Need: n, Want: n})
				got := take(t, l, "k", n)
				require.Equal(t, engine.Decision{
					Allowed: want.Granted == n, Limit: policy.Limit(), Remaining: want.Remaining, RetryAfter: want.RetryAfter, ResetAfter: want.ResetAfter,
				}, got, "step %d at %v: %d tokens", i, at, n)
				if got.Allowed {
					allowed++
				}
			}
			assert.Greater(t, allowed, steps/10)
			assert.Positive(t, ended, "no key ever ended")
			server.Do("FLUSHALL")
		})
	}
}
