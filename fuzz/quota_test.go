package fuzz

import (
	"math"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/reference"
)

// A granting is a quota with the cost of a token in exact time.
type granting struct {
	quota engine.Quota
	token *big.Rat // nanoseconds
	limit uint64
}

// drawQuota draws a quota that the limiter l accepts. The argument perNano is the number of the limiter's ticks in a
// nanosecond.
func drawQuota(t *rapid.T, l *engine.Limiter, perNano int64) granting {
	period := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t, "period")
	tokens := rapid.Int64Range(1, 100_000).Draw(t, "tokens")
	most := min(uint64(time.Hour/period)*uint64(tokens), 1<<32)
	limit := rapid.Uint64Range(1, most).Draw(t, "limit")
	quota, err := l.Quota(engine.TokenBucket(engine.Per(float64(tokens), period), limit))
	require.NoError(t, err)
	// A token costs a whole number of ticks, rounded up.
	ticks := (int64(period)*perNano + tokens - 1) / tokens
	return granting{quota, big.NewRat(ticks, perNano), limit}
}

// TestQuotasAgainstExactTime (I1, I2, I7): every field of every answer follows from a single exact debt per key, in
// tokens. Each key has many limits, while time passes and records are forgotten.
func TestQuotasAgainstExactTime(t *testing.T) {
	for name, c := range map[string]struct {
		longest time.Duration
		perNano int64
	}{"a sixteenth": {2 * time.Hour, 16}, "a nanosecond": {20 * 24 * time.Hour, 1}} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var clock atomic.Int64
				clock.Store(noon)
				l, err := engine.New(engine.TokenBuckets(c.longest), engine.MaxKeys(10), engine.Shards(1), engine.SweepInterval(24*time.Hour),
					engine.ClockFunc(func() time.Time { return time.Unix(0, clock.Load()) }))
				require.NoError(t, err)
				defer l.Close()
				tick := big.NewRat(1, c.perNano)
				debts := map[string]*reference.Debt{
					"ann": reference.NewDebt(tick), "bob": reference.NewDebt(tick), "cid": reference.NewDebt(tick),
				}
				keys := rapid.SampledFrom([]string{"ann", "bob", "cid"})
				quotas := []granting{drawQuota(t, l, c.perNano), drawQuota(t, l, c.perNano)}
				t.Repeat(map[string]func(*rapid.T){
					"quota": func(t *rapid.T) { quotas = append(quotas, drawQuota(t, l, c.perNano)) },
					"take": func(t *rapid.T) {
						key, q, now := keys.Draw(t, "key"), rapid.SampledFrom(quotas).Draw(t, "quota"), clock.Load()
						m, n := debts[key], drawCost(t, q.limit)
						if rapid.IntRange(0, 19).Draw(t, "odd") == 0 {
							n = q.limit + rapid.SampledFrom([]uint64{1, math.MaxUint64 - 1<<33}).Draw(t, "too much")
						}
						want := engine.Decision{Limit: q.limit, RetryAfter: engine.Never}
						if n <= q.limit {
							want.RetryAfter = 0
							if want.Allowed = m.Take(now, q.token, n, q.limit); !want.Allowed {
								want.RetryAfter = time.Duration(m.RetryAfter(now, q.token, n, q.limit))
							}
						}
						want.Remaining = m.Remaining(now, q.token, q.limit)
						owed := m.Owed(now)
						want.ResetAfter = time.Duration(new(big.Int).Quo(new(big.Int).Add(owed.Num(), new(big.Int).Sub(owed.Denom(), big.NewInt(1))), owed.Denom()).Int64())
						k := l.Key(key).With(q.quota)
						if n > 0 && rapid.Bool().Draw(t, "peek first") {
							require.Equal(t, want.Allowed, l.Peek(k, n).Allowed)
						}
						require.Equal(t, want, l.TakeKey(k, n), "%s takes %d of %d", key, n, q.limit)
					},
					"reset": func(t *rapid.T) {
						key := keys.Draw(t, "key")
						debts[key].Reset()
						l.Reset(l.Key(key))
					},
					"sweep": func(t *rapid.T) { l.Sweep() },
					"time": func(t *rapid.T) {
						clock.Add(int64(math.Ldexp(rapid.Float64Range(0, 1).Draw(t, "part"), rapid.IntRange(0, 42).Draw(t, "bits"))))
					},
				})
			})
		})
	}
}
