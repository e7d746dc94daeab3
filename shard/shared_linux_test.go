//go:build !explore

package shard

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weir-go/weir/atomicbucket"
)

// An ownerOf is an owner that knows the numbers of the live owners. All other owners count as dead.
type ownerOf struct {
	claimant uint64
	alive    []uint64
}

func (o ownerOf) Claimant() uint64 { return o.claimant }
func (o ownerOf) Dead(claimant uint64) bool {
	for _, a := range o.alive {
		if a == claimant {
			return false
		}
	}
	return claimant != o.claimant
}

// sharedConfig returns the configuration of a table so small that random calls soon reach every part of it.
func sharedConfig(plan *Plan, overflow Overflow) Config {
	return Config{Plan: plan, Slots: 24, Shards: 1, ProbeWindow: 8, Overflow: overflow, Start: start, Entries: 40}
}

// sharedMemory returns the memory of a new table. The memory before and behind it cannot be accessed.
func sharedMemory(t testing.TB, cfg Config) []byte {
	bytes, err := cfg.SharedBytes()
	require.NoError(t, err)
	page := unix.Getpagesize()
	all, err := unix.Mmap(-1, 0, int(bytes)+2*page, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unix.Munmap(all)) })
	memory := all[page : page+int(bytes) : page+int(bytes)]
	require.NoError(t, unix.Mprotect(memory, unix.PROT_READ|unix.PROT_WRITE))
	require.NoError(t, cfg.Begin(memory, madeOf(cfg.Plan).numbers))
	return memory
}

func mapped(t testing.TB, cfg Config, memory []byte, owner ownerOf) *Table {
	table, err := Map(cfg, Shared{Memory: memory, Owner: owner, Build: madeOf(cfg.Plan).kind.build})
	require.NoError(t, err)
	return table
}

// TestTwoTablesInOneMemory: of two processes that have mapped one table, each sees the tokens that the other takes, the
// same watermark and the same statistics.
func TestTwoTablesInOneMemory(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
	memory := sharedMemory(t, cfg)
	one := mapped(t, cfg, memory, ownerOf{1, []uint64{2}})
	cfg.Plan = planOf(t, perSecond(t, 1, 5)) // each process has its own plan
	other := mapped(t, cfg, memory, ownerOf{2, []uint64{1}})
	assert.Equal(t, Admitted, one.Take(one.Find(7), start, 3, 0).Verdict)
	assert.Equal(t, Refused, other.Take(other.Find(7), start, 3, 0).Verdict)
	assert.Equal(t, Admitted, other.Take(other.Find(7), start, 2, 0).Verdict)
	one.Sweep(start+10*second, nil)
	assert.EqualValues(t, start+10*second, other.Watermark())
	assert.Equal(t, one.Stats(), other.Stats())
	assert.EqualValues(t, 1, other.Stats().Reclaimed)
	assert.EqualValues(t, 1, other.Occupancy().Free)
	mark, err := cfg.Mark(memory)
	require.NoError(t, err)
	assert.EqualValues(t, start+10*second, mark)
	assert.True(t, one.IsShared())
	for _, part := range []unsafe.Pointer{unsafe.Pointer(one.first), unsafe.Pointer(one.common), unsafe.Pointer(&one.words[0]),
		unsafe.Pointer(one.shards[0].counters), unsafe.Pointer(&one.neighbourhoods[0]), unsafe.Pointer(&one.memory.marks[0])} {
		assert.Zero(t, uintptr(part)%partBytes, "each part begins on a page")
	}
	bytes, err := cfg.SharedBytes()
	require.NoError(t, err)
	assert.Equal(t, bytes+uint64(unsafe.Sizeof(Table{})+unsafe.Sizeof(shard{})), one.Stats().Bytes)
}

