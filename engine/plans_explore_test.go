//go:build explore

package engine

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/shard"
)

// coarseAndFine are two policies whose ticks differ, so that a number in the wrong ticks is noticed.
var coarseAndFine = [2]Policy{TokenBucket(PerSecond(1), 5), TokenBucket(Per(16, 15*time.Microsecond), 5)}

func coarseOrFine(t *testing.T, first int, options ...Option) *Limiter {
	l, _ := newLimiter(t, coarseAndFine[first], append(options, MaxKeys(10), Shards(1), SweepInterval(24*time.Hour))...)
	return l
}

// TestAQuotaIsRememberedByItsOwnPlanAtEveryStep (R28): for a quota made during a change of the policy, the table
// remembers no more than that quota.
func TestAQuotaIsRememberedByItsOwnPlanAtEveryStep(t *testing.T) {
	const hours = 30
	for first := range 2 {
		for changes := 1; changes <= 2; changes++ {
			interleave.Inject(func() (call, other func(), check func(string)) {
				l := coarseOrFine(t, first, MaxQuota(10))
				return func() {
						_, err := l.Quota(TokenBucket(Per(1, time.Hour), hours))
						require.NoError(t, err)
					},
					func() {
						for i := range changes {
							require.NoError(t, l.SetPolicy(coarseAndFine[(first+i+1)%2]))
						}
					},
					func(what string) { require.Zero(t, l.table.Largest(), what) }
			})
		}
	}
}

// TestOwedIsOfOnePlanAtEveryStep: if the policy changes during Owed, Owed reports the same debt.
func TestOwedIsOfOnePlanAtEveryStep(t *testing.T) {
	for first := range 2 {
		for changes := 1; changes <= 2; changes++ {
			interleave.Inject(func() (call, other func(), check func(string)) {
				l := coarseOrFine(t, first, MaxQuota(10))
				quota, err := l.Quota(TokenBucket(Per(1, time.Hour), 10))
				require.NoError(t, err)
				k := l.KeyUint64(1)
				require.True(t, l.TakeKey(k.With(quota), 4).Allowed)
				var owed uint64
				return func() { owed, _ = l.Owed(k) },
					func() {
						for i := range changes {
							require.NoError(t, l.SetPolicy(coarseAndFine[(first+i+1)%2]))
						}
					},
					func(what string) { require.EqualValues(t, 4, owed, what) }
			})
		}
	}
}

// TestTooMuchBesideAHigherLimitAtEveryStep: a refused request above a limit that is raised meanwhile gets a RetryAfter
// above 0.
func TestTooMuchBesideAHigherLimitAtEveryStep(t *testing.T) {
	for _, p := range []Policy{TokenBucket(PerSecond(1), 5), FixedWindow(5, time.Minute), SlidingLog(5, time.Minute)} {
		interleave.Inject(func() (call, other func(), check func(string)) {
			l, _ := newLimiter(t, p, Tiers(p), MaxQuota(20), MaxKeys(10), Shards(1), SweepInterval(24*time.Hour))
			higher := p
			higher.limit = 20
			if p.algorithm == AlgorithmSlidingLog {
				l, _ = newLimiter(t, p, Tiers(higher), MaxKeys(10), Shards(1), SweepInterval(24*time.Hour))
			}
			var d Decision
			return func() { d = l.TakeKey(l.KeyUint64(1), 10) },
				func() { require.NoError(t, l.SetPolicy(higher, higher)) },
				func(what string) {
					if !d.Allowed {
						require.Contains(t, []time.Duration{1, Never}, d.RetryAfter, what)
					}
				}
		})
	}
}

// TestATableLivesAsLongAsItsCalls: the garbage collector frees no table during a call of its limiter.
func TestATableLivesAsLongAsItsCalls(t *testing.T) {
	for name, verb := range map[string]func(l *Limiter, k Key){
		"Allow":       func(l *Limiter, _ Key) { l.Allow("text") },
		"AllowKey":    func(l *Limiter, k Key) { l.AllowKey(k) },
		"TakeKey":     func(l *Limiter, k Key) { l.TakeKey(k, 1) },
		"all of it":   func(l *Limiter, k Key) { l.TakeKey(k, 5) },
		"TakeAt":      func(l *Limiter, k Key) { l.TakeAt(k, 1, time.Unix(1_700_000_000, 0)) },
		"TakeReceipt": func(l *Limiter, k Key) { l.TakeReceipt(k, 1) },
		"Hold":        func(l *Limiter, k Key) { l.Hold(k, 9) },
		"HoldUpTo":    func(l *Limiter, k Key) { l.HoldUpTo(k, 1, 2) },
		"Charge":      func(l *Limiter, k Key) { l.Charge(k, 1) },
		"Peek":        func(l *Limiter, k Key) { l.Peek(k, 1) },
		"Refund":      func(l *Limiter, k Key) { l.Refund(k, 1) },
		"a receipt":   func(l *Limiter, k Key) { _, r := l.TakeReceipt(k, 1); r.Release() },
		"Reset":       func(l *Limiter, k Key) { l.Reset(k) },
		"Reserve":     func(l *Limiter, k Key) { _, _, _ = l.Reserve(k, 5, time.Minute) },
		"Owed":        func(l *Limiter, k Key) { l.Owed(k) },
		"Sweep":       func(l *Limiter, _ Key) { l.Sweep() },
		"SetPolicy":   func(l *Limiter, _ Key) { _ = l.SetPolicy(TokenBucket(PerSecond(2), 5)) },
	} {
		for situation := range 4 {
			taken, quota := uint64(situation&1), situation&2 > 0
			t.Run(fmt.Sprintf("%s, %d taken, quota %v", name, taken, quota), func(t *testing.T) {
				interleave.Inject(func() (call, other func(), check func(string)) {
					handed, table, k, gone := handedOver(t, taken, quota)
					lost := false
					return func() { verb(handed(), k) },
						func() {
							runtime.GC()
							if !gone() {
								return // the call refers to the limiter, and with it to the table
							}
							runtime.GC()
							runtime.GC()
							lost = table.Value() == nil
						},
						func(what string) { require.False(t, lost, what) }
				})
			})
		}
	}
}

// handedOver makes a limiter to which only the caller of handed refers. gone reports whether the limiter was collected.
func handedOver(t *testing.T, taken uint64, quota bool) (handed func() *Limiter, table weak.Pointer[shard.Table], k Key, gone func() bool) {
	now := func() time.Time { return time.Unix(1_700_000_000, 0) }
	l, err := New(TokenBucket(PerSecond(1), 5), MaxKeys(10), Shards(1), SweepInterval(24*time.Hour), ClockFunc(now))
	require.NoError(t, err)
	k = l.KeyUint64(1)
	if quota {
		k = k.With(quotaOf(t, l, TokenBucket(PerSecond(1), 6)))
	}
	l.TakeKey(k, taken)
	require.NoError(t, l.Close()) // otherwise the sweeper would refer to the table
	collected := make(chan struct{})
	runtime.AddCleanup(l, func(collected chan struct{}) { close(collected) }, collected)
	limiter, table := weak.Make(l), weak.Make(l.table)
	return func() (last *Limiter) {
			last, l = l, nil
			return last
		}, table, k, func() bool {
			if limiter.Value() != nil {
				return false
			}
			<-collected
			return true
		}
}
