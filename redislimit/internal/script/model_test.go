package script

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// A world is a server whose clock the test sets, and which forgets expired keys.
type world struct {
	*miniredis.Miniredis
	now int64 // in microseconds
}

func newWorld(t testing.TB) *world {
	w := &world{miniredis.RunT(t), 1_800_000_000_123_457}
	w.set(w.now)
	return w
}

func (w *world) set(now int64) {
	w.SetTime(time.UnixMicro(now))
	if now > w.now {
		w.FastForward(time.Duration(now-w.now) * time.Microsecond)
	} else {
		for _, key := range w.Keys() { // a key expires at a time of the server's clock, so its time to live changes
			w.SetTTL(key, w.TTL(key)+time.Duration(w.now-now)*time.Microsecond)
		}
	}
	w.now = now
}

var models = []engine.Policy{
	engine.TokenBucket(engine.PerSecond(97), 50),
	engine.TokenBucket(engine.PerSecond(333333), 1<<32),
	engine.TokenBucket(engine.Per(1, time.Hour), 3),
	engine.TokenBucket(engine.PerSecond(0.7), 5),
	engine.TokenBucket(engine.PerSecond(1e9), 1000),
	engine.FixedWindow(10, time.Second),
	engine.FixedWindow(10, 7*time.Microsecond),
	engine.FixedWindow(10, time.Second).Aligned(),
	engine.CalendarWindow(10, engine.Day, time.UTC),
	engine.CalendarWindow(1<<32, engine.Month, time.UTC),
	engine.SlidingWindow(10, time.Second),
	engine.SlidingWindow(1<<24-1, 365*24*time.Hour),
	engine.SlidingWindow(1000, time.Minute),
	engine.SlidingLog(10, time.Second),
	engine.SlidingLog(300, 100*time.Microsecond),
	engine.Concurrency(10, time.Second),
	engine.Concurrency(1000, 100*time.Microsecond),
}

type form struct {
	policy engine.Policy
	terms  Terms
	quotas []engine.Policy
}

func (f form) String() string {
	return fmt.Sprintf("%v %+v %d quotas", f.policy, f.terms, len(f.quotas))
}

// forms has limits with further features: larger debts, quotas, or charges for refused requests.
var forms = []form{
	{engine.TokenBucket(engine.PerSecond(97), 50), Terms{MaxDebt: 10}, nil},
	{engine.TokenBucket(engine.PerSecond(1000), 50), Terms{}, []engine.Policy{
		engine.TokenBucket(engine.PerSecond(1000), 49), engine.TokenBucket(engine.PerSecond(1000), 10),
	}},
	{engine.TokenBuckets(time.Minute), Terms{}, []engine.Policy{
		engine.TokenBucket(engine.PerSecond(97), 50), engine.TokenBucket(engine.Per(10, time.Minute), 10), engine.TokenBucket(engine.PerSecond(1e6), 1000),
	}},
	{engine.TokenBuckets(365 * 24 * time.Hour), Terms{MaxDebt: 12, Refusals: engine.ChargePenalty}, []engine.Policy{
		engine.TokenBucket(engine.PerSecond(97), 500), engine.TokenBucket(engine.Per(600, time.Minute), 10),
	}},
	{engine.TokenBucket(engine.PerSecond(97), 50), Terms{Refusals: engine.ChargeTheRest}, nil},
	{engine.TokenBucket(engine.PerSecond(97), 50), Terms{Refusals: engine.ChargePenalty}, nil},
	{engine.FixedWindow(10, time.Second), Terms{MaxDebt: 20}, nil},
	{engine.FixedWindow(10, time.Second), Terms{MaxQuota: 100}, []engine.Policy{engine.FixedWindow(100, time.Second), engine.FixedWindow(3, time.Second)}},
	{engine.FixedWindow(10, time.Second).Aligned(), Terms{MaxQuota: 100, MaxDebt: 5, Refusals: engine.ChargePenalty},
		[]engine.Policy{engine.FixedWindow(100, time.Second).Aligned(), engine.FixedWindow(3, time.Second).Aligned()}},
	{engine.FixedWindow(10, time.Second), Terms{Refusals: engine.ChargeTheRest}, nil},
	{engine.CalendarWindow(10, engine.Day, time.UTC), Terms{MaxQuota: 100}, []engine.Policy{
		engine.CalendarWindow(100, engine.Day, time.UTC), engine.CalendarWindow(3, engine.Day, time.UTC),
	}},
	{engine.CalendarWindow(10, engine.Day, time.UTC), Terms{MaxQuota: 100, MaxDebt: 5, Refusals: engine.ChargePenalty}, []engine.Policy{
		engine.CalendarWindow(100, engine.Day, time.UTC), engine.CalendarWindow(3, engine.Day, time.UTC),
	}},
	{engine.SlidingWindow(10, time.Second), Terms{MaxDebt: 20}, nil},
	{engine.SlidingWindow(10, time.Second), Terms{MaxQuota: 100}, []engine.Policy{engine.SlidingWindow(100, time.Second), engine.SlidingWindow(3, time.Second)}},
	{engine.SlidingWindow(10, time.Second), Terms{MaxQuota: 100, MaxDebt: 5, Refusals: engine.ChargePenalty},
		[]engine.Policy{engine.SlidingWindow(100, time.Second), engine.SlidingWindow(3, time.Second)}},
	{engine.SlidingWindow(10, time.Second), Terms{Refusals: engine.ChargeTheRest}, nil},
	{engine.SlidingLog(10, time.Second), Terms{MaxDebt: 20}, nil},
	{engine.SlidingLog(10, time.Second), Terms{MaxQuota: 100}, []engine.Policy{engine.SlidingLog(100, time.Second), engine.SlidingLog(3, time.Second)}},
	{engine.SlidingLog(10, time.Second), Terms{MaxQuota: 100, MaxDebt: 5, Refusals: engine.ChargePenalty},
		[]engine.Policy{engine.SlidingLog(100, time.Second), engine.SlidingLog(3, time.Second)}},
	{engine.SlidingLog(10, time.Second), Terms{Refusals: engine.ChargeTheRest}, nil},
}

