package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
)

func spreadAt(t *testing.T, now *atomic.Int64, policy Policy, options ...Option) *Spread {
	t.Helper()
	now.Store(time.Now().UnixNano())
	read := func() time.Time { return time.Unix(0, now.Load()) }
	s, err := NewSpread(policy, append(options, ClockFunc(read))...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// At a rate at which processors hold no tokens, a Spread decides exactly as a Limiter, to the nanosecond.
func TestSpreadAtALowRateIsALimiter(t *testing.T) {
	var now atomic.Int64
	policy := TokenBucket(PerSecond(100), 30)
	s := spreadAt(t, &now, policy)
	l, err := New(policy, MaxKeys(100), ClockFunc(func() time.Time { return time.Unix(0, now.Load()) }))
	require.NoError(t, err)
	defer l.Close()
	r := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for i := range 20_000 {
		now.Add(int64(r.ExpFloat64() * 1e7))
		n := r.Uint64N(4)
		switch r.IntN(20) {
		case 0:
			require.Equal(t, l.Peek(l.Key(""), n), s.Peek(n), "look %d for %d", i, n)
		case 1:
			n += 30
			fallthrough
		case 2:
			_, lost := l.Charge(l.Key(""), n)
			require.Equal(t, lost, s.Charge(n), "charge %d of %d", i, n)
		case 3:
			owed, _ := l.Owed(l.Key(""))
			require.Equal(t, owed, s.Owed(), "look %d", i)
		case 4:
			l.Reset(l.Key(""))
			s.Reset()
		default:
			d := s.Take(n)
			require.Equal(t, l.Take("", n), d, "take %d of %d", i, n)
			if !d.Allowed {
				refused++
			}
		}
	}
	assert.NotZero(t, refused)
}

// With more or fewer processors than when it was made, a Spread still admits exactly the burst while the clock stands
// still.
func TestSpreadOnOtherProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, of := range [][2]int{{1, 4}, {4, 1}, {3, 2}} {
		runtime.GOMAXPROCS(of[0])
		var now atomic.Int64
		const burst = 100_000
		s := spreadAt(t, &now, TokenBucket(PerSecond(8e6), burst))
		runtime.GOMAXPROCS(of[1])
		var admitted atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for s.Allow() {
					admitted.Add(1)
				}
			})
		}
		all.Wait()
		assert.EqualValues(t, burst, admitted.Load(), "made for %d processors, on %d", of[0], of[1])
		d := s.Take(1)
		assert.Equal(t, Decision{Limit: burst, RetryAfter: 125, ResetAfter: burst * 125}, d)
		assert.Equal(t, d, s.Peek(1))
		now.Add(125)
		assert.True(t, s.Allow())
		assert.False(t, s.Allow())
	}
}

func TestSpreadReceipts(t *testing.T) {
	var now atomic.Int64
	s := spreadAt(t, &now, TokenBucket(PerSecond(1e6), 1000), MaxDebt(2))
	d, r := s.TakeReceipt(600)
	assert.Equal(t, Decision{Allowed: true, Limit: 1000, Remaining: 400, ResetAfter: 600 * time.Microsecond}, d)
	r.Refund(100)
	assert.EqualValues(t, 500, s.Peek(1).Remaining)
	now.Add(int64(100 * time.Microsecond))
	r.Refund(300)
	assert.EqualValues(t, 800, s.Peek(1).Remaining, "100 of the 300 have come back by themselves")
	r.Refund(math.MaxUint64)
	r.Refund(1)
	assert.EqualValues(t, 900, s.Peek(1).Remaining, "100 of the 200 that were left")

	_, held := s.TakeReceipt(100)
	assert.Zero(t, held.Settle(500))
	assert.EqualValues(t, 400, s.Peek(1).Remaining)
	_, held = s.TakeReceipt(100)
	assert.Zero(t, held.Settle(40))
	assert.EqualValues(t, 360, s.Peek(1).Remaining)
	s = spreadAt(t, &now, TokenBucket(PerSecond(1e6), 1000), MaxDebt(2))
	_, held = s.TakeReceipt(100)
	assert.EqualValues(t, 500, held.Settle(2500), "what MaxDebt has no room for")
	assert.False(t, s.Allow())
	d, none := s.TakeReceipt(1)
	assert.False(t, d.Allowed)
	none.Refund(1)
	assert.Zero(t, none.Settle(7))
	assert.Equal(t, d, s.Peek(1))
}

