package shard

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// start is the time at which test tables are made. At 1/s a tick is a nanosecond.
const (
	start  = int64(1 << 60)
	second = int64(time.Second)
)

// perSecond returns a token bucket with a rate, in tokens per second, and a burst.
func perSecond(t testing.TB, rate float64, burst uint64) atomicbucket.TokenBucket {
	algorithm, err := atomicbucket.NewTokenBucket(rate, time.Second, burst)
	require.NoError(t, err)
	return algorithm
}

func planOf(t testing.TB, algorithm atomicbucket.TokenBucket) *Plan {
	plan, err := NewPlan(&algorithm, 0)
	require.NoError(t, err)
	return plan
}

func bucketOf(t *Table) *atomicbucket.TokenBucket { return &t.Plan().bucket }

// algorithmsOfFive returns one algorithm of each kind, with a limit of five tokens.
func algorithmsOfFive(t *testing.T) map[string]atomicbucket.Algorithm {
	bucket := perSecond(t, 1, 5)
	batch, err := atomicbucket.NewBatchBucket(1, time.Second, 5)
	require.NoError(t, err)
	fixed, err := atomicbucket.NewFixedWindow(5, 5, 5*time.Second, false)
	require.NoError(t, err)
	sliding, err := atomicbucket.NewSlidingWindow(5, 5, 5*time.Second)
	require.NoError(t, err)
	log, err := atomicbucket.NewSlidingLog(5, 5, 5*time.Second)
	require.NoError(t, err)
	return map[string]atomicbucket.Algorithm{"bucket": &bucket, "batch": &batch, "fixed": &fixed, "sliding": &sliding, "log": &log}
}

// newTable returns a table of one shard with token buckets of burst 5 at 1/s. edit may change its configuration.
func newTable(t testing.TB, slots, probeWindow int, edit func(*Config)) *Table {
	c := Config{Plan: planOf(t, perSecond(t, 1, 5)), Slots: uint64(slots), Shards: 1, ProbeWindow: probeWindow, Start: start}
	if edit != nil {
		edit(&c)
	}
	table, err := New(c)
	require.NoError(t, err)
	return table
}

func take(t *Table, key uint64, now int64, n uint64) Verdict {
	return t.Take(t.Find(key), now, n, 0).Verdict
}

func records(t *Table, key uint64) int {
	n := 0
	for i := range t.shards {
		for j := range t.shards[i].slots {
			sl := &t.shards[i].slots[j]
			if sl.state.Load().IsLive() && t.Find(sl.key.Load()) == t.Find(key) {
				n++
			}
		}
	}
	return n
}

func TestSlotIsSixteenBytesFourToALine(t *testing.T) {
	assert.EqualValues(t, slotBytes, unsafe.Sizeof(slot{}))
	assert.Zero(t, unsafe.Sizeof(counters{})%lineBytes, "shards do not share a line")
	assert.Zero(t, unsafe.Sizeof(common{})%lineBytes)
	assert.GreaterOrEqual(t, unsafe.Offsetof(common{}.leading)-unsafe.Offsetof(common{}.watermark), uintptr(lineBytes),
		"a request ahead of its clock does not write where Hit reads")
	for _, slots := range []int{1, 5, 4096, mapThreshold/slotBytes + 1} {
		table := newTable(t, slots, 0, nil)
		for i := range table.shards {
			assert.Zero(t, uintptr(unsafe.Pointer(&table.shards[i].slots[0]))%lineBytes, "homes begin lines")
		}
	}
}

func TestNewRefusesWhatItCannotHold(t *testing.T) {
	for _, c := range []Config{
		{Slots: 0, Shards: 1},
		{Slots: 1, Shards: 0},
		{Slots: 1, Shards: 3},
		{Slots: 1, Shards: 2 * MaxShards},
		{Slots: 1, Shards: 1, ProbeWindow: -1},
		{Slots: 1, Shards: 1, Overflow: 9},
		{Slots: math.MaxUint64 / 2, Shards: 1},
		{Slots: maxBytes / slotBytes, Shards: 1},
		{Slots: 1, Shards: 1, Start: -1},
		{Slots: math.MaxUint64, Shards: 1},
		{Slots: 1, Shards: 1, ProbeWindow: math.MaxInt},
	} {
		_, err := New(c)
		assert.ErrorContains(t, err, "shard: ", "%+v", c)
	}
}