// TestWhatTheDeadLeaveBehind: a sweep frees the claimed slots and takes over the unfinished sweep of a dead process,
// but not of a live one.
func TestWhatTheDeadLeaveBehind(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
	table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, []uint64{2}})
	p := table.Find(7)
	for i, claimant := range []uint64{1, 2, 3} {
		table.markPage(p.slot(uint64(i)))
		_, ok := p.slot(uint64(i)).state.Claim(0, claimant)
		require.True(t, ok)
	}
	table.Sweep(start, nil)
	assert.Equal(t, atomicbucket.Claimed, p.slot(0).state.Load().Tag(), "its own")
	assert.Equal(t, atomicbucket.Claimed, p.slot(1).state.Load().Tag(), "of a process that lives")
	assert.Equal(t, atomicbucket.NewState(atomicbucket.Free, 1, 0), p.slot(2).state.Load(), "of a dead one")

	for _, c := range []struct {
		owner uint64
		takes bool
	}{{1, false}, {2, false}, {3, true}} {
		table.lowering.Store(ownedBit | partialBit | swappedBit | c.owner<<ownerShift)
		assert.Equal(t, c.takes, table.beginLowering(), "%+v", c)
		if c.takes {
			assert.EqualValues(t, ownedBit|partialBit|swappedBit|1<<ownerShift, table.lowering.Load(), "with the target that it had")
			table.endLowering(true)
			assert.EqualValues(t, swappedBit, table.lowering.Load())
		}
	}

	near := table.neighbourhood(p)
	near.ends.Store(3*endBegun + 1)
	_, first, err := cfg.sharedMemory(unsafe.Slice((*byte)(unsafe.Pointer(table.common)), table.memory.mapped))
	require.NoError(t, err)
	require.NotNil(t, first)
	memory := unsafe.Slice((*byte)(unsafe.Pointer(table.common)), table.memory.mapped)
	require.NoError(t, cfg.Settle(memory, func() bool { return false }))
	assert.EqualValues(t, 3*endBegun+1, near.ends.Load(), "that of the living stays")
	require.NoError(t, cfg.Settle(memory, func() bool {
		near.ends.Add(endBegins) // by a call of a process that has attached since
		return true
	}))
	assert.EqualValues(t, 4*endBegun+2, near.ends.Load(), "and that of who has come meanwhile")
	near.ends.Store(3*endBegun + 1)
	require.NoError(t, cfg.Settle(memory, func() bool { return true }))
	assert.EqualValues(t, 3*endBegun, near.ends.Load())
}