func TestSpreadSetPolicy(t *testing.T) {
	var now atomic.Int64
	first, second := TokenBucket(PerSecond(1e6), 1000), TokenBucket(PerSecond(2e6), 800)
	s := spreadAt(t, &now, first)
	_, r := s.TakeReceipt(500)
	assert.Equal(t, first, s.Policy())
	require.NoError(t, s.SetPolicy(second))
	assert.Equal(t, second, s.Policy())
	assert.EqualValues(t, 300, s.Peek(1).Remaining)
	r.Refund(500)
	assert.EqualValues(t, 300, s.Peek(1).Remaining, "a receipt is of a policy")
	s.Reset()
	assert.Equal(t, Decision{Allowed: true, Limit: 800, Remaining: 800}, s.Peek(1))
	assert.EqualError(t, s.SetPolicy(FixedWindow(1, time.Hour)),
		"engine: "+FixedWindow(1, time.Hour).String()+": want engine.TokenBucket(rate, burst) for one bucket that is spread")
	assert.Error(t, s.SetPolicy(TokenBucket(Per(1, time.Minute), 1000)))
	assert.Equal(t, second, s.Policy())
}

func TestSpreadOptions(t *testing.T) {
	policy := TokenBucket(PerSecond(1e6), 1000)
	for i, o := range []Option{
		MaxKeys(10), Shards(2), HashStable(), Tiers(policy), SweepInterval(time.Minute), Prefault(), ClockCoarse(),
		Overflow(Admit), ChargeRefusals(ChargePenalty), MaxQuota(5), Shared("x"), ReplacePolicy(), nil, MaxDebt(0),
	} {
		_, err := NewSpread(policy, o)
		assert.Error(t, err, "option %d", i)
	}
	for _, o := range []Option{ClockTSC(), ClockPrecise(), MaxDebt(3)} {
		s, err := NewSpread(policy, o)
		require.NoError(t, err)
		assert.True(t, s.Allow())
		assert.Equal(t, Never, s.Take(1001).RetryAfter)
		assert.True(t, s.Take(0).Allowed)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
	}
	_, err := NewSpread(Policy{})
	assert.Error(t, err)
	for _, s := range []*Spread{nil, {}} {
		assert.PanicsWithValue(t, "engine: a Spread that is nil or zero: make it with engine.NewSpread, and look at NewSpread's error",
			func() { s.Peek(1) })
	}
}

func TestSpreadAllocatesNothing(t *testing.T) {
	for _, burst := range []uint64{1, 1 << 30} {
		s, err := NewSpread(TokenBucket(PerSecond(5e8), burst))
		require.NoError(t, err)
		defer s.Close()
		assert.Zero(t, testalloc.PerCall(func() { s.Allow() }))
		assert.Zero(t, testalloc.PerCall(func() { s.Take(1) }))
		assert.Zero(t, testalloc.PerCall(func() { _, r := s.TakeReceipt(1); r.Refund(1) }))
		assert.Zero(t, testalloc.PerCall(func() { s.Peek(1) }))
	}
}

// The error about a too large burst names the largest possible burst.
func TestSpreadNamesTheLargestBurst(t *testing.T) {
	for _, period := range []time.Duration{3 * time.Microsecond, time.Second, 10 * time.Second, time.Minute, time.Hour} {
		_, err := NewSpread(TokenBucket(Per(1, period), 1<<32))
		require.ErrorContains(t, err, "want a burst of at most ")
		var most uint64
		_, scanned := fmt.Sscan(err.Error()[strings.LastIndexByte(err.Error(), ' '):], &most)
		require.NoError(t, scanned, err)
		s, err := NewSpread(TokenBucket(Per(1, period), most))
		require.NoError(t, err)
		require.NoError(t, s.Close())
		_, err = NewSpread(TokenBucket(Per(1, period), most+1))
		require.ErrorContains(t, err, fmt.Sprintf("want a burst of at most %d", most))
	}
	_, err := NewSpread(TokenBucket(Per(1, 24*time.Hour), 5))
	require.ErrorContains(t, err, "want a higher rate")
}
