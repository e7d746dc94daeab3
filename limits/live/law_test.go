package live_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits/live"
)

// A lawful has a policy, its rate in tokens per second, and its burst, the most tokens at one moment.
type lawful struct {
	policy      engine.Policy
	rate, burst float64
}

func bucket(rate float64, burst uint64) lawful {
	return lawful{engine.TokenBucket(engine.PerSecond(rate), burst), rate, float64(burst)}
}

// windowed returns a limit with a burst of 2n tokens: n at the end of one window, and n in the next.
func windowed(of func(uint64, time.Duration) engine.Policy, n uint64, seconds int) lawful {
	return lawful{of(n, time.Duration(seconds)*time.Second), float64(n) / float64(seconds), 2 * float64(n)}
}

type admission struct {
	at time.Duration
	n  int
}

// checkLaw checks that in every interval no more is admitted than the highest burst and the highest rate allow.
func checkLaw(t *testing.T, limits []lawful, admitted []admission) {
	t.Helper()
	var rate, burst float64
	for _, l := range limits {
		rate, burst = max(rate, l.rate), max(burst, l.burst)
	}
	for i, first := range admitted {
		sum := 0
		for _, last := range admitted[i:] {
			sum += last.n
			if most := burst + rate*(last.at-first.at).Seconds() + 1; float64(sum) > most {
				require.Fail(t, "too much", "%d of %.1f from %v to %v", sum, most, first.at, last.at)
			}
		}
	}
}

func limitsOfLaw() []lawful {
	return []lawful{
		bucket(10, 100), bucket(10, 4), bucket(2, 100), bucket(1, 5),
		windowed(engine.FixedWindow, 10, 1), windowed(engine.FixedWindow, 6, 3),
		windowed(engine.SlidingWindow, 10, 1), windowed(engine.SlidingWindow, 6, 3),
		windowed(engine.SlidingLog, 10, 1), windowed(engine.SlidingLog, 6, 3),
	}
}

// TestADebtComesBackOnce: a debt that is in two limiters comes back at the faster of their rates, not at the sum.
func TestADebtComesBackOnce(t *testing.T) {
	const step, steps = 70 * time.Millisecond, 50
	for _, first := range limitsOfLaw()[:4] {
		for _, second := range limitsOfLaw() {
			for _, how := range []string{"released", "still used", "the same again"} {
				clock := testclock.New()
				began, sum := clock.Now(), 0
				var admitted []admission
				takeAll := func(l *live.Limiter) {
					n := 0
					for take(l, "a", 0) {
						n++
					}
					sum += n
					admitted = append(admitted, admission{clock.Now().Sub(began), n})
				}
				limiter := live.New(newLimiter(t, clock, first.policy, engine.MaxKeys(500)))
				takeAll(limiter)
				third := newLimiter(t, clock, first.policy, engine.MaxKeys(500))
				if how == "the same again" {
					third = limiter.Limiter
				}
				for _, p := range []*engine.Limiter{newLimiter(t, clock, second.policy, engine.MaxKeys(500)), third} {
					next := replace(t, limiter, p)
					if how != "still used" {
						limiter.Release()
					}
					limiter = next
					for range steps {
						takeAll(limiter)
						clock.Advance(step)
					}
				}
				takeAll(limiter)
				t.Run(fmt.Sprint(first.policy, ", ", second.policy, ", ", how), func(t *testing.T) {
					checkLaw(t, []lawful{first, second}, admitted)
					if passed := (steps * step).Seconds(); first.burst > second.burst {
						least := first.burst + (second.rate+first.rate)*passed - float64(second.policy.Limit()) - 1
						require.GreaterOrEqual(t, float64(sum), least, "the debt comes back at the rate of the second")
					}
				})
			}
		}
	}
}
