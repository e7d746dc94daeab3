package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testrace"
)

// TestCancelMintsNoTokens (I1): if some reservations are canceled, the others are due at least a token's time apart.
func TestCancelMintsNoTokens(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 1))
	var instants []time.Duration
	for range 50 {
		first, err := l.ahead(l.Key("k"), 1, Never)
		require.NoError(t, err)
		second, err := l.ahead(l.Key("k"), 1, Never)
		require.NoError(t, err)
		first.Release()
		instants = append(instants, second.delay)
	}
	third, err := l.ahead(l.Key("k"), 1, Never)
	require.NoError(t, err)
	instants = append(instants, third.delay)
	for i, at := range instants[1:] {
		require.GreaterOrEqual(t, at, instants[i]+time.Second, "reservation %d", i+1)
	}
	_ = h
}

// TestCancelledWaitersLetNobodyThrough (I1): if half of the waiting callers give up, the others are not admitted
// faster.
func TestCancelledWaitersLetNobodyThrough(t *testing.T) {
	inBubble(t, TokenBucket(PerSecond(1), 1), func(t *testing.T, l *Limiter) {
		begin := time.Now()
		require.True(t, l.Allow("k"))
		admitted := 0
		var lock sync.Mutex
		var all sync.WaitGroup
		for range 30 {
			ctx, cancel := context.WithCancel(t.Context())
			all.Go(func() { _ = l.Wait(ctx, "k", 1) })
			synctest.Wait()
			all.Go(func() {
				if l.Wait(t.Context(), "k", 1) == nil {
					lock.Lock()
					defer lock.Unlock()
					admitted++
					assert.GreaterOrEqual(t, time.Since(begin), time.Duration(admitted)*time.Second)
				}
			})
			synctest.Wait()
			cancel()
			synctest.Wait()
		}
		all.Wait()
		assert.Equal(t, 30, admitted)
	})
}

// TestCancelGivesBackTheLastReservation: reservations that are released from the end of the queue give back all tokens,
// once.
func TestCancelGivesBackTheLastReservation(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 2))
	require.True(t, l.Take("k", 2).Allowed)
	before := l.Peek(l.Key("k"), 1)
	var line []*reserved
	for range 5 {
		r, err := l.ahead(l.Key("k"), 1, Never)
		require.NoError(t, err)
		line = append(line, r)
	}
	for i := range line {
		line[len(line)-1-i].Release()
		line[len(line)-1-i].Release()
	}
	require.Equal(t, before, l.Peek(l.Key("k"), 1))
}

// TestAllThatIsRefusedLetsNoneThroughLater (I1): if another limit refuses a request, the log forgets exactly this
// request.
func TestAllThatIsRefusedLetsNoneThroughLater(t *testing.T) {
	l, h := newLimiter(t, SlidingLog(2, 10*time.Second))
	d, own := l.TakeReceipt(l.Key("k"), 1)
	require.True(t, d.Allowed)
	h.advance(9 * time.Second)
	require.True(t, l.Allow("k"))
	own.Refund(1)
	own.Refund(1)
	require.EqualValues(t, 1, l.Peek(l.Key("k"), 0).Remaining)
	h.advance(time.Second)
	require.True(t, l.Allow("k"))
	require.False(t, l.Allow("k"), "two lie in the last ten seconds")
	require.Equal(t, 9*time.Second, l.Peek(l.Key("k"), 1).RetryAfter)
}

// TestRefundOfFailedLoginsIsNoWayIn (I1): a refund without a receipt never lets a log admit more than the limit.
func TestRefundOfFailedLoginsIsNoWayIn(t *testing.T) {
	l, h := newLimiter(t, SlidingLog(2, 10*time.Second))
	require.True(t, l.Allow("k"))
	h.advance(9 * time.Second)
	require.True(t, l.Allow("k"))
	l.Refund(l.Key("k"), 1)
	h.advance(time.Second)
	require.True(t, l.Allow("k"))
	require.False(t, l.Allow("k"))
}

// TestLateRefundsGiveNothingBack (I1): after the window of a take, a refund gives nothing back.
func TestLateRefundsGiveNothingBack(t *testing.T) {
	for name, policy := range map[string]Policy{
		"bucket": TokenBucket(PerSecond(1), 10), "batch": BatchRefill(10, 10*time.Second, 10),
		"fixed": FixedWindow(10, 10*time.Second), "aligned": FixedWindow(10, 10*time.Second).Aligned(),
		"sliding": SlidingWindow(10, 5*time.Second), "log": SlidingLog(10, 10*time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			l, h := newLimiter(t, policy)
			d, early := l.TakeReceipt(l.Key("k"), 10)
			require.True(t, d.Allowed)
			h.advance(10 * time.Second)
			require.True(t, l.Take("k", 10).Allowed)
			early.Refund(10)
			require.False(t, l.Allow("k"))
		})
	}
}

// A granted has the number of tokens that a client took at one time and has not given back.
type granted struct {
	at int64
	n  uint64
}

