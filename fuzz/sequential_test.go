package fuzz

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/reference"
	"github.com/weir-go/weir/shard"
)

type numbers struct {
	tokens float64
	period time.Duration
	burst  uint64
}

func (n numbers) String() string {
	return fmt.Sprintf("%v per %v burst %d", n.tokens, n.period, n.burst)
}

var (
	// whole has exact policies with a whole number of nanoseconds between tokens.
	whole = []numbers{
		{1, time.Second, 5},
		{1000, time.Second, 1},
		{10, 1500 * time.Millisecond, 10},
		{1e9, time.Second, 4},
		{1, time.Hour, 600}, // the burst has almost the largest possible number of ticks
	}
	// broken has exact policies without a whole number of nanoseconds between tokens.
	broken = []numbers{
		{3e8, time.Second, 4},
		{60, time.Second, 100},
		{16, 15 * time.Microsecond, 3},
		{16, time.Microsecond, 7},
	}
	// rounded has policies that round: tokens are never early, and at most two ticks late.
	rounded = []numbers{
		{97, time.Second, 97},
		{1.0 / 3, time.Minute, 2},
		{999999937, time.Second, 5},
		{1, 24 * time.Hour, 1000}, // long ticks
		{1, math.MaxInt64, 4},     // the longest ticks
	}
)

func (n numbers) algorithm(t require.TestingT) atomicbucket.TokenBucket {
	algorithm, err := atomicbucket.NewTokenBucket(n.tokens, n.period, n.burst)
	require.NoError(t, err)
	return algorithm
}

// slack returns by how many tokens an algorithm may report less than the exact bucket. For an exact algorithm, it is 0.
// For any other algorithm, it is the tokens of two ticks. A thousandth of a tick is added, because the algorithm's
// clock is slow by less than one part in 2^63.
func slack(algorithm *atomicbucket.TokenBucket) *big.Rat {
	if algorithm.Exact() {
		return new(big.Rat)
	}
	return new(big.Rat).Quo(big.NewRat(2001, 1000), rat(algorithm.Cost(1)))
}

func rat(n uint64) *big.Rat { return new(big.Rat).SetInt(new(big.Int).SetUint64(n)) }

// floor and ceil round a number down and up. A negative number counts as 0.
func floor(r *big.Rat) uint64 {
	if r.Sign() < 0 {
		return 0
	}
	return new(big.Int).Quo(r.Num(), r.Denom()).Uint64()
}

func ceil(r *big.Rat) uint64 {
	n := floor(r)
	if r.Cmp(rat(n)) > 0 {
		n++
	}
	return n
}

func requireBetween(t require.TestingT, low, got, high *big.Rat, what string, args ...any) {
	if got.Cmp(low) < 0 || got.Cmp(high) > 0 {
		require.Failf(t, "out of range", "%s: %s is not from %s to %s", fmt.Sprintf(what, args...), got.FloatString(12), low.FloatString(12), high.FloatString(12))
	}
}

// A spend is an admitted take with the time of its decision.
type spend struct {
	at int64
	n  uint64
}

// requirePairsWithin (I1): from any spend to any later one, both included, at most burst + rate * time tokens are
// spent. This is checked in one pass, by the difference between the tokens spent and the tokens that came back. After a
// spend, the difference may be at most burst above its lowest value before any spend so far.
func requirePairsWithin(t require.TestingT, spends []spend, rate *big.Rat, burst uint64) {
	slices.SortStableFunc(spends, func(a, b spend) int { return int(min(max(a.at-b.at, -1), 1)) })
	sum, least := new(big.Rat), (*big.Rat)(nil)
	for _, s := range spends {
		back := new(big.Rat).Mul(rate, new(big.Rat).SetInt64(s.at))
		if before := new(big.Rat).Sub(sum, back); least == nil || before.Cmp(least) < 0 {
			least = before
		}
		sum.Add(sum, rat(s.n))
		between := new(big.Rat).Sub(sum, back)
		between.Sub(between, least)
		require.LessOrEqual(t, between.Cmp(rat(burst)), 0, "I1: %s tokens more than came back, until %d", between.FloatString(3), s.at)
	}
}

