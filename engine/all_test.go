package engine

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testrace"
)

func pinned(t testing.TB, now *time.Time, policy Policy, options ...Option) *Limiter {
	l, err := New(policy, append(options, MaxKeys(1000), ClockFunc(func() time.Time { return *now }))...)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func TestAllOrNothing(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	second, hour := pinned(t, &now, TokenBucket(PerSecond(10), 10)), pinned(t, &now, FixedWindow(25, time.Hour))
	everybody := pinned(t, &now, SlidingLog(100, time.Minute))
	ask := func(n uint64) Decision {
		d, err := all(Request{Limiter: second, Key: second.Key("ann"), N: n}, Request{Limiter: hour, Key: hour.Key("ann"), N: n},
			Request{Limiter: everybody, Key: everybody.Key(""), N: 1})
		require.NoError(t, err)
		return d
	}
	require.Equal(t, Decision{Allowed: true, Limit: 10, Remaining: 0, ResetAfter: time.Second}, ask(10))
	require.Equal(t, Decision{Limit: 10, RetryAfter: 100 * time.Millisecond, ResetAfter: time.Second}, ask(1))
	require.Equal(t, uint64(15), hour.Peek(hour.Key("ann"), 1).Remaining, "given back")
	require.Equal(t, uint64(99), everybody.Peek(everybody.Key(""), 1).Remaining, "not asked")
	now = now.Add(time.Second)
	require.True(t, ask(10).Allowed)
	d := ask(10) // both refuse, and the hour is the longer wait
	require.False(t, d.Allowed)
	require.Equal(t, time.Hour-time.Second, d.RetryAfter)
	require.Equal(t, uint64(25), d.Limit)
	now = now.Add(time.Second)
	d = ask(6)
	require.False(t, d.Allowed)
	require.Equal(t, time.Hour-2*time.Second, d.RetryAfter)
	require.Equal(t, uint64(10), second.Peek(second.Key("ann"), 1).Remaining, "given back")
	require.Equal(t, Never, ask(26).RetryAfter)
	require.Equal(t, uint64(98), everybody.Peek(everybody.Key(""), 1).Remaining)
}

// TestTakeAllSaysNothingOfTheCallBefore: a reused slice of answers has only the answers of the latest call.
func TestTakeAllSaysNothingOfTheCallBefore(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := pinned(t, &now, TokenBucket(PerSecond(10), 10), MaxQuota(3))
	quota, err := l.Quota(TokenBucket(PerSecond(1), 3))
	require.NoError(t, err)
	for _, k := range []Key{l.Key("ann"), l.Key("bob").With(quota)} {
		requests, answers := []Request{{Limiter: l, Key: k, N: 2}}, make([]Answer, 1)
		used := []Answer{{Decision: Decision{Limit: 1e6, Remaining: 1e6, RetryAfter: time.Hour, ResetAfter: time.Hour}}}
		_, err := TakeAll(requests, answers)
		require.NoError(t, err)
		other := answers[0]
		answers[0].Receipt.Refund(2)
		_, err = TakeAll(requests, used)
		require.NoError(t, err)
		require.Equal(t, other.Decision, used[0].Decision)
	}
}

// TestARefusedTakeAllHasNoReceipt: a refused call leaves no receipts in a reused slice of answers.
func TestARefusedTakeAllHasNoReceipt(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := pinned(t, &now, TokenBucket(PerSecond(1), 3))
	requests, answers := []Request{{Limiter: l, Key: l.Key("ann"), N: 2}}, make([]Answer, 1)
	for _, left := range []uint64{2, 0} {
		allowed, err := TakeAll(requests, answers)
		require.NoError(t, err)
		require.Equal(t, left, answers[0].Receipt.Taken())
		require.Equal(t, left > 0, allowed)
	}
}

func TestTakeAllOfManyRequests(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := pinned(t, &now, TokenBucket(PerSecond(1), 1))
	requests, answers := make([]Request, 64), make([]Answer, 64)
	for i := range requests {
		requests[i] = Request{Limiter: l, Key: l.KeyUint64(uint64(i)), N: 1}
	}
	allowed, err := TakeAll(requests, answers)
	require.NoError(t, err)
	require.True(t, allowed)
}

// TakeAll gives back nothing for a request that was admitted without a record.
func TestAllGivesBackOnlyWhatWasTaken(t *testing.T) {
	testrace.OneGoroutine(t)
	now := time.Unix(1_700_000_000, 0)
	full := pinned(t, &now, TokenBucket(Per(1, time.Hour), 5), Overflow(Admit))
	for i := range uint64(100_000) {
		full.TakeKey(full.KeyUint64(i), 1)
	}
	require.Positive(t, full.Stats().Unrecorded)
	empty := pinned(t, &now, TokenBucket(Per(1, time.Hour), 1))
	require.True(t, empty.Allow("k"))
	for i := range uint64(1000) {
		before := full.Peek(full.KeyUint64(i), 1).Remaining
		d, err := all(Request{Limiter: full, Key: full.KeyUint64(i), N: 1}, Request{Limiter: empty, Key: empty.Key("k"), N: 1})
		require.NoError(t, err)
		require.False(t, d.Allowed)
		require.Equal(t, before, full.Peek(full.KeyUint64(i), 1).Remaining)
	}
}

func TestAllRefuses(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l, m := pinned(t, &now, TokenBucket(PerSecond(1), 5)), pinned(t, &now, TokenBucket(PerSecond(1), 5))
	_, err := all()
	require.ErrorContains(t, err, "0 requests")
	_, err = all(make([]Request, 65)...)
	require.ErrorContains(t, err, "65 requests")
	_, err = all(Request{Limiter: l, Key: l.Key("k"), N: 1}, Request{Limiter: nil, Key: l.Key("k"), N: 1})
	require.ErrorContains(t, err, "request 2 of 2 has no limiter")
	_, err = all(Request{Limiter: l, Key: l.Key("k"), N: 1}, Request{Limiter: m, Key: l.Key("k"), N: 1}, Request{Limiter: l, Key: l.Key("k").Tier(1), N: 1})
	require.ErrorContains(t, err, "requests 1 and 3 of 3 are for the same key")
	require.Equal(t, uint64(5), l.Peek(l.Key("k"), 1).Remaining)
	_, err = all(Request{Limiter: l, Key: l.Key("k"), N: 1}, Request{Limiter: m, Key: l.Key("k"), N: 1}, Request{Limiter: l, Key: l.Key("j"), N: 1})
	require.NoError(t, err)
}

// Goroutines that take from two limits in opposite order do not hang and do not exceed a limit.
func TestAllInOppositeOrders(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for range 50 {
		a, b := pinned(t, &now, TokenBucket(Per(1, time.Hour), 50)), pinned(t, &now, SlidingLog(30, time.Hour))
		var passed atomic.Uint64
		var callers sync.WaitGroup
		for g := range 8 {
			callers.Go(func() {
				requests := []Request{{Limiter: a, Key: a.Key("k"), N: 1}, {Limiter: b, Key: b.Key("k"), N: 1}}
				if g%2 == 1 {
					requests[0], requests[1] = requests[1], requests[0]
				}
				for range 20 {
					if d, err := all(requests...); err == nil && d.Allowed {
						passed.Add(1)
					}
				}
			})
		}
		callers.Wait()
		require.LessOrEqual(t, passed.Load(), uint64(30))
		assert.Equal(t, 50-passed.Load(), a.Peek(a.Key("k"), 1).Remaining)
		assert.Equal(t, 30-passed.Load(), b.Peek(b.Key("k"), 1).Remaining)
	}
}

// hooked returns a limiter that calls the argument of next when it reads its clock the next time.
func hooked(t *testing.T, policy Policy) (l *Limiter, next func(func())) {
	var then atomic.Pointer[func()]
	l, err := New(policy, MaxKeys(1), SweepInterval(24*time.Hour), ClockFunc(func() time.Time {
		if call := then.Swap(nil); call != nil {
			(*call)()
		}
		return time.Unix(1_700_000_000, 0)
	}))
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l, func(call func()) { then.Store(&call) }
}

// TestWhatTakeAllsSeeOfEachOther: a call may be refused because of tokens that another call will give back.
func TestWhatTakeAllsSeeOfEachOther(t *testing.T) {
	one := func(l *Limiter) Request { return Request{Limiter: l, Key: l.Key("k"), N: 1} }
	hour, plenty := TokenBucket(Per(1, time.Hour), 1), TokenBucket(PerSecond(100), 100)
	t.Run("a bystander", func(t *testing.T) {
		a, _ := hooked(t, hour)
		middle, whenAsked := hooked(t, plenty)
		b, _ := hooked(t, hour)
		require.True(t, b.Allow("k"))
		asked := false
		whenAsked(func() {
			asked = true
			assert.Equal(t, Decision{Limit: 1, RetryAfter: time.Hour, ResetAfter: time.Hour}, a.Take("k", 1), "as if the token was gone")
		})
		d, err := all(one(a), one(middle), one(b))
		require.NoError(t, err)
		require.False(t, d.Allowed)
		require.True(t, asked)
		assert.True(t, a.Allow("k"), "it is there again when the call has returned")
	})
	t.Run("opposite orders", func(t *testing.T) {
		a, whenRead := hooked(t, FixedWindow(1, time.Hour)) // a fixed window reads its clock to give back
		middle, whenAsked := hooked(t, plenty)
		other, whenOther := hooked(t, plenty)
		b, _ := hooked(t, hour)
		goOn, done := make(chan struct{}), make(chan Decision)
		whenAsked(func() {
			hasB := make(chan struct{})
			whenOther(func() { close(hasB); <-goOn })
			go func() {
				d, err := all(one(b), one(other), one(a))
				assert.NoError(t, err)
				done <- d
			}()
			<-hasB
			whenRead(func() { // b has refused, and a is about to get its token back
				close(goOn)
				assert.False(t, (<-done).Allowed, "a has nothing yet")
			})
		})
		d, err := all(one(a), one(middle), one(b))
		require.NoError(t, err)
		assert.False(t, d.Allowed, "although either call alone would have passed")
		assert.True(t, a.Allow("k"))
		assert.True(t, b.Allow("k"))
	})
	t.Run("the same order", func(t *testing.T) {
		a, _ := hooked(t, hour)
		middle, whenAsked := hooked(t, plenty)
		b, _ := hooked(t, hour)
		whenAsked(func() {
			d, err := all(one(a), one(b))
			assert.NoError(t, err)
			assert.False(t, d.Allowed)
		})
		d, err := all(one(a), one(middle), one(b))
		require.NoError(t, err)
		assert.True(t, d.Allowed, "of calls in one order, one gets the last tokens")
	})
}

// TestTakeAllsInOneOrder: concurrent calls in the same order of limits are admitted as often as calls one after the
// other.
func TestTakeAllsInOneOrder(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for range 100 {
		a, b := pinned(t, &now, TokenBucket(Per(1, time.Hour), 9)), pinned(t, &now, SlidingLog(7, time.Hour))
		var passed atomic.Uint64
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for range 5 {
					d, err := all(Request{Limiter: a, Key: a.Key("k"), N: 1}, Request{Limiter: b, Key: b.Key("k"), N: 1})
					if assert.NoError(t, err) && d.Allowed {
						passed.Add(1)
					}
				}
			})
		}
		callers.Wait()
		require.EqualValues(t, 7, passed.Load())
	}
}

func TestTakeBatch(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, policy := range []Policy{TokenBucket(PerSecond(1), 3), SlidingLog(3, time.Minute),
		FixedWindow(3, time.Minute)} {
		batch, loop := pinned(t, &now, policy, HashStable()), pinned(t, &now, policy, HashStable())
		var keys []Key
		for i := range 500 {
			keys = append(keys, batch.Key(fmt.Sprint(i%130)))
		}
		decisions := make([]Decision, len(keys)+1)
		require.NoError(t, batch.TakeBatch(keys, 1, decisions))
		for i, k := range keys {
			require.Equal(t, loop.TakeKey(k, 1), decisions[i])
		}
		require.Zero(t, decisions[len(keys)])
		require.NoError(t, batch.TakeBatch(nil, 1, nil))
		require.ErrorContains(t, batch.TakeBatch(keys, 1, decisions[:9]), "500 keys and room for 9")
		require.Zero(t, testalloc.PerCall(func() { _ = batch.TakeBatch(keys, 1, decisions) }))
	}
}
