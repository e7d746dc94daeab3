package fuzz

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// TestStressSoak (I1, I2, I6, I7): limiters are tested one after another, for the duration in WEIR_STRESS (make soak).
// They have every clock, every overflow policy, and a sweeper that hardly rests. Meanwhile goroutines open and drop
// other limiters, and other stress tests run.
//
// Between any two admissions of a key, both included, at most burst + rate * t may be admitted, where t is the time
// between them. After each limiter, memory and goroutines must not exceed those after the first limiter.
func TestStressSoak(t *testing.T) {
	long := 3 * time.Second
	if text := os.Getenv("WEIR_STRESS"); text != "" {
		var err error
		long, err = time.ParseDuration(text)
		require.NoError(t, err, "WEIR_STRESS=%q: want a duration such as 1h", text)
	}
	const kinds = 12 // kinds of limiters: three policies, four clocks
	each := min(max(long/kinds, 250*time.Millisecond), 6*time.Second)

	keepGoroutines(8192)
	gauge := newGauge(t)
	begin, said, total := time.Now(), time.Now(), soakTotals{}
	heapAfterFirst, goroutinesAfterFirst := uint64(0), 0
	for n := uint64(0); n < kinds || time.Since(begin) < long; n++ {
		soakLimiter(t, n, each, gauge, &total)
		if n == 0 {
			heapAfterFirst, goroutinesAfterFirst = settle(math.MaxUint64, math.MaxInt)
		}
		// The runtime itself may keep a quarter of a megabyte.
		inUse, goroutines := settle(heapAfterFirst+256<<10, goroutinesAfterFirst)
		require.LessOrEqual(t, inUse, heapAfterFirst+256<<10, "bytes in use after limiter %d", n)
		require.LessOrEqual(t, goroutines, goroutinesAfterFirst, "goroutines after limiter %d", n)
		if time.Since(said) >= 30*time.Second {
			said = time.Now()
			t.Logf("%v of %v: %d limiters, %v, heap %d KiB (%d after the first), %d goroutines",
				time.Since(begin).Round(time.Second), long, n+1, &total, inUse>>10, heapAfterFirst>>10, goroutines)
		}
	}
	t.Log(&total)
	assert.Positive(t, total.admitted)
	assert.Positive(t, total.refused)
	assert.Positive(t, total.opened)
}

// keepGoroutines makes the runtime allocate the descriptors of n goroutines. The runtime reuses descriptors but never
// frees them. The goroutines of a dropped limiter live until the limiter is collected. So without this call, the heap
// would grow whenever more goroutines exist than before.
func keepGoroutines(n int) {
	ended, running := make(chan struct{}), sync.WaitGroup{}
	for range n {
		running.Go(func() { <-ended })
	}
	close(ended)
	running.Wait()
}

// settle collects garbage until at most the given bytes and goroutines are in use, or until further collections are
// hopeless. It returns how many bytes and goroutines are in use. A dropped limiter needs several collections: for
// itself, its goroutines, and their memory.
func settle(bytes uint64, goroutines int) (uint64, int) {
	for i := 0; ; i++ {
		b, g := heap(), runtime.NumGoroutine()
		if i >= 3 && b <= bytes && g <= goroutines || i == 300 {
			return b, g
		}
		runtime.Gosched()
	}
}

type soakTotals struct {
	admitted, refused, opened, rounds uint64
	inexact                           int // limiters with few keys that still forgot a record, or admitted without one
}

func (s *soakTotals) String() string {
	return fmt.Sprintf("%d admitted, %d refused, %d limiters opened beside, %d rounds beside, %d inexact",
		s.admitted, s.refused, s.opened, s.rounds, s.inexact)
}

const (
	soakWorkers = 8
	soakBurst   = 8
	soakCost    = 3                     // the largest cost of a take
	soakLate    = time.Millisecond      // times of TakeAt are late by up to this time
	funcLate    = 50 * time.Microsecond // readings of the ClockFunc are late by up to this time
	coarseStep  = time.Millisecond      // the coarse clock may be renewed only after this time
)

// A soaked is a limiter whose admissions are checked, in nanoseconds of Go's clock since begin.
type soaked struct {
	*engine.Limiter
	begin    time.Time
	clock    int // 0 counter, 1 precise, 2 coarse, 3 ClockFunc
	perToken int64
	keys     []string
	bytes    uint64
	fresh    atomic.Int64 // a coarseStep later than a time that the coarse clock has certainly reached
	opened   atomic.Uint64
}