// TestARefundBehindATimeAhead (I1): a refund forgets no request that is still in the window by the limiter's clock.
func TestARefundBehindATimeAhead(t *testing.T) {
	l, h := newLimiter(t, SlidingLog(3, time.Second))
	k, begun := l.Key("k"), h.now()
	require.True(t, l.TakeKey(k, 1).Allowed)
	h.advance(300 * time.Millisecond)
	require.True(t, l.TakeKey(k, 1).Allowed)
	h.advance(400 * time.Millisecond)
	require.True(t, l.TakeAt(k, 1, begun.Add(1100*time.Millisecond)).Allowed)
	l.Refund(k, 1)
	require.True(t, l.TakeKey(k, 1).Allowed, "the third in this second that is not given back")
	require.False(t, l.TakeKey(k, 1).Allowed, "the fourth")
}

// TestReceiptsNeverLetThroughMoreThanTheLimit (I1): with random takes and refunds, the tokens taken and not given back
// in any window are within the limit.
func TestReceiptsNeverLetThroughMoreThanTheLimit(t *testing.T) {
	testrace.OneGoroutine(t)
	const limit, length = 7, 70 * time.Second
	for name, policy := range map[string]Policy{
		"bucket": TokenBucket(Per(limit, length), limit), "rounded": TokenBucket(Per(limit, length+1), limit),
		"log": SlidingLog(limit, length), "fixed": FixedWindow(limit, length),
		"aligned": FixedWindow(limit, length).Aligned(),
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3000) {
				random := rand.New(rand.NewPCG(seed, 9))
				l, h := newLimiter(t, policy)
				type one struct {
					granted
					receipt Receipt
				}
				var kept []one
				for range 40 {
					h.advance(time.Duration(random.Int64N(int64(25 * time.Second))))
					if i := len(kept); i > 0 && random.IntN(2) == 0 {
						i -= 1 + random.IntN(min(i, 5))
						n := 1 + random.Uint64N(kept[i].n)
						kept[i].receipt.Refund(n)
						if kept[i].n -= n; kept[i].n == 0 {
							kept = append(kept[:i], kept[i+1:]...)
						}
						continue
					}
					n := 1 + random.Uint64N(4)
					if d, r := l.TakeReceipt(l.Key("k"), n); d.Allowed {
						kept = append(kept, one{granted{h.now().UnixNano(), n}, r})
					}
				}
				for i := range kept {
					sum := uint64(0)
					for j := i; j < len(kept); j++ {
						sum += kept[j].n
						passed := time.Duration(kept[j].at - kept[i].at)
						requireWithin(t, name, sum, limit, passed, length, kept[i].at, kept[j].at, seed)
					}
				}
			}
		})
	}
}

// requireWithin requires that the limit allows a sum of tokens between two instants.
func requireWithin(t *testing.T, name string, sum, limit uint64, passed, length time.Duration, from, to int64,
	seed uint64) {
	t.Helper()
	switch name {
	case "bucket", "rounded":
		require.LessOrEqual(t, float64(sum), float64(limit)*(1+float64(passed)/float64(length))+1e-6, "round %d", seed)
	case "log":
		if passed < length {
			require.LessOrEqual(t, sum, limit, "round %d", seed)
		}
	case "fixed": // two windows may overlap with the interval
		require.LessOrEqual(t, sum, limit*(uint64(passed/length)+2), "round %d", seed)
	case "aligned":
		require.LessOrEqual(t, sum, limit*uint64(to/int64(length)-from/int64(length)+1), "round %d", seed)
	default:
		require.Fail(t, fmt.Sprint("no bound for ", name))
	}
}

// TestRefusedTakeAllLeavesNoTrace: a refused TakeAll changes no limit and begins no window.
func TestRefusedTakeAllLeavesNoTrace(t *testing.T) {
	for _, a := range algorithms {
		t.Run(a.name, func(t *testing.T) {
			l, h := newLimiter(t, a.policy(100))
			empty, _ := newLimiter(t, TokenBucket(Per(1, time.Hour), 1))
			require.True(t, empty.Allow("k"))
			answers := make([]Answer, 3)
			other, _ := newLimiter(t, a.policy(5))
			allowed, err := TakeAll([]Request{{Limiter: l, Key: l.Key("k"), N: 3}, {Limiter: empty, Key: empty.Key("k"), N: 1},
				{Limiter: other, Key: other.Key("k"), N: 2}}, answers)
			require.NoError(t, err)
			require.False(t, allowed)
			require.Equal(t, []bool{true, false, true}, []bool{answers[0].Decision.Allowed, answers[1].Decision.Allowed,
				answers[2].Decision.Allowed})
			require.Equal(t, l.Peek(l.Key("fresh"), 3), answers[0].Decision)
			require.Equal(t, empty.Peek(empty.Key("k"), 1), answers[1].Decision)
			require.Equal(t, other.Peek(other.Key("fresh"), 2), answers[2].Decision)
			h.advance(time.Nanosecond)
			require.Equal(t, l.Peek(l.Key("fresh"), 1), l.Peek(l.Key("k"), 1))

			allowed, err = TakeAll([]Request{{Limiter: l, Key: l.Key("k"), N: 3}, {Limiter: other, Key: other.Key("k"), N: 2}}, answers)
			require.NoError(t, err)
			require.True(t, allowed)
			require.EqualValues(t, 97, answers[0].Decision.Remaining)
			answers[0].Receipt.Refund(3)
			require.EqualValues(t, 100, l.Peek(l.Key("k"), 0).Remaining)
			_, err = TakeAll([]Request{{Limiter: l, Key: l.Key("k"), N: 3}, {Limiter: other, Key: other.Key("k"), N: 2}}, answers[:1])
			require.ErrorContains(t, err, "2 requests and room for 1 answers")
		})
	}
}