// drawWait draws a time to wait: about the time of a token or of a burst. Rarely, it draws a leap: up to a turn of the
// payload's circle, and more.
func drawWait(t *rapid.T, p numbers) int64 {
	token := float64(p.period) / p.tokens
	scale := rapid.SampledFrom([]float64{0, 0, token / 3, token, token, 2 * token, token * float64(p.burst), token * float64(p.burst) / 2}).Draw(t, "scale")
	if rapid.IntRange(0, 39).Draw(t, "leap") == 39 {
		scale = math.Ldexp(1, rapid.IntRange(45, 60).Draw(t, "leap bits"))
	}
	return max(int64(min(scale, 1<<62))+rapid.Int64Range(-2, 2).Draw(t, "off"), 0)
}

// believed is the latest clock reading that a limiter made at noon trusts.
const believed = noon + (math.MaxInt64-noon)/2

// The function after returns the time that is wait nanoseconds after nanos, or the latest possible time.
func after(nanos, wait int64) int64 {
	if wait > believed-nanos {
		return believed
	}
	return nanos + wait
}

// A tableMachine makes the same calls on a small table and on a model, which is a map.
type tableMachine struct {
	numbers      numbers
	table        *shard.Table
	algorithm    *atomicbucket.TokenBucket
	slack        *big.Rat
	overflow     shard.Overflow
	model        *reference.Table[uint64]
	probeWindows map[uint64]int // the window of every key
	keys         []uint64
	clock        int64 // never moves back
	used         int64 // the latest time that a call has used
	watermark    int64 // the watermark after the last call
	want         shard.Stats
	spends       map[uint64][]spend
}

const machineWindow = 4

// newTableMachine makes a table whose windows are one line each. The argument perWindow is the number of keys for each
// window. One of the keys is 0.
func newTableMachine(t *rapid.T, p numbers, shards int, overflow shard.Overflow, perWindow int) *tableMachine {
	const slots = 16
	table, err := shard.New(shard.Config{Plan: planOf(t, p.algorithm(t)), Slots: slots, Shards: shards, ProbeWindow: machineWindow, Overflow: overflow, Start: start})
	require.NoError(t, err)
	m := &tableMachine{
		numbers:      p,
		table:        table,
		algorithm:    bucketOf(table),
		slack:        slack(bucketOf(table)),
		overflow:     overflow,
		model:        reference.NewTable[uint64](p.tokens, p.period, p.burst),
		probeWindows: map[uint64]int{},
		clock:        start,
		used:         start,
		watermark:    start,
		spends:       map[uint64][]spend{},
	}
	// The low bits of a key choose the shard, and the high bits its line.
	lines := slots / machineWindow / shards
	for s := range shards {
		for line := range lines {
			for i := range perWindow {
				key := uint64(math.MaxUint64)/uint64(lines)*uint64(line) + uint64(line)
				key += uint64(i)<<16 | uint64(s)
				key &^= 0xff &^ uint64(s)
				m.keys = append(m.keys, key)
				m.probeWindows[key] = s*lines + line
			}
		}
	}
	m.want = table.Stats()
	return m
}

// The method at returns the time at which a call is decided: now, or the watermark if the watermark is later.
func (m *tableMachine) at(now int64) int64 {
	m.used = max(m.used, now)
	return max(now, m.watermark)
}

func (m *tableMachine) debt(s atomicbucket.State, at int64) *big.Rat {
	d := rat(m.algorithm.Debt(s.Record(), m.algorithm.Ticks(at)))
	return d.Quo(d, rat(m.algorithm.Cost(1)))
}

func (m *tableMachine) requireDebt(t *rapid.T, s atomicbucket.State, key uint64, at int64, what string) {
	exact := m.model.Debt(key, at)
	requireBetween(t, exact, m.debt(s, at), new(big.Rat).Add(exact, m.slack), "I2: %s, key %#x, debt at %d", what, key, at)
}