func (s *soaked) now() int64 { return int64(time.Since(s.begin)) }

func soakClock(kind int) engine.Option {
	switch kind {
	case 0:
		return engine.ClockTSC()
	case 1:
		return engine.ClockPrecise()
	case 2:
		return engine.ClockCoarse()
	}
	return engine.ClockFunc(func() time.Time {
		return time.Now().Add(-rand.N(funcLate))
	})
}

// soakLimiter uses the n-th limiter and checks its admissions.
//
// With evictions or admissions without a record, only the size of the excess can be checked. So most limiters with such
// a policy have fewer keys than slots in a window, even if each goroutine uses a slot for a moment. Then no record is
// forgotten.
func soakLimiter(t *testing.T, n uint64, long time.Duration, gauge gauge, total *soakTotals) {
	cycle := n / 12
	overflow, clock := engine.OverflowPolicy(n%3), int(n/3%4)
	perToken := []time.Duration{time.Millisecond, 10 * time.Microsecond}[(n+cycle)%2]
	crowded := overflow == engine.Refuse || (n/3+cycle/2)%2 == 1
	random := rand.New(rand.NewPCG(n, 0))

	options := []engine.Option{
		soakClock(clock), engine.Overflow(overflow), engine.SweepInterval(time.Millisecond), engine.Shards(1 << random.IntN(2)),
		engine.MaxKeys([]int{1, 1, 1, 1, 500, 3_000_000}[random.IntN(6)]),
	}
	if random.IntN(2) == 0 {
		options = append(options, engine.Prefault())
	}
	s := &soaked{begin: time.Now(), clock: clock, perToken: int64(perToken)}
	var err error
	s.Limiter, err = engine.New(engine.TokenBucket(engine.Per(1, perToken), soakBurst), options...)
	require.NoError(t, err)
	defer s.Close()
	s.bytes = s.Stats().Bytes
	s.keys = make([]string, 12)
	if crowded {
		s.keys = make([]string, 48)
	}
	for i := range s.keys {
		s.keys[i] = fmt.Sprintf("limiter %d key %d", n, i)
	}

	audits := make([]soakAudit, len(s.keys))
	cost := int64(0)
	for segment := uint64(0); s.now() < int64(long); segment++ {
		ahead := gauge.ahead(t)
		end := s.now() + int64(min(100*time.Millisecond, long/2))
		results := make([]soakResult, soakWorkers)
		var working sync.WaitGroup
		for g := range results {
			working.Go(func() { results[g] = s.work(rand.New(rand.NewPCG(n<<32|segment, uint64(g))), end) })
		}
		func() {
			defer working.Wait()
			for s.now() < end {
				[]round{frozenRound, conservedRound, movingRound}[total.rounds%3](t, 1000+total.rounds)
				total.rounds++
			}
		}()
		ahead = max(ahead, gauge.ahead(t))

		lists := make([][]soakAdmission, len(s.keys))
		for _, r := range results {
			require.Empty(t, r.wrong)
			total.refused += r.refused
			for i, list := range r.admissions {
				total.admitted += uint64(len(list))
				lists[i] = append(lists[i], list...)
			}
		}
		// Tokens above the limit may be admitted only if the same number of tokens was forgiven or never charged. These
		// tokens must be counted.
		stats := s.Stats()
		counted := int64(stats.Forgiven+soakCost*stats.Unrecorded) * s.perToken
		burst := soakBurst * s.perToken
		for i := range lists {
			for _, a := range lists[i] {
				cost += a.cost
			}
			// Both ends of an interval may be wrong by the difference of the clocks.
			excess := audits[i].excess(lists[i]) - 2*ahead
			require.LessOrEqual(t, excess, burst+counted, "%s: %v too many tokens; limiter %d, segment %d, its clock %dns off, %+v",
				s.keys[i], float64(excess-burst-counted)/float64(s.perToken), n, segment, ahead, stats)
		}
		require.LessOrEqual(t, cost, int64(len(s.keys))*(burst+s.now()+2*ahead+int64(soakLate+coarseStep))+counted, "limiter %d in all", n)
	}
	if stats := s.Stats(); !crowded && stats.Forgiven+stats.Unrecorded > 0 {
		total.inexact++
	}
	total.opened += s.opened.Load()
}

type soakResult struct {
	admissions [][]soakAdmission // the admissions of each key
	refused    uint64
	wrong      []string
}