// At random times, the script and the model give the same answers to random asks.
func TestScriptsAreTheModel(t *testing.T) {
	asks := 1000
	if testing.Short() {
		asks = 150
	}
	all := forms[:len(forms):len(forms)]
	for _, policy := range models {
		all = append(all, form{policy: policy})
	}
	for seed, form := range all {
		policy := form.policy
		t.Run(form.String(), func(t *testing.T) {
			w := newWorld(t)
			p, err := NewLimit(policy, form.terms)
			require.NoError(t, err)
			quotas := []Quota{{}}
			if p.IsOfQuotas() {
				quotas = nil
			}
			for _, policy := range form.quotas {
				quota, err := p.Quota(form.policy, policy)
				require.NoError(t, err)
				quotas = append(quotas, quota)
			}
			var quota Quota
			tokens := func() uint64 { return p.quota(Ask{Quota: quota}).Tokens }
			c, err := connect(w.Addr())
			require.NoError(t, err)
			t.Cleanup(c.Close)
			random := rand.New(rand.NewPCG(uint64(seed), 7))
			amount := func() uint64 {
				switch random.IntN(4) {
				case 0:
					return 0
				case 1:
					return random.Uint64N(tokens() + 2)
				}
				return random.Uint64N(tokens()/4 + 2)
			}
			var m Model
			var windows [3]int64 // windows of the last answers
			granted, refused := 0, 0
			period := policy.Window().Microseconds() + 1
			if len(form.quotas) > 0 {
				period = form.quotas[0].Window().Microseconds() + 1
			}
			for i := range asks {
				quota = quotas[random.IntN(len(quotas))]
				held := w.Exists("key")
				switch random.IntN(8) {
				case 0:
				case 1:
					w.set(w.now + random.Int64N(3*period))
				case 2:
					w.set(w.now - random.Int64N(period/2+2))
				case 3:
					if random.IntN(8) == 0 {
						w.set(w.now - random.Int64N(5*period))
					}
				default:
					w.set(w.now + random.Int64N(period/8+2))
				}
				if held && !w.Exists("key") {
					// The key has expired, and a clock that goes back now changes nothing.
					require.Equal(t, tokens(), m.copy().Ask(p, w.now, Ask{Need: 1, Quota: quota}).Remaining, "a key expired before its state did")
					m = Model{}
				}
				if w.now > maxExact-3*period {
					break
				}
				a := Ask{Need: amount(), Quota: quota}
				if p.IsOfQuotas() && a.Need == 0 {
					a.Need = 1
				}
				if random.IntN(8) > 0 { // otherwise the ask takes nothing
					a.Want = a.Need + amount()
				}
				switch random.IntN(4) {
				case 0:
					a.Returned, a.Window = amount(), windows[random.IntN(len(windows))]
				case 1:
					a.Window = AnyWindow
				}
				if random.IntN(6) == 0 {
					a.Debt = amount()
				}
				if !p.IsInFlight() && a.Want > 0 && random.IntN(4) == 0 {
					a.All, a.Want = true, 1+amount()
				}
				got, want := one(t, p, c, "key", a), m.Ask(p, w.now, a)
				require.Equal(t, want, got, "ask %d at %d: %+v", i, w.now, a)
				if windows[i%len(windows)] = got.Window; got.Granted > 0 {
					granted++
				}
				// RetryAfter is not checked, because an ask that wants nothing under a faster quota makes the owed
				// tokens come back faster.
				looks := p.IsOfQuotas() && a.Want == 0
				if got.RetryAfter > 0 && got.RetryAfter != engine.Never && !looks {
					refused++
					need := Ask{Need: a.Need, Want: a.Need, Quota: quota}
					// RetryAfter is exact to the microsecond.
					later := m.copy()
					assert.GreaterOrEqual(t, later.Ask(p, w.now+got.RetryAfter.Microseconds(), need).Granted, a.Need, "%+v", a)
					sooner := m.copy()
					assert.Zero(t, sooner.Ask(p, w.now+got.RetryAfter.Microseconds()-1, need).Granted, "%+v", a)
				}
				if w.Exists("key") {
					assert.Positive(t, w.TTL("key"), "a key without a time to live")
				}
			}
			assert.Greater(t, granted, asks/50)
			assert.Greater(t, refused, asks/50)
		})
	}
}