// rivals returns the other keys of the key's window that are not idle.
func (m *tableMachine) rivals(key uint64, at int64) []uint64 {
	return slices.DeleteFunc(m.model.Indebted(at), func(k uint64) bool { return k == key || m.probeWindows[k] != m.probeWindows[key] })
}

func (m *tableMachine) take(t *rapid.T, key uint64, now int64, n uint64) {
	at := m.at(now)
	tokens, rivals := m.model.Tokens(key, at), m.rivals(key, at)
	indebted := m.model.Debt(key, at).Sign() > 0
	o := m.table.Take(m.table.Find(key), now, n, 0)
	s, got, verdict := o.State, o.At, o.Verdict
	require.Equal(t, at, got, "the time of a take at %d with the watermark at %d", now, m.watermark)

	if !indebted && len(rivals) == machineWindow {
		if m.overflowed(t, key, at, n, s, verdict, rivals) {
			return
		}
	} else if tokens.Cmp(rat(n)) < 0 {
		require.Equal(t, shard.Refused, verdict, "early (I1, I8): %d of %s tokens", n, tokens.FloatString(9))
	} else if tokens.Sub(tokens, m.slack).Cmp(rat(n)) >= 0 {
		require.Equal(t, shard.Admitted, verdict, "late, or a bucket that did not fill: %d of %s tokens", n, tokens.FloatString(9))
	}
	if verdict == shard.Admitted {
		require.True(t, m.model.Take(key, at, n))
		m.spends[key] = append(m.spends[key], spend{at, n})
		requirePairsWithin(t, m.spends[key], m.model.Rate(), m.numbers.burst)
	} else {
		require.Equal(t, shard.Refused, verdict)
	}
	m.requireDebt(t, s, key, at, "take")
}

// overflowed checks the decision for a key that has no record. There is no room for a record, because the other keys of
// its window are not idle. overflowed reports whether the key's bucket in the model stays unchanged.
func (m *tableMachine) overflowed(t *rapid.T, key uint64, at int64, n uint64, s atomicbucket.State, verdict shard.Verdict, rivals []uint64) bool {
	least := m.model.Debt(rivals[0], at)
	for _, k := range rivals {
		if d := m.model.Debt(k, at); d.Cmp(least) < 0 {
			least = d
		}
	}
	switch m.overflow {
	case shard.Refuse:
		require.Equal(t, shard.NoRoom, verdict)
		require.Zero(t, least.Cmp(m.debt(s, at)), "the record that is idle first")
		m.want.NoRoom++
		return true
	case shard.Admit:
		require.Equal(t, shard.Unrecorded, verdict)
		require.Zero(t, rat(n).Cmp(m.debt(s, at)), "what the record would be")
		m.want.Unrecorded++
		return true
	}
	require.Equal(t, shard.Admitted, verdict)
	var gone []uint64
	for _, k := range rivals {
		o, _ := m.table.Peek(m.table.Find(k), at, 0, 0)
		if m.algorithm.Idle(o.State, m.algorithm.Ticks(at)) {
			gone = append(gone, k)
		}
	}
	require.Len(t, gone, 1, "I7: one of the four was forgotten")
	require.Zero(t, least.Cmp(m.model.Debt(gone[0], at)), "the one with the least debt")
	m.want.Evictions++
	m.want.Forgiven += ceil(least)
	m.forget(gone[0])
	return false
}

func (m *tableMachine) forget(key uint64) {
	m.model.Forget(key)
	delete(m.spends, key)
}

// reset resets a key. The key may have no record only if nothing was taken, or if the record was idle at the watermark.
func (m *tableMachine) reset(t *rapid.T, key uint64) {
	had := m.table.Reset(m.table.Find(key))
	if had {
		require.True(t, m.model.Known(key), "a record of a key from which nothing was taken")
	} else {
		require.LessOrEqual(t, m.model.Debt(key, m.watermark).Sign(), 0, "I7: a record was forgotten that was not idle")
	}
	m.forget(key)
}