// TestFindStaysInsideTheShard: every probe window lies within its shard and has the right number of slots, and all home
// slots are used.
func TestFindStaysInsideTheShard(t *testing.T) {
	table := newTable(t, 1000, 0, func(c *Config) { c.Shards = 4 })
	homes := map[*slot]int{}
	for range 20_000 {
		p := table.Find(rand.Uint64())
		homes[p.home]++
		slots := table.shard(p).slots
		require.GreaterOrEqual(t, uintptr(unsafe.Pointer(p.home)), uintptr(unsafe.Pointer(&slots[0])))
		window := map[*slot]bool{}
		for i := range table.probeWindow {
			sl := p.slot(i)
			require.LessOrEqual(t, uintptr(unsafe.Pointer(sl)), uintptr(unsafe.Pointer(&slots[len(slots)-1])))
			require.Equal(t, i, p.index(sl))
			window[sl] = true
		}
		require.Len(t, window, int(table.probeWindow))
		require.Same(t, p.home, p.slot(0))
	}
	assert.Len(t, homes, 4*int(table.homes)*lineSlots)
	for _, p := range []uint64{0, math.MaxUint64} {
		table.Find(p).Touch()
	}
}

func TestTakeChargesEachKeyItsOwnBurst(t *testing.T) {
	table := newTable(t, 4, 4, nil)
	for _, key := range []uint64{0, 1, 7} { // 0 is a fingerprint like any other
		for range 5 {
			require.Equal(t, Admitted, take(table, key, start, 1))
		}
		require.Equal(t, Refused, take(table, key, start, 1))
		require.Equal(t, 1, records(table, key))
	}
	now := start + second + 1
	assert.Equal(t, Admitted, take(table, 7, now, 1))
	assert.Equal(t, Refused, take(table, 7, now, 1))
}

// TestInsertReclaimsIdleRecords (I7): an insert claims an idle record in place. A new claim starts another tenure.
func TestInsertReclaimsIdleRecords(t *testing.T) {
	table := newTable(t, 2, 2, nil)
	require.Equal(t, Admitted, take(table, 1, start, 1))
	require.Equal(t, Admitted, take(table, 2, start, 5))
	later := start + 2*second
	require.Equal(t, Admitted, take(table, 3, later, 1), "key 1 is idle after a second")
	assert.Zero(t, records(table, 1))
	assert.Equal(t, 1, records(table, 3))
	s := table.Find(3).slot(0).state.Load()
	assert.EqualValues(t, 2, s.Version())
	assert.Zero(t, table.Stats().Evictions, "forgetting an idle key is no eviction (I7)")
}

func TestOverflowEvictsTheLeastDebtAndCountsIt(t *testing.T) {
	table := newTable(t, 3, 3, nil)
	require.Equal(t, Admitted, take(table, 1, start, 5)) // drained
	require.Equal(t, Admitted, take(table, 2, start, 2))
	require.Equal(t, Admitted, take(table, 3, start, 3))
	require.Equal(t, Admitted, take(table, 4, start, 1))
	assert.Equal(t, []int{1, 0, 1, 1}, []int{records(table, 1), records(table, 2), records(table, 3), records(table, 4)})
	stats := table.Stats()
	assert.EqualValues(t, 1, stats.Evictions)
	assert.EqualValues(t, 2, stats.Forgiven)
}

// TestCyclingKeysDoesNotRefillADrainedKey: an attacker who cycles through keys must not cause a drained key to be
// forgotten. If the least recently used key were evicted, the attacker could do so. Here the drained key is the last to
// be evicted.
func TestCyclingKeysDoesNotRefillADrainedKey(t *testing.T) {
	table := newTable(t, 4, 4, nil)
	require.Equal(t, Admitted, take(table, 1, start, 5))
	for key := range uint64(10_000) {
		require.Equal(t, Admitted, take(table, 100+key, start, 1))
		require.Equal(t, Refused, take(table, 1, start, 1))
	}
	assert.EqualValues(t, 10_000-3, table.Stats().Evictions)
}

