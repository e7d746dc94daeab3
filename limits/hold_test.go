package limits_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

// budget returns a limit of 1000 tokens per hour. A request is a number, which is its estimate.
func budget(t testing.TB, o ...engine.Option) limits.Limit[int] {
	return limits.Limit[int]{Name: "tokens", Key: limits.Everyone[int], Hold: true, Cost: func(n int) uint64 { return uint64(n) },
		Limiter: testclock.New().Limiter(t, engine.FixedWindow(1000, time.Hour), o...)}
}

func held(t testing.TB, set *limits.Set[int], n int) *limits.Hold {
	t.Helper()
	res := set.Decide(context.Background(), n)
	require.True(t, res.Allowed())
	return limits.HoldFrom(res.Context(context.Background()), "tokens")
}

func left(l *engine.Limiter) uint64 { return l.Peek(l.KeyUint64(0), 0).Remaining }

// TestARequestCostsItsLargestUsage: a request costs its largest usage once, however often usages are reported.
func TestARequestCostsItsLargestUsage(t *testing.T) {
	for _, c := range []struct {
		name   string
		settle func(h *limits.Hold)
		want   uint64 // what is left of 1000
	}{
		{"never settled", func(*limits.Hold) {}, 700},
		{"less", func(h *limits.Hold) { h.Settle(100) }, 900},
		{"nothing", func(h *limits.Hold) { h.Settle(0) }, 1000},
		{"more", func(h *limits.Hold) { h.Settle(400) }, 600},
		{"twice", func(h *limits.Hold) { h.Settle(100); h.Settle(100) }, 900},
		{"less later", func(h *limits.Hold) { h.Settle(100); h.Settle(50) }, 900},
		{"more later", func(h *limits.Hold) { h.Settle(100); h.Settle(150); h.Settle(120); h.Settle(350) }, 650},
		{"released", func(h *limits.Hold) { h.Release(); h.Release() }, 1000},
		{"released, then settled", func(h *limits.Hold) { h.Release(); h.Settle(20) }, 980},
		{"settled, then released", func(h *limits.Hold) { h.Settle(20); h.Release() }, 980},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := budget(t)
			set, err := limits.New([]limits.Limit[int]{l}, limits.Options[int]{})
			require.NoError(t, err)
			h := held(t, set, 300)
			assert.EqualValues(t, 300, h.Taken())
			c.settle(h)
			assert.Equal(t, c.want, left(l.Limiter))
			assert.EqualValues(t, 300, h.Taken())
		})
	}
}

// TestSettledAtOnce: if usages are reported concurrently, only the largest counts.
func TestSettledAtOnce(t *testing.T) {
	l := budget(t)
	set, err := limits.New([]limits.Limit[int]{l}, limits.Options[int]{})
	require.NoError(t, err)
	for i := range 50 {
		l.Limiter.Reset(l.Limiter.KeyUint64(0))
		h := held(t, set, 300)
		var wg sync.WaitGroup
		for j := range 8 {
			wg.Go(func() {
				if (i+j)%5 == 0 {
					h.Release()
				}
				h.Settle(uint64(j * 60))
			})
		}
		wg.Wait()
		require.EqualValues(t, 1000-7*60, left(l.Limiter))
	}
}

// A heldStore is a store of one limiter in memory. It calls a function before it gives back a hold.
type heldStore struct {
	limiter *engine.Limiter
	before  func()
}

type heldSource struct{ *heldStore }

func (s heldSource) Policy() engine.Policy                      { return s.limiter.Policy(0) }
func (s heldSource) Quota(engine.Policy) (limits.Source, error) { return s, nil }
func (s heldSource) Store() limits.Store                        { return s.heldStore }
func (s heldSource) Holds() bool                                { return true }

func (s *heldStore) TakeAll(_ context.Context, asks []limits.Ask) error {
	for i := range asks {
		h := &interrupted{store: s}
		asks[i].Decision, h.Receipt = s.limiter.Hold(s.limiter.Key(asks[i].Key), asks[i].N)
		asks[i].Held = h
	}
	return nil
}

func (s *heldStore) RefundAll(context.Context, []limits.Ask) error { return nil }

type interrupted struct {
	engine.Receipt
	store *heldStore
}

func (i *interrupted) Settle(actual uint64) uint64 {
	i.store.before()
	return i.Receipt.Settle(actual)
}

func (i *interrupted) Release() bool {
	i.store.before()
	return i.Receipt.Release()
}