// sweep makes a sweep. Afterwards exactly the keys that are not idle must have one record each (I3).
func (m *tableMachine) sweep(t *rapid.T, now int64) {
	at := m.at(now)
	epoch := m.table.Stats().Epoch
	require.True(t, m.table.Sweep(now, nil))
	require.Equal(t, at, m.table.Watermark())
	stats := m.table.Stats()
	require.Greater(t, stats.Epoch, epoch)
	fewest := len(m.model.Indebted(at))
	most := fewest
	if !m.algorithm.Exact() { // some records that have just become idle may also stay
		most = len(m.model.Indebted(max(at-int64(ceil(new(big.Rat).Quo(m.slack, m.model.Rate()))), 0)))
	}
	require.GreaterOrEqual(t, stats.Live, uint64(fewest), "I7: records that were not idle are gone")
	require.LessOrEqual(t, stats.Live, uint64(most), "I3: records that are idle, or a second one of a key")
}

func (m *tableMachine) check(t *rapid.T) {
	require.GreaterOrEqual(t, m.table.Watermark(), m.watermark, "the watermark never falls")
	for _, key := range m.keys {
		o, _ := m.table.Peek(m.table.Find(key), m.used, 0, 0)
		s, at := o.State, o.At
		require.Equal(t, m.used, at)
		m.requireDebt(t, s, key, at, "look")
	}
	m.watermark = m.table.Watermark()
	require.LessOrEqual(t, m.watermark, m.used, "the watermark has been reached")
	got := m.table.Stats()
	// Without other goroutines, only a take's own sweep after a leap of time can make the take search again.
	require.LessOrEqual(t, got.Retries-m.want.Retries, got.Epoch-m.want.Epoch)
	m.want.Live, m.want.Epoch, m.want.Reclaimed, m.want.Retries = got.Live, got.Epoch, got.Reclaimed, got.Retries
	require.Equal(t, m.want, got, "evictions, forgiven, no room (I7); no bytes more (I6)")
}

func (m *tableMachine) drawNow(t *rapid.T) int64 {
	switch rapid.IntRange(0, 7).Draw(t, "late") {
	case 5:
		return max(m.clock-drawWait(t, m.numbers), 0)
	case 6:
		return max(m.watermark+rapid.Int64Range(-1, 1).Draw(t, "around the watermark"), 0)
	case 7:
		return 0
	}
	return m.clock
}

// advance moves the clock by a random time, or until a key is just full or just has some tokens.
func (m *tableMachine) advance(t *rapid.T) {
	if rapid.Bool().Draw(t, "to an edge") {
		key := rapid.SampledFrom(m.keys).Draw(t, "key")
		edge := m.model.FullAt(key)
		edge.Sub(edge, new(big.Rat).Quo(rat(rapid.Uint64Range(0, m.numbers.burst).Draw(t, "tokens less")), m.model.Rate()))
		if edge.Cmp(new(big.Rat).SetInt64(m.clock)) > 0 && edge.Cmp(new(big.Rat).SetInt64(math.MaxInt64-2)) < 0 {
			m.clock = max(m.clock, int64(ceil(edge))+rapid.Int64Range(-1, 1).Draw(t, "off"))
			return
		}
	}
	m.clock = after(m.clock, drawWait(t, m.numbers))
}

func drawCost(t *rapid.T, burst uint64) uint64 {
	switch rapid.IntRange(0, 3).Draw(t, "cost kind") {
	case 0:
		return burst
	case 1:
		return rapid.Uint64Range(1, burst).Draw(t, "cost")
	}
	return rapid.Uint64Range(1, min(burst, 3)).Draw(t, "small cost")
}

