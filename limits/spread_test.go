package limits_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/limits/live"
)

// million has so high a rate that processors hold tokens of a spread bucket.
var million = engine.TokenBucket(engine.PerSecond(1e6), 1000)

// TestASpread: a Spread decides as one bucket of a limiter does, for all requests together.
func TestASpread(t *testing.T) {
	c := testclock.New()
	s, _ := newSet(t, limits.Limit[int]{Name: "all", Spread: c.Spread(t, million), Cost: func(n int) uint64 { return uint64(n) }})
	for range 10 {
		res := s.Decide(t.Context(), 100)
		require.True(t, res.Allowed())
	}
	res := s.Decide(t.Context(), 3)
	assert.Equal(t, limits.Limited, res.Verdict())
	assert.Equal(t, 3*time.Microsecond, res.RetryAfter())
	tightest, ok := res.Tightest()
	require.True(t, ok)
	assert.Equal(t, million, tightest.Policy())
	assert.Equal(t, "number:0", tightest.KeyText(0))
	assert.Equal(t, engine.Decision{Limit: 1000, RetryAfter: 3 * time.Microsecond, ResetAfter: time.Millisecond}, tightest.Decision)
	c.Advance(3 * time.Microsecond)
	res = s.Decide(t.Context(), 3)
	assert.True(t, res.Allowed())
	res = s.Decide(t.Context(), 1001)
	assert.Equal(t, engine.Never, res.RetryAfter())
}

// TestASpreadIsAskedLast: a refused request must take nothing from a Spread, because a Spread cannot always give back
// all tokens.
func TestASpreadIsAskedLast(t *testing.T) {
	c := testclock.New()
	all, untouched := c.Spread(t, million), c.Spread(t, million)
	_, none := inMemory(t, c, "none", 1)
	none.Limiter = c.Limiter(t, engine.Blocked())
	db := &database{}
	table, far := stored(t, c, db, "far", 1)
	require.True(t, table.limiter.Allow("number:0"))
	for i, other := range []limits.Limit[int]{none, far} {
		s, _ := newSet(t, limits.Limit[int]{Name: "all", Spread: all}, other)
		for _, bucket := range []*engine.Spread{all, untouched} {
			bucket.Reset()
			bucket.Charge(900)
		}
		c.Hurry(100)
		for range 100 {
			res := s.Decide(t.Context(), 1)
			require.False(t, res.Allowed())
			require.Equal(t, []limits.Outcome{limits.NotTaken, limits.Refused}, outcomes(&res))
		}
		c.Hurry(0)
		assert.Equal(t, untouched.Owed(), all.Owed(), i)
	}
	assert.Equal(t, 100, db.calls)

	all.Charge(1000)
	s, _ := newSet(t, limits.Limit[int]{Name: "all", Spread: all}, far)
	res := s.Decide(t.Context(), 1)
	assert.Equal(t, []limits.Outcome{limits.Refused, limits.NotTaken}, outcomes(&res))
	assert.Equal(t, 100, db.calls)
}

// TestTwoSpreads: if the second Spread refuses, nothing is taken from the first.
func TestTwoSpreads(t *testing.T) {
	c := testclock.New()
	first, second := c.Spread(t, million), c.Spread(t, million)
	second.Charge(1000)
	s, _ := newSet(t, limits.Limit[int]{Name: "first", Spread: first}, limits.Limit[int]{Name: "second", Spread: second})
	res := s.Decide(t.Context(), 1)
	assert.Equal(t, []limits.Outcome{limits.NotTaken, limits.Refused}, outcomes(&res))
	assert.Zero(t, first.Owed())
}

// TestTheTierOfASpread: a request of another tier than 0 is always refused.
func TestTheTierOfASpread(t *testing.T) {
	c := testclock.New()
	all := c.Spread(t, million)
	for _, l := range []limits.Limit[int]{
		{Name: "all", Spread: all},
		{Name: "all", Limiter: c.Limiter(t, million), Key: limits.Everyone[int]},
	} {
		l.Tier = func(n int) int { return n }
		other := limits.Limit[int]{Name: "none", Limiter: c.Limiter(t, engine.Blocked()), Key: limits.Everyone[int]}
		for _, list := range [][]limits.Limit[int]{{l}, {other, l}} { // l takes, or peeks because other refuses
			s, _ := newSet(t, list...)
			res := s.Decide(t.Context(), 7)
			check := res.Check(len(list) - 1)
			assert.Equal(t, engine.Decision{RetryAfter: engine.Never}, check.Decision)
			assert.Equal(t, engine.Never, res.RetryAfter())
			assert.Equal(t, engine.Policy{}, check.Policy())
		}
	}
	assert.Zero(t, all.Owed())
}

// TestASpreadInShadowMode: a Spread in shadow mode takes and never refuses.
func TestASpreadInShadowMode(t *testing.T) {
	c := testclock.New()
	all := c.Spread(t, million)
	s, _ := newSet(t, limits.Limit[int]{Name: "all", Spread: all, Shadow: true})
	for range 1000 {
		res := s.Decide(t.Context(), 1)
		require.Equal(t, []limits.Outcome{limits.Allowed}, outcomes(&res))
	}
	res := s.Decide(t.Context(), 1)
	assert.True(t, res.Allowed())
	assert.Equal(t, []limits.Outcome{limits.ShadowRefused}, outcomes(&res))
}