func TestOverflowRefuseAndAdmitWriteNothing(t *testing.T) {
	for policy, want := range map[Overflow]Verdict{Refuse: NoRoom, Admit: Unrecorded} {
		table := newTable(t, 2, 2, func(c *Config) { c.Overflow = policy })
		take(table, 1, start, 2)
		take(table, 2, start, 1)
		before := dump(table)
		for range 3 {
			require.Equal(t, want, take(table, 3, start, 1))
		}
		assert.Equal(t, before, dump(table))
		assert.EqualValues(t, 3, table.Stats().NoRoom+table.Stats().Unrecorded)
		assert.Equal(t, want == Unrecorded, want.Admits())
		// A refusal returns the record that becomes idle first.
		s := table.Take(table.Find(3), start, 1, 0).State
		if policy == Refuse {
			assert.Equal(t, bucketOf(table).Debt(table.Find(2).slot(1).state.Load().Record(), bucketOf(table).Ticks(start)), bucketOf(table).Debt(s.Record(), bucketOf(table).Ticks(start)))
		}
		require.Equal(t, Admitted, take(table, 3, start+2*second, 1), "room again")
	}
}

func dump(t *Table) (words []uint64) {
	for i := range t.shards {
		for j := range t.shards[i].slots {
			sl := &t.shards[i].slots[j]
			words = append(words, uint64(sl.state.Load()), sl.key.Load())
		}
	}
	return words
}

// TestRefusedTakeWritesNothing (I4): a refused call changes no word.
func TestRefusedTakeWritesNothing(t *testing.T) {
	table := newTable(t, 8, 8, nil)
	take(table, 1, start, 5)
	before := append(dump(table), table.watermark.Load(), table.swept.Load())
	for i := range uint64(100) {
		require.Equal(t, Refused, take(table, 1, start+int64(i), 1))
	}
	assert.Equal(t, before, append(dump(table), table.watermark.Load(), table.swept.Load()))
}

func TestResetForgetsOneKey(t *testing.T) {
	table := newTable(t, 4, 4, nil)
	take(table, 1, start, 5)
	take(table, 2, start, 5)
	assert.True(t, table.Reset(table.Find(1)))
	assert.False(t, table.Reset(table.Find(1)), "no record is left")
	assert.Equal(t, Admitted, take(table, 1, start, 5))
	assert.Equal(t, Refused, take(table, 2, start, 1))
}

func TestPeek(t *testing.T) {
	table := newTable(t, 4, 4, nil)
	o, _ := table.Peek(table.Find(1), start, 0, 0)
	s, at := o.State, o.At
	assert.EqualValues(t, start, at)
	assert.True(t, bucketOf(table).Idle(s, bucketOf(table).Ticks(at)), "a key without a record has a full bucket")
	take(table, 1, start, 2)
	o, _ = table.Peek(table.Find(1), start, 0, 0)
	assert.Equal(t, bucketOf(table).Cost(2), bucketOf(table).Debt(o.State.Record(), bucketOf(table).Ticks(start)))
}

// TestLateTakeAfterForgettingMintsNothing (I7, I8): R7. After a sweep at a later time has forgotten a record, a take
// with an earlier clock must not start a full bucket at its own time.
func TestLateTakeAfterForgettingMintsNothing(t *testing.T) {
	table := newTable(t, 4, 4, nil)
	require.Equal(t, Admitted, take(table, 1, start, 5))
	full := start + 5*second + 1
	require.True(t, table.Sweep(full, nil))
	require.Zero(t, records(table, 1))
	require.Equal(t, Admitted, take(table, 1, start+1, 5), "decided at the watermark, where the bucket is full")
	assert.Equal(t, Refused, take(table, 1, full, 1), "or this would be the third burst in the time of one")
	assert.Equal(t, Refused, take(table, 1, start+2, 1))
}