// TestTableAgainstAMap (I1, I2, I3, I7, I8): random calls on a small table give the same buckets as a map that keeps
// every key. Times leap and are late. If there is no room for a key, the table follows the overflow policy and counts
// the case.
//
// Buckets of an algorithm that rounds are never early, and at most two ticks late. For such an algorithm there are no
// more keys than slots. With more keys, it would not always be certain whether there is room.
func TestTableAgainstAMap(t *testing.T) {
	for _, overflow := range []shard.Overflow{shard.Evict, shard.Refuse, shard.Admit} {
		for _, shards := range []int{1, 4} {
			t.Run(fmt.Sprintf("overflow %d, %d shards", overflow, shards), rapid.MakeCheck(func(t *rapid.T) {
				p := rapid.SampledFrom(slices.Concat(whole, broken)).Draw(t, "numbers")
				runTable(t, newTableMachine(t, p, shards, overflow, machineWindow+3))
			}))
		}
	}
	for _, p := range rounded {
		t.Run(p.String(), rapid.MakeCheck(func(t *rapid.T) {
			shards := rapid.SampledFrom([]int{1, 4}).Draw(t, "shards")
			runTable(t, newTableMachine(t, p, shards, shard.Evict, machineWindow))
		}))
	}
}

func runTable(t *rapid.T, m *tableMachine) {
	// Most calls are for a few keys of one window.
	anyKey := rapid.SampledFrom(m.keys)
	few := rapid.SampledFrom(m.keys[:min(len(m.keys), machineWindow+3)])
	take := func(t *rapid.T) {
		key := few.Draw(t, "key")
		m.take(t, key, m.drawNow(t), drawCost(t, m.numbers.burst))
	}
	t.Repeat(map[string]func(*rapid.T){
		"take":  take,
		"take2": take,
		"take3": take,
		"take from anybody": func(t *rapid.T) {
			m.take(t, anyKey.Draw(t, "key"), m.clock, drawCost(t, m.numbers.burst))
		},
		"fill a probe window": func(t *rapid.T) {
			for _, key := range m.keys[:machineWindow] {
				m.take(t, key, m.clock, drawCost(t, m.numbers.burst))
				m.watermark = m.table.Watermark()
			}
		},
		"look": func(t *rapid.T) {
			key, now := few.Draw(t, "key"), m.drawNow(t)
			want := m.at(now)
			o, _ := m.table.Peek(m.table.Find(key), now, 0, 0)
			s, at := o.State, o.At
			require.Equal(t, want, at)
			m.requireDebt(t, s, key, at, "look")
		},
		"reset":   func(t *rapid.T) { m.reset(t, few.Draw(t, "key")) },
		"sweep":   func(t *rapid.T) { m.sweep(t, m.drawNow(t)) },
		"advance": m.advance,
		"wait":    m.advance,
		"":        m.check,
	})
}

// TestLimiterAgainstAMap (I1, I2, I3, I6, I7, I8): every field of every answer to random calls agrees with a map of
// exact buckets. Times are equal to the nanosecond, or up to two ticks later if the algorithm rounds. Half of the
// limiters have fewer slots than keys.
func TestLimiterAgainstAMap(t *testing.T) {
	for _, overflow := range []engine.OverflowPolicy{engine.Evict, engine.Refuse, engine.Admit} {
		t.Run(fmt.Sprintf("32 slots, overflow %d", overflow), rapid.MakeCheck(func(t *rapid.T) {
			p := rapid.SampledFrom(whole).Draw(t, "numbers")
			runLimiter(t, newWitness(t, p, true, overflow))
		}))
	}
	for name, list := range map[string][]numbers{"exact": slices.Concat(whole, broken), "rounded": rounded} {
		t.Run("room for all, "+name, rapid.MakeCheck(func(t *rapid.T) {
			p := rapid.SampledFrom(list).Draw(t, "numbers")
			runLimiter(t, newWitness(t, p, false, engine.Evict))
		}))
	}
}