func (s *soaked) work(random *rand.Rand, end int64) soakResult {
	r := soakResult{admissions: make([][]soakAdmission, len(s.keys))}
	for {
		before := s.now()
		if before >= end {
			return r
		}
		// Four keys at a time are in use, for the time in which an empty bucket fills twice. Meanwhile the other keys'
		// records become idle and are forgotten.
		i := (int(before/(2*soakBurst*s.perToken))*3 + random.IntN(4)) % len(s.keys)
		key, cost := s.keys[i], 1+random.Uint64N(soakCost)
		from, allowed := s.earliest(before), false
		switch op := random.IntN(1000); {
		case op < 350:
			allowed, cost = s.Allow(key), 1
		case op < 600:
			d := s.Take(key, cost)
			allowed = d.Allowed
			if !allowed && d.RetryAfter < d.ResetAfter {
				s.refreshed(before) // it was refused because of missing tokens, not because of missing room
			}
		case op < 800:
			from = before - random.Int64N(int64(soakLate))
			allowed = s.TakeAt(s.Key(key), cost, s.begin.Add(time.Duration(from))).Allowed
		case op < 850:
			if d := s.Peek(s.Key(key), cost); d.Limit != soakBurst || d.Remaining > soakBurst || d.Allowed != (d.RetryAfter == 0) {
				r.wrong = append(r.wrong, fmt.Sprintf("peek: %+v", d))
			}
			continue
		case op < 980: // keys that are used once: each goroutine has at most one such record
			k := s.KeyUint64(random.Uint64())
			s.AllowKey(k)
			s.Reset(k)
			continue
		case op < 990:
			s.Sweep()
			continue
		case op < 999:
			if st := s.Stats(); st.Bytes != s.bytes {
				r.wrong = append(r.wrong, fmt.Sprintf("bytes held: %d, and %d at first", st.Bytes, s.bytes))
			}
			continue
		default:
			if err := openAnother(random); err != nil {
				r.wrong = append(r.wrong, err.Error())
			}
			s.opened.Add(1)
			continue
		}
		if allowed {
			r.admissions[i] = append(r.admissions[i], soakAdmission{from, s.now(), int64(cost) * s.perToken})
		} else {
			r.refused++
		}
	}
}

// earliest returns the earliest time at which a call that begins now can be decided. It is needed because the limiter
// does not report the time of a decision.
func (s *soaked) earliest(now int64) int64 {
	switch s.clock {
	case 2:
		// The coarse clock is late while the goroutine that renews the clock does not run. But a refused call renews
		// the clock, too.
		return min(now, s.fresh.Load()) - int64(coarseStep)
	case 3:
		return now - int64(funcLate)
	}
	return now
}

// refreshed records that a call has renewed the coarse clock, at the time before or later. The clock now shows at least
// before - coarseStep.
func (s *soaked) refreshed(before int64) {
	for {
		fresh := s.fresh.Load()
		if before <= fresh || s.fresh.CompareAndSwap(fresh, before) {
			return
		}
	}
}

func openAnother(random *rand.Rand) error {
	clock := random.IntN(4)
	options := []engine.Option{
		engine.MaxKeys(1 + random.IntN(300)), soakClock(clock), engine.Overflow(engine.OverflowPolicy(random.IntN(3))),
		engine.SweepInterval(time.Duration(1+random.IntN(20)) * time.Millisecond), engine.Prefault(),
	}
	if random.IntN(2) == 0 {
		options = append(options, engine.HashStable())
	}
	l, err := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 3), options...)
	if err != nil {
		return err
	}
	admitted := 0
	for range 5 {
		if l.Allow("key") {
			admitted++
		}
	}
	if random.IntN(2) == 0 {
		err = l.Close()
	}
	if l.Allow("key") {
		admitted++
	}
	// With a clock that goes back, the limiter may refuse early, but must not admit more.
	if admitted > 3 || admitted < 3 && clock != 3 || err != nil {
		return fmt.Errorf("a new limiter with clock %d admitted %d of its burst of 3; closed: %v", clock, admitted, err)
	}
	return nil
}

// A soakAdmission is one admitted take. It was decided at some time between first and last, both included. The field
// cost is the time in which the take's tokens come back.
type soakAdmission struct{ first, last, cost int64 }

// A soakAudit checks one key over all segments of a soak. X is the beginning of an interval: see the method excess.
type soakAudit struct {
	seen   bool
	latest int64 // the latest X so far
	most   int64 // the highest X + (cost that was certainly admitted since X)
}