// TestWordsThatNobodyWrote (R20) writes words that no call writes. Without the checks of R20, each of them would make a
// call search forever, or access memory outside the table.
func TestWordsThatNobodyWrote(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
	cfg.Prefault, cfg.ProbeWindow = true, 16
	for name, c := range map[string]struct {
		write func(tb *Table, p Place)
		want  []Verdict // of two takes of three tokens; if the record is found, it has two tokens left
	}{
		"nothing":                             {func(*Table, Place) {}, []Verdict{Refused, Refused}},
		"a record of no plan":                 {func(tb *Table, p Place) { p.slot(0).state.Convert(p.slot(0).state.Load(), 7, 0) }, []Verdict{Admitted, Refused}},
		"a record of a plan before":           {func(tb *Table, p Place) { p.slot(0).state.Convert(p.slot(0).state.Load(), atomicbucket.Second, 0) }, []Verdict{Admitted, Refused}},
		"a record behind one never used":      {func(tb *Table, p Place) { move(p, 0, 2); zero(p, 0) }, []Verdict{Admitted, Refused}},
		"a record behind one without its key": {func(tb *Table, p Place) { move(p, 0, 2); zero(p, 0); p.slot(0).key.Store(5) }, []Verdict{Admitted, Refused}},
		"a record behind one never used that has a key": {func(tb *Table, p Place) {
			crowd(p, 8)
			move(p, 0, 10)
			p.slot(9).key.Store(5)
			tb.cover(p, 10)
		}, []Verdict{Admitted, Refused}},
		"a record behind one without a key, and one never used that has a key": {func(tb *Table, p Place) {
			crowd(p, 1)
			p.slot(1).state.Free(p.slot(1).state.Load())
			p.slot(1).key.Store(0)
			move(p, 0, 3)
			p.slot(2).key.Store(5)
			tb.cover(p, 3)
		}, []Verdict{Admitted, Refused}},
		"a record beyond its bound": {func(tb *Table, p Place) {
			crowd(p, 15)
			move(p, 0, 12)
			move(p, 1, 0)
			crowd(p, 1)
		}, []Verdict{Refused, Refused}},
		"marks beyond the last page": {func(tb *Table, p Place) { tb.memory.marks[0].Store(1<<64 - 1) }, []Verdict{Refused, Refused}},
		"a key a whole probe window from its home": {func(_ *Table, p Place) {
			(*atomic.Uint64)(unsafe.Pointer(&p.slot(16).state)).Store(uint64(p.slot(0).state.Load()))
			p.slot(16).key.Store(8)
		}, []Verdict{Refused, Refused}},
		"a key far from its home": {func(tb *Table, p Place) { crowd(p, 3); p.slot(1).key.Store(1<<64 - 1) }, []Verdict{Refused, Refused}},
	} {
		t.Run(name, func(t *testing.T) {
			table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, nil})
			p := table.Find(7)
			require.Equal(t, Admitted, table.Take(p, start, 3, 0).Verdict)
			c.write(table, p)
			got := []Verdict{table.Take(p, start, 3, 0).Verdict, table.Take(p, start, 3, 0).Verdict}
			assert.Equal(t, c.want, got)
			require.True(t, table.Sweep(start, nil))
			for i := range table.words {
				bounds := table.words[i].Load()
				assert.LessOrEqual(t, max(bounds&boundMask, bounds>>boundBits&boundMask), uint64(boundSteps), "%#x", bounds)
				assert.Zero(t, bounds&^0xff, "of other homes: %#x", bounds)
			}
			assert.Equal(t, Refused, table.Take(p, start, 3, 0).Verdict)
		})
	}
}

// TestReserveOfARecordThatOnlyAHitFinds (R20): Hit always searches two lines, and refuses because of a record that
// other searches do not reach. Reserve finds no record in which to reserve, but must still decide.
func TestReserveOfARecordThatOnlyAHitFinds(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
	cfg.Prefault, cfg.ProbeWindow = true, 32
	for name, write := range map[string]func(p Place){
		"behind one never used that has a key": func(p Place) {
			move(p, 0, 1)
			zero(p, 0)
			p.slot(0).key.Store(p.fingerprint)
		},
		"beyond its bound": func(p Place) {
			crowd(p, 7)
			move(p, 0, 5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, nil})
			p := table.Find(7)
			require.Equal(t, Admitted, table.Take(p, start, 5, 0).Verdict)
			write(p)
			require.Equal(t, Refused, table.Take(p, start, 3, 0).Verdict)
			assert.Equal(t, Admitted, table.Reserve(p, start, 3, 0, time.Minute).Verdict)
			assert.Equal(t, Refused, table.Take(p, start, 3, 0).Verdict)
		})
	}
}

// TestAWatermarkBeforeTheOriginOfTime (R20): the watermark is before the origin by less than a skew, so that no call
// moves it. The time of a take is less than a skew after the watermark.
func TestAWatermarkBeforeTheOriginOfTime(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
	for _, ahead := range []int64{0, 5} {
		table := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{1, nil})
		table.watermark.Store(1<<64 - 5)
		o := table.TakeAt(table.Find(7), 1000+ahead, 1000, 1, Quota{}, nil)
		assert.Equal(t, Admitted, o.Verdict, "%d ahead of its clock", ahead)
	}
}