func (m *Model) copy() *Model {
	c := *m
	c.log, c.places = slices.Clone(m.log), slices.Clone(m.places)
	return &c
}

// A client that polls fast gets each token exactly at its time, because no remainder is lost.
func TestExactRates(t *testing.T) {
	for _, test := range []struct {
		rate     engine.Rate
		span     time.Duration
		admitted uint64
	}{
		{engine.PerSecond(97), 1000 * time.Second, 97_000},
		{engine.PerSecond(333333), 10 * time.Second, 3_333_330},
		{engine.Per(1, time.Hour), 100_000 * time.Hour, 100_000},
		{engine.PerSecond(0.7), 1_000_000 * time.Second, 700_000},
		{engine.PerSecond(1e6 / 3), 3 * time.Second, 999_999}, // not a decimal: the rate must never be faster
	} {
		p, m := limitOf(t, engine.TokenBucket(test.rate, 5)), Model{}
		if testing.Short() {
			test.span, test.admitted = test.span/100, test.admitted/100
		}
		begin := int64(1_800_000_000_000_000)
		require.EqualValues(t, 5, m.Ask(p, begin, strict(5)).Granted)
		sum, end := uint64(0), begin+test.span.Microseconds()
		interval := max(1, int64(float64(test.span.Microseconds())/float64(test.admitted)/7))
		for now := begin; now < end; {
			now = min(now+interval, end)
			sum += m.Ask(p, now, strict(1)).Granted
		}
		assert.Equal(t, test.admitted, sum, test.rate)
	}
}

// This is TestExactRates with the script itself.
func TestPollingLosesNothing(t *testing.T) {
	w := newWorld(t)
	c, err := connect(w.Addr())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	p := limitOf(t, engine.TokenBucket(engine.PerSecond(97), 5))
	require.EqualValues(t, 5, one(t, p, c, "key", strict(5)).Granted)
	sum, begin := uint64(0), w.now
	seconds := uint64(10)
	if testing.Short() {
		seconds = 1
	}
	for i := range int64(500 * seconds) {
		w.set(begin + (i+1)*2000)
		sum += one(t, p, c, "key", strict(1)).Granted
	}
	assert.Equal(t, 97*seconds, sum)
}

// If the clock jumps forward by J, a key gets at most rate*J tokens, and at most one burst.
func TestClockJumps(t *testing.T) {
	for _, policy := range []engine.Policy{
		engine.TokenBucket(engine.PerSecond(10), 10), engine.FixedWindow(10, time.Second), engine.FixedWindow(10, time.Second).Aligned(),
		engine.SlidingWindow(10, time.Second), engine.SlidingLog(10, time.Second),
	} {
		for _, jump := range []time.Duration{
			time.Millisecond, 300 * time.Millisecond, time.Second, time.Hour, 1000 * 24 * time.Hour,
			-time.Millisecond, -300 * time.Millisecond, -time.Second, -time.Hour, -1000 * 24 * time.Hour,
		} {
			t.Run(policy.String()+" "+jump.String(), func(t *testing.T) {
				w, p := newWorld(t), limitOf(t, policy)
				c, err := connect(w.Addr())
				require.NoError(t, err)
				t.Cleanup(c.Close)
				w.set(w.now - w.now%1_000_000 + 1_000_000) // aligned windows begin here
				require.EqualValues(t, 10, one(t, p, c, "key", strict(10)).Granted)
				w.set(w.now + jump.Microseconds())
				took := uint64(0)
				for one(t, p, c, "key", strict(1)).Granted > 0 {
					took++
				}
				if jump < 0 {
					assert.Zero(t, took)
				} else if policy.Algorithm() == engine.AlgorithmTokenBucket {
					assert.LessOrEqual(t, float64(took), min(10*jump.Seconds(), 10))
				}
				assert.LessOrEqual(t, took, uint64(10))
				got := one(t, p, c, "key", strict(1))
				assert.LessOrEqual(t, got.RetryAfter, 2*time.Second+time.Microsecond, "a jump locked the key")
				assert.LessOrEqual(t, w.TTL("key"), 3*time.Second+2*time.Millisecond)
				w.set(w.now + got.RetryAfter.Microseconds())
				assert.EqualValues(t, 1, one(t, p, c, "key", strict(1)).Granted)
			})
		}
	}
}