// TestLateTakeAfterReclaimMintsNothing (I7, I8): as TestLateTakeAfterForgettingMintsNothing, with a claim instead of a
// sweep.
func TestLateTakeAfterReclaimMintsNothing(t *testing.T) {
	table := newTable(t, 1, 1, nil)
	require.Equal(t, Admitted, take(table, 1, start, 5))
	full := start + 5*second + 1
	require.Equal(t, Admitted, take(table, 2, full, 1))
	require.Equal(t, Admitted, take(table, 1, full+3*second, 5))
	require.Equal(t, Refused, take(table, 1, start, 1))
	assert.GreaterOrEqual(t, table.Watermark(), full)
}

func TestSweep(t *testing.T) {
	table := newTable(t, 40_000, 0, func(c *Config) { c.Shards = 4 })
	for key := range uint64(10_000) {
		require.Equal(t, Admitted, take(table, key<<50|key, start, 1+key%2*4))
	}
	rests := 0
	require.True(t, table.Sweep(start+2*second, func() bool { rests++; return true }))
	stats := table.Stats()
	assert.EqualValues(t, 5_000, stats.Live)
	assert.EqualValues(t, 5_000, stats.Reclaimed)
	assert.EqualValues(t, 1, stats.Epoch)
	assert.Equal(t, table.memory.count.Load()*pageSlots/sweepChunk, uint64(rests))
	require.False(t, table.Sweep(start+9*second, func() bool { return false }), "told to stop")
	assert.EqualValues(t, 1, table.Stats().Epoch)
	require.True(t, table.Sweep(start+9*second, nil))
	assert.Zero(t, table.Stats().Live)
}

// TestSweepLeavesRecordsOfAnotherPlan: R9. Only the plan that a record follows says whether the record is idle, and a
// sweep decides by no other plan. (The plans of fuzz/explore differ only in the burst, so they could not show such an
// error.)
func TestSweepLeavesRecordsOfAnotherPlan(t *testing.T) {
	table := newTable(t, 4, 4, nil)
	now := start + 1<<40
	require.Equal(t, Admitted, take(table, 1, now, 5))
	slower := planOf(t, perSecond(t, 0.4e9, 5)) // two ticks per nanosecond
	slower.live = atomicbucket.Second
	slower.takeOver(table.plan.Load(), clockAt(now))
	table.plan.Store(slower) // as in the middle of Adopt
	require.True(t, slower.idle(table.Find(1).slot(0).state.Load(), now), "by the other plan it would be idle")
	table.Sweep(now, nil)
	assert.Equal(t, 1, records(table, 1))
	assert.Equal(t, slower.live, table.Find(1).slot(0).state.Load().Tag(), "and does not leave it behind the plan")
	assert.EqualValues(t, 1, table.Stats().Live)
}

// TestAdopt (I1, I7): after a change of the plan, the tokens that every key has taken still count, and the new plan's
// numbers apply.
func TestAdopt(t *testing.T) {
	table := newTable(t, 64, 0, nil)
	for key := range uint64(6) {
		if key > 0 {
			require.Equal(t, Admitted, take(table, key, start, key))
		}
	}
	table.Adopt(planOf(t, perSecond(t, 100, 50)), clockAt(start))
	for key := range uint64(6) {
		o, _ := table.Peek(table.Find(key), start, 0, 0)
		assert.Equal(t, bucketOf(table).Cost(key), bucketOf(table).Debt(o.State.Record(), bucketOf(table).Ticks(start)), "%d taken", key)
	}
	require.Equal(t, TooMuch, take(table, 1, start, 51))
	require.Equal(t, Admitted, take(table, 1, start, 49))
	require.Equal(t, Refused, take(table, 1, start, 1))
	require.Equal(t, Admitted, take(table, 1, start+second/100, 1))
	table.Adopt(planOf(t, perSecond(t, 1, 3)), clockAt(start+second/100))
	require.Equal(t, Refused, take(table, 1, start+second/100, 1))
	require.Equal(t, Refused, take(table, 1, start+47*second, 1), "50 are owed")
	require.Equal(t, Admitted, take(table, 1, start+48*second+second/100, 1))
	require.Equal(t, Refused, take(table, 5, start+second/100, 1), "no fresh bucket")
	require.Equal(t, Admitted, take(table, 5, start+3*second, 1))
	require.Zero(t, table.Stats().Evictions)
}