// TestTouchReadWholePages: touchRead stops at the end of the last page.
func TestTouchReadWholePages(t *testing.T) {
	assert.NotPanics(t, func() { touchRead(make([]slot, 2*pageSlots)) })
}

// move moves the contents of a slot of a probe window to another slot. A zero slot looks as if it was never used.
func move(p Place, from, to uint64) {
	(*atomic.Uint64)(unsafe.Pointer(&p.slot(to).state)).Store(uint64(p.slot(from).state.Load()))
	p.slot(to).key.Store(p.slot(from).key.Load())
	p.slot(from).state.Free(p.slot(from).state.Load())
}

func zero(p Place, i uint64) {
	(*atomic.Uint64)(unsafe.Pointer(&p.slot(i).state)).Store(0)
	p.slot(i).key.Store(0)
}

// crowd fills slots of a probe window, except the first, with records of other keys.
func crowd(p Place, to uint64) {
	for i := uint64(1); i <= to; i++ {
		(*atomic.Uint64)(unsafe.Pointer(&p.slot(i).state)).Store(uint64(p.slot(0).state.Load()))
		p.slot(i).key.Store(100 + i)
	}
}

// TestMapRefuses: Map refuses memory of another length, an owner without a number, and a table of logs.
func TestMapRefuses(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
	memory := sharedMemory(t, cfg)
	_, err := Map(cfg, Shared{memory[lineBytes:], ownerOf{1, nil}, five.kind.build, nil, nil})
	assert.ErrorContains(t, err, "want")
	room := make([]byte, len(memory)+2*lineBytes)
	skip := 8 + -uintptr(unsafe.Pointer(&room[0]))%lineBytes
	assert.ErrorContains(t, cfg.Begin(room[skip:][:len(memory)], nil), "from the beginning of a line on")
	_, err = Map(cfg, Shared{memory, ownerOf{0, nil}, five.kind.build, nil, nil})
	assert.ErrorContains(t, err, "claimant 0: want 1 to 18014398509481983")
	_, err = Map(cfg, Shared{memory, ownerOf{1 << 54, nil}, five.kind.build, nil, nil})
	assert.ErrorContains(t, err, "claimant")
	for _, most := range []uint64{1, 1<<54 - 1} {
		_, err = Map(cfg, Shared{memory, ownerOf{most, nil}, five.kind.build, nil, nil})
		assert.NoError(t, err)
	}
	for _, limit := range []uint64{1, 3} {
		cfg.Plan = logOf(t, limit)
		_, err = cfg.SharedBytes()
		assert.ErrorContains(t, err, "cannot be shared")
		mark, err := cfg.Mark(memory)
		assert.Zero(t, mark)
		for _, err := range []error{err, cfg.Begin(memory, nil), cfg.Settle(memory, nil)} {
			assert.ErrorContains(t, err, "cannot be shared")
		}
	}
}

// A kind makes an algorithm from three numbers: one of the algorithms that a shared table may have.
type kind func(n [3]uint64) (atomicbucket.Algorithm, error)

var kinds = []kind{
	func(n [3]uint64) (atomicbucket.Algorithm, error) {
		b, err := atomicbucket.NewTokenBucket(float64(n[0]), time.Duration(n[1]), n[2])
		return &b, err
	},
	func(n [3]uint64) (atomicbucket.Algorithm, error) {
		b, err := atomicbucket.NewBatchBucket(n[0], time.Duration(n[1]), n[2])
		return &b, err
	},
	func(n [3]uint64) (atomicbucket.Algorithm, error) {
		w, err := atomicbucket.NewFixedWindow(n[2], n[2], time.Duration(n[1]), n[0]&1 == 0)
		return &w, err
	},
	func(n [3]uint64) (atomicbucket.Algorithm, error) {
		w, err := atomicbucket.NewSlidingWindow(n[2], n[2], time.Duration(n[1]))
		return &w, err
	},
	func(n [3]uint64) (atomicbucket.Algorithm, error) {
		c, err := atomicbucket.NewEntries(n[2], n[2], time.Duration(n[1]))
		return &c, err
	},
}