// TestASpreadDoesNotAllocate: a decision with a Spread does not allocate, whether it admits or refuses.
func TestASpreadDoesNotAllocate(t *testing.T) {
	c := testclock.New()
	_, own := inMemory(t, c, "own", 1<<32)
	for _, burst := range []uint64{1, 1 << 30} {
		s, _ := newSet(t, limits.Limit[int]{Name: "all", Spread: c.Spread(t, engine.TokenBucket(engine.PerSecond(5e8), burst))}, own)
		assert.Zero(t, testalloc.PerCall(func() {
			var res limits.Result[int]
			s.DecideInto(&res, t.Context(), 0)
		}))
	}
}

// TestALimitThatIsSpread: the debt of a limit stays when the limit changes between a limiter and a Spread.
func TestALimitThatIsSpread(t *testing.T) {
	c := testclock.New()
	minutely := engine.TokenBucket(engine.Per(100, time.Minute), 100)
	take := func(s *limits.Set[int], n int) (admitted int) {
		for range n {
			if res := s.Decide(t.Context(), 0); res.Allowed() {
				admitted++
			}
		}
		return admitted
	}
	before := live.New(c.Limiter(t, minutely))
	old := setOf(t, before)
	require.Equal(t, 30, take(old, 30))
	for i, next := range []*live.Limiter{
		live.NewSpread(c.Spread(t, minutely)), live.New(c.Limiter(t, minutely)), live.NewSpread(c.Spread(t, minutely)),
	} {
		require.NoError(t, before.HandOver(next))
		now := setOf(t, next)
		require.Equal(t, 5, take(old, 5), i) // the previous limits decide until all their requests have ended
		require.Equal(t, 5, take(now, 5), i)
		before.Release()
		require.Equal(t, 5, take(now, 5), i)
		before, old = next, now
	}
	require.Equal(t, 25, take(old, 100), "of 100, 30 and three times 15 are used")
	require.NoError(t, before.HandOver(before.Acquire()))
	require.Equal(t, 0, take(old, 1))

	spread := live.NewSpread(c.Spread(t, minutely))
	spread.Spread.Charge(250)
	small := live.New(c.Limiter(t, engine.FixedWindow(100, time.Minute))) // has no room for the complete debt
	require.NoError(t, spread.HandOver(small))
	spread.Release()
	require.Equal(t, 0, take(setOf(t, small), 1))
	require.EqualValues(t, 250, spread.Spread.Owed(), "it stays where it is")
	c.Advance(time.Minute)
	require.Equal(t, 0, take(setOf(t, small), 200), "100 have come back in both")
	require.EqualValues(t, 150, spread.Spread.Owed())
	c.Advance(time.Minute)
	require.Equal(t, 50, take(setOf(t, small), 200))
	c.Advance(2 * time.Minute)
	require.Equal(t, 100, take(setOf(t, small), 200))
	require.False(t, small.Formers().Any(), "it owes nothing and is dropped")

	spread = live.NewSpread(c.Spread(t, million))
	for range 50 {
		require.True(t, spread.Spread.Allow())
	}
	spread.Spread.Charge(850) // processors hold tokens
	small = live.New(c.Limiter(t, engine.FixedWindow(100, time.Minute)))
	require.NoError(t, spread.HandOver(small))
	spread.Release()
	require.Equal(t, 0, take(setOf(t, small), 1))
	require.EqualValues(t, 900, spread.Spread.Owed())
}

// TestChangesUnderLoad: while a limit changes between a limiter and a Spread, all requests together get exactly the
// burst.
func TestChangesUnderLoad(t *testing.T) {
	const burst, changes = 20_000, 200
	c := testclock.New()
	policy := engine.TokenBucket(engine.PerSecond(1e6), burst)
	for range 3 {
		var mu sync.RWMutex // requests have this lock for reading
		limiter := live.New(c.Limiter(t, policy))
		set := setOf(t, limiter)
		var admitted atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for more := true; more; {
					mu.RLock()
					res := set.Decide(t.Context(), 0)
					mu.RUnlock()
					if more = res.Allowed(); more {
						admitted.Add(1)
					}
				}
			})
		}
		for i := range changes {
			for admitted.Load() < int64(i*burst/changes/2) {
				runtime.Gosched()
			}
			mu.Lock()
			next := live.New(c.Limiter(t, policy))
			if i%2 == 0 {
				next = live.NewSpread(c.Spread(t, policy))
			}
			if err := limiter.HandOver(next); err != nil { // too many previous limiters still have debts
				next.Release()
			} else {
				limiter.Release()
				limiter, set = next, setOf(t, next)
			}
			mu.Unlock()
		}
		all.Wait()
		require.EqualValues(t, burst, admitted.Load())
		limiter.Release()
	}
}

func setOf(t *testing.T, l *live.Limiter) *limits.Set[int] {
	one := limits.Limit[int]{Name: "all", Spread: l.Spread, Formers: l.Formers()}
	if l.Spread == nil {
		one.Limiter, one.Key = l.Limiter, limits.Everyone[int]
	}
	s, _ := newSet(t, one)
	return s
}
