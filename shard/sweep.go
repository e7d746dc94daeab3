package shard

import (
	"runtime"
	"sync/atomic"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// sweepChunk is how many slots a sweep visits between two calls of pause: 128 KiB, or some tens of microseconds.
const sweepChunk = 8192

type sweeps struct {
	swept     word.Word     // time of the last complete pass
	epoch     atomic.Uint64 // number of complete passes
	live      atomic.Uint64 // records that were not idle in the last complete pass
	occupied  atomic.Uint64 // slots with a record after that pass, including the idle records that the pass left
	reclaimed atomic.Uint64 // records freed by sweeping, in all
}

// Sweep frees every record that is idle at the time now, and counts one more epoch when it has visited all shards. It
// skips pages in which no slot was ever used. If pause is not nil, Sweep calls it after every 8,192 slots, and stops if
// pause returns false. Sweep reports whether it was complete.
//
// Sweeps may run concurrently with each other and with all other calls. No call waits for a sweep, because inserts
// reclaim idle records themselves.
func (t *Table) Sweep(now int64, pause func() bool) bool {
	defer runtime.KeepAlive(t)
	now = t.raise(t.catchUp(now))
	return t.pass(now, now, pause)
}

// SweepEpoch does what [Table.Sweep] does, but frees only records that have been idle since the last complete sweep. So
// a key that stays below its limit still finds its record when it comes back. While at most half of the slots hold a
// record, SweepEpoch frees only records that have been idle for a skew of the algorithm (R7).
func (t *Table) SweepEpoch(now int64, pause func() bool) bool {
	defer runtime.KeepAlive(t)
	now = t.raise(t.catchUp(now))
	since := max(now-int64(t.current().skew), 0)
	if t.occupied.Load() > t.slots/2 {
		since = max(since, int64(t.swept.Load()))
	}
	return t.pass(now, since, pause)
}

// pass does the work of Sweep at the time now, for records that have been idle since a time (the parameter since). The
// watermark must have reached now (R7).
func (t *Table) pass(now, since int64, pause func() bool) bool {
	if t.owner != nil {
		t.completeReplacement(func() int64 { return now }) // what a dead process has begun: R22
	}
	return t.reap(now, pause) && t.sweepAll(now, since, pause)
}

// sweepAll makes the sweep for pass. Unlike pass, it may be called while a replacement of the plan is announced but not
// complete.
func (t *Table) sweepAll(now, since int64, pause func() bool) bool {
	lowersBounds := t.beginLowering()
	complete := t.visit(since, lowersBounds, pause)
	if lowersBounds {
		t.endLowering(complete)
	}
	if !complete {
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

// visit sweeps every slot that was ever used, until pause returns false. It reports whether it visited all of them.
func (t *Table) visit(since int64, lowersBounds bool, pause func() bool) bool {
	live, idle, reclaimed := uint64(0), uint64(0), uint64(0)
	defer func() { t.reclaimed.Add(reclaimed) }()
	visited := 0
	for slots := range t.memory.markedPages() { // R12
		l, i, r := t.sweepPage(slots, since, lowersBounds)
		live, idle, reclaimed = live+l, idle+i, reclaimed+r
		if visited += len(slots); visited >= t.chunk {
			if pause != nil && !pause() {
				return false
			}
			visited = 0
		}
	}
	t.live.Store(live)
	t.occupied.Store(live + idle)
	return true
}

// sweepPage frees the records in the given slots that have been idle since a time. It counts the records that are not
// idle, the idle ones that stay, and the freed ones. If lowersBounds is set, it extends probe bounds to cover the
// records that stay.
func (t *Table) sweepPage(slots []slot, since int64, lowersBounds bool) (live, idle, reclaimed uint64) {
	for i := range slots {
		sl := &slots[i]
		s := sl.state.Load()
		switch s.Tag() {
		case atomicbucket.NeverUsed, atomicbucket.Free:
			continue
		case atomicbucket.Claimed:
			if t.isDeserted(s.Payload()) { // R17
				sl.state.Abandon(s)
			}
			continue
		case atomicbucket.Tentative:
			// The call that is about to commit this record may have read the watermark long ago (R7). It will start
			// over.
			if sl.state.Abort(s) {
				continue
			}
		default:
			// The watermark is read after the state, so the call that wrote the state is ahead of the watermark by at
			// most a skew (R7). The plan is read after the state, too (R9). Records of another plan are converted, so
			// that none is left when time leaps.
			plan := t.current()
			switch {
			case s.Tag() != plan.live:
				t.convert(sl, s)
				live++
			case !plan.idle(s, t.Watermark()):
				live++
			case !plan.idle(s, since): // the record stays, so that its key still finds it
				idle++
			case (t.entries == nil || t.markLastChange(sl, s)) && sl.state.Free(s): // R26
				plan.countForgotten(t.shards[0].counters, s, t.Watermark())
				reclaimed++
				continue
			default: // taken this moment
				live++
			}
		}
		if lowersBounds {
			// R11. If the slot has changed hands, the key word may be the new owner's. The new owner's call extends the
			// bound as well, so this does no harm. The slot is in the probe window of every key that it ever had.
			p := t.Find(sl.key.Load())
			if i := p.index(sl); i < t.probeWindow { // R20
				t.cover(p, i)
			}
		}
	}
	return live, idle, reclaimed
}