// TestALeapIsNeverMisread (I1, I7): a drained bucket is full again at the right time and not before, however far the
// clock leaps: from a part of the payload's circle to any number of turns.
func TestALeapIsNeverMisread(t *testing.T) {
	for _, p := range []struct {
		tokens float64
		period time.Duration
		burst  uint64
	}{
		{1, time.Second, 5}, {16, time.Microsecond, 5}, {97, time.Second, 1000}, {1, 3 * time.Nanosecond, 1 << 32},
		{1, 24 * time.Hour, 100},        // a burst takes 100 days
		{1, 24 * time.Hour, 1 << 20},    // longer than the timeline
		{1, 1000 * time.Hour, 30},       // ticks of several nanoseconds
		{100, 24 * time.Hour, 1 << 32},  // ticks so long that the circle has no complete turn within the timeline
		{3, 7 * 24 * time.Hour, 12_345}, // a case between the others
	} {
		algorithm, err := atomicbucket.NewTokenBucket(p.tokens, p.period, p.burst)
		require.NoError(t, err)
		full := algorithm.Wait(start, algorithm.Cost(p.burst))
		skew := algorithm.MaxSkew()
		for _, turns := range []time.Duration{0, 1, 2, 3, 50, 12_345} {
			if turns > math.MaxInt64/4/circleSkews/skew {
				continue // beyond the timeline
			}
			for part := range time.Duration(3 * circleSkews) {
				ahead := turns*circleSkews*skew + part*(skew/3) + 10
				if ahead < 0 || ahead > math.MaxInt64/2 || max(ahead-full, full-ahead) < 10 {
					continue // so close that rounding decides
				}
				table := newTable(t, 4, 1, func(c *Config) { c.Plan = planOf(t, algorithm) })
				require.Equal(t, Admitted, take(table, 1, start, p.burst))
				want := Refused
				if ahead >= full {
					want = Admitted
				}
				require.Equal(t, want, take(table, 1, start+int64(ahead), p.burst),
					"%v tokens every %v, burst %d, after %v", p.tokens, p.period, p.burst, ahead)
			}
		}
	}
}

// TestSweepOvertakenByALeap: if time leaps during a sweep, the sweep must not judge newer records by the time at which
// it began.
func TestSweepOvertakenByALeap(t *testing.T) {
	table := newTable(t, 2*sweepChunk, 0, nil)
	markAll(table)
	last := uint64(math.MaxUint64) // its home is in the last chunk
	later := start + 1<<55 + 1<<53 // two and a half turns of the circle later
	leapt := false
	table.Sweep(start, func() bool {
		if !leapt {
			leapt = true
			require.Equal(t, Admitted, take(table, last, later, 5))
		}
		return true
	})
	require.True(t, leapt)
	assert.Equal(t, Refused, take(table, last, later, 1), "the new record was swept away")
}

// TestSweepOvertakenByASmallerLeap: as TestSweepOvertakenByALeap, with a leap after which the new record would look
// idle, not indebted.
func TestSweepOvertakenByASmallerLeap(t *testing.T) {
	algorithm, err := atomicbucket.NewTokenBucket(16, time.Microsecond, 5) // 16 ticks per nanosecond
	require.NoError(t, err)
	table := newTable(t, 2*sweepChunk, 0, func(c *Config) { c.Plan = planOf(t, algorithm) })
	markAll(table)
	last, later, leapt := uint64(math.MaxUint64), start+2*int64((table.Plan().skew)), false
	table.Sweep(start, func() bool {
		if !leapt {
			leapt = true
			require.Equal(t, Admitted, take(table, last, later, 5))
			require.Equal(t, Refused, take(table, last, later, 1))
		}
		return true
	})
	require.True(t, leapt)
	assert.Equal(t, Refused, take(table, last, later, 1), "an indebted record was swept away")
}

// TestPeekAfterALeap: times are compared modulo 2^54 (the payload's circle). After a leap by a part of the circle, a
// peek does not treat an old record as indebted.
func TestPeekAfterALeap(t *testing.T) {
	for leap := int64(1) << 50; leap < 1<<54; leap += 1 << 49 {
		table := newTable(t, 4, 4, nil)
		require.Equal(t, Admitted, take(table, 1, start, 5))
		o, _ := table.Peek(table.Find(1), start+leap, 0, 0)
		s, at := o.State, o.At
		require.EqualValues(t, start+leap, at)
		require.True(t, bucketOf(table).Idle(s, bucketOf(table).Ticks(at)), "after %dns", leap)
	}
}