// A client cannot affect the time: no number that it sends is near the time.
func TestNoTimeIsSent(t *testing.T) {
	w := newWorld(t)
	w.set(1_000_000_000) // the server is in 1970, and the client in its own time
	c, err := connect(w.Addr())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	p := limitOf(t, engine.FixedWindow(10, time.Second))
	assert.EqualValues(t, 1_000_000_000, one(t, p, c, "key", strict(1)).Window)
	value, err := w.Get("key")
	require.NoError(t, err)
	assert.Equal(t, "1000000000:00000001", value)
}

func TestNotAReply(t *testing.T) {
	p := limitOf(t, engine.FixedWindow(10, time.Second))
	for _, reply := range [][]int64{nil, {1, 2, 3, 4}, {11, 0, 0, 0, 0}, {0, 11, 0, 0, 0}, {-2, 0, 0, 0, 0}, {0, 0, -2, 0, 0}, {0, 0, 1 << 60, 0, 0}, {0, 0, 0, 0, 0, 0}} {
		assert.ErrorIs(t, p.read(reply, make([]Ask, 1), make([]Answer, 1)), ErrReply, "%d", reply)
	}
	assert.NoError(t, p.read([]int64{10, 0, -1, 0, 0}, make([]Ask, 1), make([]Answer, 1)))
}

func TestCallsThatCannotBe(t *testing.T) {
	w := newWorld(t)
	c, err := connect(w.Addr())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	p := limitOf(t, engine.FixedWindow(10, time.Second))
	run := func(keys, asks, answers int, a Ask) error {
		all := make([]Ask, asks)
		for i := range all {
			all[i] = a
		}
		return p.Run(context.Background(), c, make([]string, keys), all, make([]Answer, answers))
	}
	assert.ErrorContains(t, run(0, 0, 0, Ask{}), "0 keys: want 1 to 64")
	assert.ErrorContains(t, run(65, 65, 65, Ask{}), "65 keys: want 1 to 64")
	assert.ErrorContains(t, run(2, 1, 2, Ask{}), "2 keys, 1 asks and 2 answers")
	assert.ErrorContains(t, run(2, 2, 1, Ask{}), "2 keys, 2 asks and 1 answers")
	assert.ErrorContains(t, run(1, 1, 1, Ask{Need: 2, Want: 1}), "need of 2 tokens, want of 1")
	assert.ErrorContains(t, run(1, 1, 1, Ask{Window: -1}), "window -1")
	assert.NoError(t, run(64, 64, 64, strict(0)))
}

// Tokens that come back are first subtracted from a debt above the limit, until it is paid completely.
func TestDebtIsPaidInFull(t *testing.T) {
	const limit, windows = 100, 6
	for _, policy := range []engine.Policy{
		engine.TokenBucket(engine.PerSecond(limit), limit), engine.FixedWindow(limit, time.Second),
		engine.FixedWindow(limit, time.Second).Aligned(), engine.SlidingWindow(limit, time.Second),
	} {
		l := limitOf(t, policy)
		admitted := func(debt uint64) (sum uint64) {
			m, begin := Model{}, int64(1_800_000_000_000_000)
			require.EqualValues(t, limit, m.Ask(l, begin, strict(limit)).Granted)
			m.Ask(l, begin, Ask{Debt: debt})
			for now := begin; now < begin+windows*1_000_000; now += 1000 {
				sum += m.Ask(l, now, strict(1)).Granted
			}
			return sum
		}
		for _, debt := range []uint64{1, limit / 2, limit, limit + 1, 2*limit - 1, 2 * limit} {
			assert.InDelta(t, debt, admitted(0)-admitted(debt), 1, "%v, debt of %d", policy, debt)
		}
	}
}