// build is the [Shared.Build] of a table whose algorithm is of this kind.
func (k kind) build(numbers []uint64) (*Plan, error) {
	if len(numbers) != 3 {
		return nil, fmt.Errorf("%d numbers", len(numbers))
	}
	algorithm, err := k([3]uint64(numbers))
	if err != nil {
		return nil, err
	}
	plan, err := NewPlan(algorithm, 0)
	if err == nil {
		plan.SetSource(made{k, numbers})
	}
	return plan, err
}

type made struct {
	kind    kind
	numbers []uint64
}

var five = made{kinds[0], []uint64{1, uint64(time.Second), 5}}

func madeOf(plan *Plan) made {
	if m, ok := plan.Source().(made); ok {
		return m
	}
	return five
}

func plansToShare(t testing.TB) (plans []*Plan) {
	for _, p := range []struct {
		kind   int
		a      uint64
		period time.Duration
	}{{0, 97, time.Second}, {1, 3, time.Second}, {2, 1, time.Second}, {2, 0, time.Second}, {3, 0, time.Second}, {4, 0, time.Minute}} {
		plan, err := kinds[p.kind].build([]uint64{p.a, uint64(p.period), 5})
		require.NoError(t, err)
		plans = append(plans, plan)
	}
	return plans
}

// scribble writes a word somewhere in memory.
func scribble(memory []byte, at uint64, word uint64) {
	(*atomic.Uint64)(unsafe.Pointer(&memory[at%uint64(len(memory)/8)*8])).Store(word)
}

// call makes the call that a number chooses, with one of a few keys.
func call(table *Table, what byte, n uint64, now int64) {
	p := table.Find(uint64(what>>4) * 0x1234_5678_9abc_def1)
	var status atomicbucket.Status
	switch what & 15 {
	case 0, 1, 2:
		table.Take(p, now, max(n, 1), 0)
	case 3, 4:
		table.Decide(p, now, max(n, 1), 0, &status)
	case 5:
		table.Peek(p, now, n, 0)
	case 6:
		table.Reset(p)
	case 7:
		table.Charge(p, now, now, max(n, 1), TierQuota(0), &status)
	case 8, 9:
		ends := table.Ends(p)
		if o := table.Take(p, now, max(n, 1), 0); o.Verdict == Admitted {
			table.Refund(p, now, n, 0, o.Receipt(max(n, 1), 0, ends))
		}
	case 10:
		table.Refund(p, now, n, 0, Receipt{})
	case 11:
		table.RefundBy(p, func() int64 { return now }, n, 0, Receipt{})
	case 12:
		if table.Buckets() {
			table.Reserve(p, now, max(n, 1), 0, time.Second)
		}
	case 13:
		table.TakeAt(p, now+int64(time.Second), now, max(n, 1), TierQuota(0), &status)
	case 14:
		table.SweepEpoch(now, nil)
	case 15:
		if n > 5 {
			table.Replace([]uint64{n, uint64(time.Second) << (n % 3), n}, clockAt(now))
		}
		table.Sweep(now, nil)
	}
}