func runLimiter(t *rapid.T, w *witness) {
	defer w.limiter.Close()
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("client %d", i))
	}
	few, anybody := rapid.SampledFrom(names[:4]), rapid.SampledFrom(names)
	cost := func(t *rapid.T) uint64 {
		switch rapid.IntRange(0, 15).Draw(t, "odd cost") {
		case 14:
			return 0
		case 15:
			return w.numbers.burst + rapid.SampledFrom([]uint64{1, 2, math.MaxUint64 - 1<<33}).Draw(t, "above the burst")
		}
		return drawCost(t, w.numbers.burst)
	}
	advance := func(t *rapid.T, key string) {
		now := w.clock.nanos.Load()
		if rapid.Bool().Draw(t, "to an edge") {
			edge := w.model.FullAt(key)
			edge.Sub(edge, new(big.Rat).Quo(rat(rapid.Uint64Range(0, w.numbers.burst).Draw(t, "tokens less")), w.rate))
			if edge.Cmp(new(big.Rat).SetInt64(now)) > 0 && edge.Cmp(new(big.Rat).SetInt64(believed-2)) < 0 {
				w.clock.nanos.Store(max(now, int64(ceil(edge))+rapid.Int64Range(-1, 1).Draw(t, "off")))
				return
			}
		}
		w.clock.nanos.Store(after(now, drawWait(t, w.numbers)))
	}
	take := func(t *rapid.T) { w.take(t, few.Draw(t, "key"), cost(t)) }
	t.Repeat(map[string]func(*rapid.T){
		"take":  take,
		"take2": take,
		"allow": func(t *rapid.T) { w.allow(t, anybody.Draw(t, "key")) },
		"take at": func(t *rapid.T) {
			at := w.clock.nanos.Load()
			switch rapid.IntRange(0, 5).Draw(t, "when") {
			case 0:
				at = after(at, drawWait(t, w.numbers))
			case 1:
				at = w.seen
			case 2:
				at = 0
			default:
				at = max(at-drawWait(t, w.numbers), 0)
			}
			w.takeAt(t, few.Draw(t, "key"), cost(t), time.Unix(0, at))
		},
		"peek":  func(t *rapid.T) { w.peek(t, few.Draw(t, "key"), cost(t)) },
		"reset": func(t *rapid.T) { w.reset(few.Draw(t, "key")) },
		"sweep": w1(w.sweep),
		"flood": func(t *rapid.T) {
			for _, name := range names[:rapid.IntRange(20, 40).Draw(t, "keys")] {
				w.take(t, name, drawCost(t, w.numbers.burst))
			}
		},
		"everybody": func(t *rapid.T) {
			for _, name := range names {
				w.peek(t, name, 1)
			}
		},
		"advance": func(t *rapid.T) { advance(t, few.Draw(t, "key")) },
		"wait":    func(t *rapid.T) { waitAsTold(t, w, few.Draw(t, "key"), drawCost(t, w.numbers.burst)) },
		"":        func(t *rapid.T) { w.stats(t) },
	})
}

// w1 adapts a method with any kind of test to rapid.
func w1(f func(require.TestingT)) func(*rapid.T) { return func(t *rapid.T) { f(t) } }

// waitAsTold takes until a take is refused, and checks the promised wait. During the wait, each take is refused and
// reports the rest of the wait. At the end of the wait, a take is admitted.
func waitAsTold(t *rapid.T, w *witness, key string, n uint64) {
	if w.late() {
		w.clock.nanos.Store(w.seen)
	}
	var d engine.Decision
	for range 12 { // an algorithm that rounds may withhold the last token for a tick or two
		if d = w.take(t, key, n); !d.Allowed {
			break
		}
	}
	now := w.clock.nanos.Load()
	if d.Allowed || d.RetryAfter <= 0 || int64(d.RetryAfter) > believed-now {
		return // there is no room, or the wait ends after the end of time
	}
	for _, part := range []int64{int64(d.RetryAfter) / 4, int64(d.RetryAfter) / 2, int64(d.RetryAfter) / 4 * 3, int64(d.RetryAfter) - 1} {
		w.clock.nanos.Store(now + part)
		again := w.take(t, key, n)
		require.False(t, again.Allowed, "%v after being told to wait %v", time.Duration(part), d.RetryAfter)
		require.Equal(t, d.RetryAfter-time.Duration(part), again.RetryAfter)
	}
	w.clock.nanos.Store(now + int64(d.RetryAfter))
	require.True(t, w.take(t, key, n).Allowed, "after waiting %v, as told", d.RetryAfter)
}
