package shard

import (
	"runtime"
	"sync/atomic"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// sweepChunk is how many slots a sweep visits between two rests: 8,192 slots,
// 128 KiB, take some tens of microseconds.
const sweepChunk = 8192

// sweeps is what sweeping leaves behind.
type sweeps struct {
	swept     word.Word     // time of the last complete pass
	epoch     atomic.Uint64 // number of complete passes
	live      atomic.Uint64 // records that the last complete pass met and that were not idle
	held      atomic.Uint64 // slots that had a record after it: those, and the idle ones that it left
	reclaimed atomic.Uint64 // records freed by sweeping, in all
}

// Sweep frees every record that is idle at the time now, shard after shard, and
// when it has visited all of them advances the epoch. After every 8,192 slots
// it calls rest, if not nil, and gives up when that returns false. Pages in which no key was yet are passed. It reports
// whether the pass was complete.
//
// Takers reclaim idle records themselves, so nothing waits for a sweep. Any
// number of sweeps may run beside each other and beside anything else.
func (t *Table) Sweep(now int64, rest func() bool) bool {
	defer runtime.KeepAlive(t)
	now = t.raise(t.catchUp(now))
	return t.pass(now, now, rest)
}

// SweepEpoch is [Table.Sweep] of the records that have been idle for an epoch: since the last complete sweep. A
// client below its limit is idle whenever it comes back. As long as its record is there it need not be given another.
// While half of the slots hold no record, only those are freed that have been idle for a skew of the algorithm (R7).
func (t *Table) SweepEpoch(now int64, rest func() bool) bool {
	defer runtime.KeepAlive(t)
	now = t.raise(t.catchUp(now))
	since := max(now-int64(t.current().skew), 0)
	if t.held.Load() > t.slots/2 {
		since = max(since, int64(t.swept.Load()))
	}
	return t.pass(now, since, rest)
}

// pass is Sweep at a time that the watermark has reached (R7), of the records that have been idle since another.
func (t *Table) pass(now, since int64, rest func() bool) bool {
	if t.owner != nil {
		t.settled(func() int64 { return now }) // what a process that died had begun: R22
	}
	return t.reap(now, rest) && t.sweepAll(now, since, rest)
}

// sweepAll is pass while a replacement may be under way that is announced and not complete.
func (t *Table) sweepAll(now, since int64, rest func() bool) bool {
	lowers := t.lower()
	whole := t.visit(since, lowers, rest)
	if lowers {
		t.lowered(whole)
	}
	if !whole {
		return false
	}
	t.epoch.Add(1)
	for {
		swept := t.swept.Load()
		if uint64(now) <= swept || t.swept.CompareAndSwap(swept, uint64(now)) {
			return true
		}
	}
}

// visit sweeps every slot that was ever used, or until rest returns false, and reports whether it was every one.
func (t *Table) visit(since int64, lowers bool, rest func() bool) bool {
	live, idle, reclaimed := uint64(0), uint64(0), uint64(0)
	defer func() { t.reclaimed.Add(reclaimed) }()
	visited := 0
	for slots := range t.memory.marked() { // R12
		l, i, r := t.sweepPage(slots, since, lowers)
		live, idle, reclaimed = live+l, idle+i, reclaimed+r
		if visited += len(slots); visited >= t.chunk {
			if rest != nil && !rest() {
				return false
			}
			visited = 0
		}
	}
	t.live.Store(live)
	t.held.Store(live + idle)
	return true
}

// sweepPage frees what has been idle since a time in slots. It counts what is not idle, what stays although it is, and
// what it freed. If it lowers probe bounds, they then cover what stays.
func (t *Table) sweepPage(slots []slot, since int64, lowers bool) (live, idle, reclaimed uint64) {
	for i := range slots {
		sl := &slots[i]
		s := sl.state.Load()
		switch s.Tag() {
		case atomicbucket.NeverUsed, atomicbucket.Free:
			continue
		case atomicbucket.Claimed:
			if t.deserted(s.Payload()) { // R17
				sl.state.Abandon(s)
			}
			continue
		case atomicbucket.Tentative:
			// A call that is about to commit it may have read the watermark long ago: R7. It will begin again.
			if sl.state.Abort(s) {
				continue
			}
		default:
			// The watermark is read after the state, so that it is not behind the call that
			// wrote it by more than the skew: R7. The plan likewise: R9. A record that
			// follows another is converted, so that none stays behind when time leaps.
			plan := t.current()
			switch {
			case s.Tag() != plan.live:
				t.convert(sl, s)
				live++
			case !plan.idle(s, t.Watermark()):
				live++
			case !plan.idle(s, since): // the record stays, so that its key finds it again
				idle++
			case (t.entries == nil || t.flushed(sl, s)) && sl.state.Free(s): // R26
				plan.forget(t.shards[0].counters, s, t.Watermark())
				reclaimed++
				continue
			default: // taken this moment
				live++
			}
		}
		if lowers {
			// R11. If the slot has changed hands the key is that of its new owner, whose call extends the bound too.
			// The slot lies in the probe window of every key that it ever had.
			p := t.Find(sl.key.Load())
			if i := p.index(sl); i < t.probeWindow { // R20
				t.cover(p, i)
			}
		}
	}
	return live, idle, reclaimed
}