// FuzzSharedWords: whatever words are written to the memory of a shared table, no call crashes, hangs, or accesses
// memory outside the table. An input has the algorithm, the overflow policy, and steps, each of which writes a word or
// makes a call.
func FuzzSharedWords(f *testing.F) {
	for i := range byte(36) {
		f.Add([]byte{i, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x10, 1, 1})
	}
	for i := range byte(6) { // the plan is replaced
		f.Add([]byte{i, 0x11, 1, 1, 0x0f, 7, 1, 0x11, 1, 1, 0x0f, 6, 1, 0x11, 1, 1})
	}
	f.Fuzz(func(t *testing.T, tape []byte) {
		number := func() uint64 {
			var word [8]byte
			tape = tape[copy(word[:], tape):]
			return binary.LittleEndian.Uint64(word[:])
		}
		if len(tape) < 1 || len(tape) > 4096 {
			return
		}
		plans := plansToShare(t)
		cfg := sharedConfig(plans[int(tape[0])%len(plans)], Overflow(int(tape[0])/len(plans)%3))
		if int(tape[0])/len(plans)/3%2 == 1 {
			cfg.Start = 1000 // so that words may contain times that are a skew before the origin of time
		}
		tape = tape[1:]
		memory := sharedMemory(t, cfg)
		table := mapped(t, cfg, memory, ownerOf{1, []uint64{2}})
		now := cfg.Start
		for len(tape) >= 3 {
			what, n, step := tape[0], uint64(tape[1]), int64(tape[2])
			tape = tape[3:]
			if what&3 == 3 && n >= 128 { // also a call
				scribble(memory, number(), number())
			}
			now = min(now+step*step*step*int64(time.Millisecond), math.MaxInt64/2)
			call(table, what, n%8, now)
		}
	})
}

// TestACallKeepsTheMemoryMapped: during the last call on a table, the table is not collected, and its memory is not
// released.
func TestACallKeepsTheMemoryMapped(t *testing.T) {
	cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
	cfg.Slots = 1 << 23 // so many slots that the call takes long enough for the table to be collected
	memory := sharedMemory(t, cfg)
	released := make(chan error, 1)
	attach := func() *Table {
		owner := &ownerOf{1, nil}
		runtime.AddCleanup(owner, func(memory []byte) { released <- unix.Mprotect(memory, unix.PROT_NONE) }, memory)
		table, err := Map(cfg, Shared{Memory: memory, Owner: owner, Build: madeOf(cfg.Plan).kind.build})
		require.NoError(t, err)
		return table
	}
	var looking sync.WaitGroup
	looking.Go(func() {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		assert.NotPanics(t, func() { attach().Occupancy() })
	})
	defer looking.Wait()
	for {
		select {
		case err := <-released:
			require.NoError(t, err)
			return
		default:
			runtime.GC()
		}
	}
}

// TestWordsAreScribbledUnderTraffic checks the same as FuzzSharedWords, but with concurrent calls and writes. Half of
// the written words are states, because calls read these.
func TestWordsAreScribbledUnderTraffic(t *testing.T) {
	const calls = 20_000
	for _, plan := range plansToShare(t) {
		for overflow := Evict; overflow <= Admit; overflow++ {
			cfg := sharedConfig(plan, overflow)
			memory := sharedMemory(t, cfg)
			var callers sync.WaitGroup
			for i := range uint64(3) {
				table := mapped(t, cfg, memory, ownerOf{i + 1, []uint64{1, 2, 3}})
				callers.Go(func() {
					random := rand.New(rand.NewPCG(i, uint64(overflow)))
					for n := range int64(calls) {
						call(table, byte(random.Uint32()), random.Uint64N(8), start+n*int64(time.Millisecond))
						if n%16 == 0 {
							at := random.Uint64()
							if n%32 == 0 { // a slot
								at = uint64(uintptr(unsafe.Pointer(table.first))-uintptr(unsafe.Pointer(table.common)))/8 + at%64
							}
							word := random.Uint64()
							if n%64 < 32 { // a small change of the word that is there
								word = binary.NativeEndian.Uint64(memory[at%uint64(len(memory)/8)*8:]) ^ 1<<(word%64)
							}
							scribble(memory, at, word)
						}
					}
				})
			}
			callers.Wait()
			o := mapped(t, cfg, memory, ownerOf{1, nil}).Occupancy()
			assert.Equal(t, mapped(t, cfg, memory, ownerOf{1, nil}).Stats().Slots, o.NeverUsed+o.Free+o.Claimed+o.Tentative+o.Live)
		}
	}
}