// TestAUsageThatComesWhileAHoldIsGivenBack: a usage is reported while the store gives a hold back. It is charged after
// that.
func TestAUsageThatComesWhileAHoldIsGivenBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		settle func(h *limits.Hold) (lost uint64)
		late   []uint64
		left   uint64
		lost   uint64
	}{
		{"release", func(h *limits.Hold) uint64 { _, lost := h.Release(); return lost }, []uint64{400}, 600, 0},
		{"release, twice", func(h *limits.Hold) uint64 { _, lost := h.Release(); return lost }, []uint64{400, 300, 700}, 300, 0},
		{"settle", func(h *limits.Hold) uint64 { return h.Settle(100) }, []uint64{400}, 600, 0},
		{"not more", func(h *limits.Hold) uint64 { return h.Settle(100) }, []uint64{100, 0}, 900, 0},
		{"more than there is", func(h *limits.Hold) uint64 { _, lost := h.Release(); return lost }, []uint64{1250}, 0, 250},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := budget(t)
			st := &heldStore{limiter: l.Limiter, before: func() {}}
			l.Limiter, l.Source = nil, heldSource{st}
			set, err := limits.New([]limits.Limit[int]{l}, limits.Options[int]{})
			require.NoError(t, err)
			h := held(t, set, 1000)
			lost := uint64(0)
			st.before = func() {
				for _, n := range c.late {
					lost += h.Settle(n)
				}
			}
			lost += c.settle(h)
			text, ok := limits.KeyFunc[int](limits.Everyone[int]).Text(0)
			require.True(t, ok)
			assert.Equal(t, c.left, st.limiter.Peek(st.limiter.Key(text), 0).Remaining)
			assert.Equal(t, c.lost, lost)
			assert.Zero(t, h.Settle(0))
		})
	}
}

// TestARefundThatLosesAUsage: OnError gets the number of tokens that were not charged.
func TestARefundThatLosesAUsage(t *testing.T) {
	l := budget(t)
	st := &heldStore{limiter: l.Limiter, before: func() {}}
	l.Limiter, l.Source, l.Refund = nil, heldSource{st}, func(int, int) bool { return true }
	var reported error
	set, err := limits.New([]limits.Limit[int]{l}, limits.Options[int]{OnError: func(_ string, err error) { reported = err }})
	require.NoError(t, err)
	res := set.Decide(context.Background(), 1000)
	h := limits.HoldFrom(res.Context(context.Background()), "tokens")
	st.before = func() { h.Settle(1250) }
	res.Finish(context.Background(), 1000, 0)
	assert.ErrorContains(t, reported, "250 tokens")
}

// TestWhatIsNotCharged: Settle returns how many tokens are not charged.
func TestWhatIsNotCharged(t *testing.T) {
	l := budget(t, engine.MaxDebt(2))
	set, err := limits.New([]limits.Limit[int]{l}, limits.Options[int]{})
	require.NoError(t, err)
	h := held(t, set, 300)
	assert.Zero(t, h.Settle(1900))
	assert.EqualValues(t, 400, h.Settle(2400))
	assert.EqualValues(t, uint64(math.MaxUint64)-2400, h.Settle(math.MaxUint64))
	assert.Zero(t, h.Settle(math.MaxUint64))
}

// TestARefundIsNotTheLastWord: a usage that is reported after the refund is charged.
func TestARefundIsNotTheLastWord(t *testing.T) {
	l := budget(t)
	l.Refund = func(_, outcome int) bool { return outcome == 1 }
	set, err := limits.New([]limits.Limit[int]{l}, limits.Options[int]{})
	require.NoError(t, err)
	res := set.Decide(context.Background(), 300)
	h := limits.HoldFrom(res.Context(context.Background()), "tokens")
	res.Finish(context.Background(), 300, 1)
	assert.EqualValues(t, 1000, left(l.Limiter))
	first, _ := h.Release()
	assert.False(t, first)
	h.Settle(70)
	assert.EqualValues(t, 930, left(l.Limiter))
}

// TestAHoldOfNothing: HoldFrom returns a hold that does nothing if no limit of that name applies to the request.
func TestAHoldOfNothing(t *testing.T) {
	h := limits.HoldFrom(context.Background(), "tokens")
	assert.Zero(t, h.Settle(5))
	first, _ := h.Release()
	assert.False(t, first)
	assert.Zero(t, h.Taken())
}