// TestTimeMayLeap (I7, I8): a leap by more than the payload's circle frees every record, and late times after it are
// decided at the watermark.
func TestTimeMayLeap(t *testing.T) {
	for _, leap := range []int64{1 << 49, 1<<50 + 1, 1<<51 + 1, 1 << 52, 3 << 52, 1 << 54, 1<<54 + 7, 5 << 58} {
		table := newTable(t, 4, 4, nil)
		require.Equal(t, Admitted, take(table, 1, start, 5))
		require.Equal(t, Admitted, take(table, 2, start, 1))
		now := start + leap
		for range 5 {
			require.Equal(t, Admitted, take(table, 1, now, 1), "after %dns", leap)
		}
		require.Equal(t, Refused, take(table, 1, now, 1))
		require.Equal(t, Refused, take(table, 1, start, 1), "late by %dns", leap)
		require.Equal(t, Refused, take(table, 1, 0, 1), "late by all there is")
		require.Equal(t, 1, records(table, 1))
	}
}

// TestIdleRecordNeverComesRound: a record that is not used for a whole turn of the circle does not look indebted again.
// Sweeps of the sweeper, or sweeps that calls make, prevent that.
func TestIdleRecordNeverComesRound(t *testing.T) {
	table := newTable(t, 8, 8, nil)
	require.Equal(t, Admitted, take(table, 1, start, 5))
	for now := int64(start); now < start+1<<55; now += 1 << 49 {
		require.Equal(t, Admitted, take(table, 2, now, 1))
	}
	require.Equal(t, Admitted, take(table, 1, start+1<<54, 1))
	require.Equal(t, 1, records(table, 1))
}

// TestLoadOfSixTenths: if keys fill 0.6 of the slots, about one insert in 1,600 finds no room.
func TestLoadOfSixTenths(t *testing.T) {
	const keys = 300_000
	table := newTable(t, keys*10/6, 0, func(c *Config) { c.Shards = 8; c.Overflow = Refuse })
	random := rand.New(rand.NewPCG(1, 1))
	lines, hits := 0, 0
	for range keys {
		key := random.Uint64()
		if take(table, key, start, 1) == Admitted {
			p := table.Find(key)
			for i := uint64(0); p.slot(i).key.Load()&^tierMask != key&^tierMask; i++ {
				if i%lineSlots == lineSlots-1 {
					lines++
				}
			}
			lines++
			hits++
		}
	}
	noRoom := table.Stats().NoRoom
	t.Logf("%d keys in %d slots: no room for %d (1 in %d), %.2f lines a hit", keys, table.Stats().Slots, noRoom, keys/max(noRoom, 1), float64(lines)/float64(hits))
	assert.Less(t, noRoom, uint64(keys/1000))
	assert.Less(t, float64(lines)/float64(hits), 1.5)
}

// TestBytes (I6): a table takes the memory that New computed, and Stats reports it.
func TestBytes(t *testing.T) {
	for _, slots := range []uint64{1, 1_666_667, mapThreshold / slotBytes} {
		table := newTable(t, int(slots), 0, nil)
		stats := table.Stats()
		assert.GreaterOrEqual(t, stats.Slots, slots)
		assert.GreaterOrEqual(t, stats.Bytes, stats.Slots*slotBytes)
		assert.LessOrEqual(t, stats.Bytes, (slots+2*DefaultProbeWindow)*slotBytes+slots/(lineSlots*wordHomes)*8+slots/(lineSlots*neighbourhoodHomes)*16+slots/(pageSlots*wordPages)*8+uint64(os.Getpagesize())+1024)
	}
}

func TestPrefault(t *testing.T) {
	for _, slots := range []int{100, mapThreshold / slotBytes} {
		table := newTable(t, slots, 0, func(c *Config) { c.Prefault = true })
		assert.Equal(t, Admitted, take(table, 1, start, 1))
	}
}