// The method excess takes the admissions of a segment, in any order. For an interval [X, Y], the excess is the cost
// certainly admitted within the interval, minus the interval's length. An admission is certain if its first time is X
// or later, and its last time is Y or earlier. The result is the largest excess, which must not exceed the burst. It
// covers intervals that begin at a first time of this or an earlier segment, and end at a last time of this segment.
// (Any other interval can be shortened to one of these.)
//
// An admission of a later segment may have a first time before the latest X of the earlier segments. Such an admission
// is left out of the intervals that begin in an earlier segment.
func (a *soakAudit) excess(list []soakAdmission) int64 {
	const none = math.MinInt64 / 2
	if len(list) == 0 {
		return none
	}
	// The leaves of a tree are the admissions, in the order of their first times. They are added in the order of their
	// last times. Each node has the cost of the added admissions below it, and their highest X + (cost from X on).
	slices.SortFunc(list, func(a, b soakAdmission) int { return cmp.Compare(a.first, b.first) })
	size := 1
	for size < len(list) {
		size *= 2
	}
	type node struct{ cost, most int64 }
	tree := slices.Repeat([]node{{0, none}}, 2*size)
	entering := make([]int, len(list))
	for i := range list {
		entering[i] = i
	}
	slices.SortFunc(entering, func(i, j int) int { return cmp.Compare(list[i].last, list[j].last) })
	if !a.seen {
		a.seen, a.latest, a.most = true, math.MinInt64, none
	}
	worst := int64(none)
	for _, i := range entering {
		in := list[i]
		tree[size+i] = node{in.cost, in.first + in.cost}
		for j := (size + i) / 2; j > 0; j /= 2 {
			l, r := tree[2*j], tree[2*j+1]
			tree[j] = node{l.cost + r.cost, max(r.most, l.most+r.cost)}
		}
		if in.first >= a.latest {
			a.most += in.cost
		}
		worst = max(worst, max(tree[1].most, a.most)-in.last)
	}
	a.most, a.latest = max(a.most, tree[1].most), max(a.latest, list[len(list)-1].first)
	return worst
}

// TestSoakAudit: excess agrees with a search over all intervals, also across segments.
func TestSoakAudit(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		var all []soakAdmission
		var audit soakAudit
		for base := int64(0); base < 300; base += 100 {
			var list []soakAdmission
			for range random.IntN(8) {
				first := base + random.Int64N(100)
				last := first + random.Int64N(100-first%100)
				list = append(list, soakAdmission{first, last, 1 + random.Int64N(30)})
			}
			all = append(all, list...)
			want := int64(math.MinInt64 / 2)
			for _, y := range list {
				for _, x := range all {
					sum := int64(0)
					for _, a := range all {
						if a.first >= x.first && a.last <= y.last {
							sum += a.cost
						}
					}
					if x.last <= y.last {
						want = max(want, sum-(y.last-x.first))
					}
				}
			}
			require.Equal(t, want, audit.excess(list))
		}
	}
	var audit soakAudit
	require.EqualValues(t, 5, audit.excess([]soakAdmission{{0, 0, 3}, {0, 0, 2}, {100, 100, 5}}))
	require.EqualValues(t, 9, audit.excess([]soakAdmission{{101, 101, 5}}), "a burst twice, across the segments")
}

// A gauge measures how far the clock of limiters differs from Go's clock. The clock of limiters may be the processor's
// counter. A gauge is itself a limiter during the complete soak, so that the counter stays calibrated.
type gauge struct {
	*engine.Limiter
	key engine.Key
}

func newGauge(t *testing.T) gauge {
	l, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 100), engine.MaxKeys(1))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return gauge{l, l.Key("gauge")}
}

// ahead returns an upper bound for the difference of the two clocks in nanoseconds. It is the smallest bound of several
// measurements.
func (g gauge) ahead(t *testing.T) int64 {
	nearest := int64(math.MaxInt64)
	for range 10 {
		g.Reset(g.key)
		at := time.Now()
		d := g.TakeAt(g.key, 100, at)
		require.True(t, d.Allowed)
		// By the limiter's clock, the bucket is full at this time.
		full := at.Add(d.ResetAfter)
		before := time.Now()
		left := g.Peek(g.key, 0).ResetAfter
		after := time.Now()
		reads := full.Add(-left)
		nearest = min(nearest, int64(max(reads.Sub(before).Abs(), reads.Sub(after).Abs())))
	}
	return nearest
}