// TestAnEstimateAboveTheLimitOfOne: an estimate above a limit counts as the limit.
func TestAnEstimateAboveTheLimitOfOne(t *testing.T) {
	minute, day := budget(t), budget(t)
	day.Name = "day"
	set, err := limits.New([]limits.Limit[int]{minute, day}, limits.Options[int]{})
	require.NoError(t, err)
	_, before := day.Limiter.Hold(day.Limiter.KeyUint64(0), 1)
	defer before.Release()
	res := set.Decide(context.Background(), 1_000_000)
	require.False(t, res.Allowed())
	assert.Equal(t, limits.NotTaken, res.Check(0).Outcome)
	assert.True(t, res.Check(0).Decision.Allowed)
	assert.Equal(t, limits.Refused, res.Check(1).Outcome)
}

// TestLeast: a request for at least Least tokens takes from each limit the tokens that are left.
func TestLeast(t *testing.T) {
	minute, day := budget(t), budget(t)
	day.Name = "day"
	for _, l := range []*limits.Limit[int]{&minute, &day} {
		l.Least = func(n int) uint64 { return uint64(n / 2) }
	}
	set, err := limits.New([]limits.Limit[int]{minute, day}, limits.Options[int]{})
	require.NoError(t, err)
	_, before := day.Limiter.Hold(day.Limiter.KeyUint64(0), 700)
	res := set.Decide(context.Background(), 600)
	require.True(t, res.Allowed())
	ctx := res.Context(context.Background())
	assert.EqualValues(t, 600, limits.HoldFrom(ctx, "tokens").Taken())
	assert.EqualValues(t, 300, limits.HoldFrom(ctx, "day").Taken())
	res = set.Decide(context.Background(), 100)
	assert.False(t, res.Allowed())
	assert.EqualValues(t, 400, left(minute.Limiter), "what the day refuses takes nothing")
	assert.Equal(t, limits.Refused, res.Check(1).Outcome)
	before.Release()
	assert.True(t, func() bool { res := set.Decide(context.Background(), 800); return res.Allowed() }())
	assert.Zero(t, left(minute.Limiter))
	assert.Zero(t, left(day.Limiter))
	_, err = limits.New([]limits.Limit[int]{{Name: "n", Key: limits.Everyone[int], Limiter: day.Limiter, Least: day.Least}}, limits.Options[int]{})
	assert.ErrorContains(t, err, "the field Least is set but Hold is not")
}

// TestTheBoundOfABudget: docs/budgets.md bounds the tokens of a budget by a sum, and each case reaches one of its
// terms.
func TestTheBoundOfABudget(t *testing.T) {
	for _, c := range []struct {
		name        string
		cost        uint64 // the actual cost of a request that holds 100
		most        uint64 // how many times its limit the key may owe
		later       time.Duration
		next        bool
		burst, rate uint64 // two terms of the bound, for the time in later
		overdraft   uint64
		lost        uint64
	}{
		{"burst and rate", 100, 10, 100 * time.Second, true, 100, 100, 0, 0},
		{"overdraft at once", 350, 10, 0, false, 100, 0, 250, 0},
		{"an overdraft is paid back", 350, 10, 349 * time.Second, false, 100, 349, 0, 0},
		{"and then no more", 350, 10, 350 * time.Second, true, 100, 350, 0, 0},
		{"lost", 350, 1, 100 * time.Second, true, 100, 100, 0, 250},
		{"lost beyond some debt", 350, 2, 200 * time.Second, true, 100, 200, 0, 150},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Unix(1_700_000_000, 0)
			limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 100), engine.MaxDebt(c.most),
				engine.MaxKeys(1000), engine.ClockFunc(func() time.Time { return now }))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, limiter.Close()) })
			l := budget(t)
			l.Limiter = limiter
			set, err := limits.New([]limits.Limit[int]{l}, limits.Options[int]{})
			require.NoError(t, err)
			settled := c.cost
			assert.Equal(t, c.lost, held(t, set, 100).Settle(c.cost))
			now = now.Add(c.later)
			res := set.Decide(context.Background(), 100)
			require.Equal(t, c.next, res.Allowed())
			if c.next {
				settled += 100
				limits.HoldFrom(res.Context(context.Background()), "tokens").Settle(100)
			}
			bound := c.burst + c.rate + c.overdraft + c.lost
			assert.LessOrEqual(t, settled, bound)
			if c.name != "an overdraft is paid back" {
				assert.Equal(t, bound, settled, "the bound is reached")
			}
		})
	}
}
