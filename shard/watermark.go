package shard

import "time"

// The watermark is a time that has certainly been reached, in nanoseconds. It never falls. Two things depend on it (R7
// in doc.go):
//
//   - A record is forgotten as idle only if it is idle at the watermark, and a new record starts full at the watermark
//     or later. So even a call whose clock is late cannot observe that a record was forgotten.
//   - Two times that one call compares are never so far apart that their difference would be misread on the circle.
//
// Ordinary calls only read the watermark. Four things move it: a sweep, an insert that claims a record which became
// idle after the watermark, a call whose time has leapt ahead of the watermark, and a replacement of the plan.

// These are distances on the payload's circle, in skews. A bucket owes at most two skews, and was charged at most one
// skew ahead of the watermark.
const (
	circle   = 16
	leapStep = 4 // all that was indebted before the step is idle after it
)

// Watermark returns the watermark.
func (t *Table) Watermark() int64 { return int64(t.watermark.Load()) }

// catchUp returns the time at which a call whose clock reads the time now is decided: the time now, or the watermark if
// the watermark is later. If the time now is further ahead of the watermark than a call may be, catchUp moves the
// watermark to this time. This is necessary only after a long time without a sweep, or if the caller's time leaps. In a
// shared table, if the machine's clock is earlier than the time now, catchUp uses the time of the machine's clock
// instead (R23).
func (t *Table) catchUp(now int64) int64 {
	for {
		watermark := t.watermark.Load()
		if now <= int64(watermark) {
			return int64(watermark)
		}
		if uint64(now)-watermark <= t.current().trust {
			return now
		}
		if now = t.reached(now); now > int64(watermark) {
			t.advance(watermark, uint64(now), now)
		}
	}
}

// follow returns two times for a call at the time now, which may be ahead of its clock. The result at is the time at
// which the call is decided. The result upTo is the time up to which the call may move the watermark: the clock's time,
// or the watermark itself if the clock is late. If the time now is before the clock's time, it counts instead of the
// clock's time. If the call would otherwise be too far ahead of the watermark, follow moves the watermark to upTo.
func (t *Table) follow(now, clock int64) (at, upTo int64) {
	upTo = t.catchUp(min(now, clock))
	if now <= clock {
		return upTo, upTo // upTo is before now if the clock is ahead of the machine's clock
	}
	if at = max(now, upTo); at > upTo && uint64(at)-t.watermark.Load() > t.current().skew {
		t.raise(upTo)
	}
	return at, upTo
}

// leap returns how far the watermark moves in one step towards a later time. The parameter ahead is the distance to
// that time in nanoseconds. The first step includes all whole turns of the circle. These turns do not change the
// distance of a record on the circle, and the rest of the step makes the record idle. After this step less than a turn
// remains, which takes at most four more steps.
func leap(ahead, skew uint64) uint64 {
	if ahead <= leapStep*skew {
		return ahead
	}
	return ahead - (ahead-leapStep*skew)%(circle*skew)
}

// raise moves the watermark to the time now, unless the watermark has already reached this time. It returns the time up
// to which it has moved the watermark.
func (t *Table) raise(now int64) int64 { return t.raiseTo(now, now) }

// raiseTo moves the watermark to the time in the parameter to, for a call whose clock reads the time now, unless the
// watermark has already reached the time in to. That time may be before the origin of time. If the machine's clock has
// not reached it, the watermark moves to the machine's time (R23). raiseTo returns the time up to which it has moved
// the watermark.
func (t *Table) raiseTo(to, now int64) int64 {
	for {
		watermark := t.watermark.Load()
		if to = t.reached(to); to <= int64(watermark) {
			return to
		}
		t.advance(watermark, uint64(to), now)
	}
}

// MaxTrust is how far a call of a shared table may be ahead of the watermark without a check of the machine's clock. A
// sweeper usually moves the watermark every ten seconds, so the check is rare.
const MaxTrust = 15 * time.Second

// reached returns a time that has certainly been reached: the time in the parameter at, or, if the table is shared and
// the machine's clock is earlier, the time of the machine's clock (R23).
func (t *Table) reached(at int64) int64 {
	if t.clock == nil {
		return at
	}
	return min(at, t.clock())
}

// believed returns the time and the clock with which a call continues when its clock is found to be ahead of the
// machine's clock. If the caller has supplied the time, the call still uses that time.
func (t *Table) believed(now, clock int64) (int64, int64) {
	reached := t.reached(clock)
	if now <= clock {
		now = min(now, reached)
	}
	return now, reached
}

// replacing is the bit of the word pace that is set while the plan is being replaced.
const replacing = 1 << 63

// advance moves the watermark by one step, for a call whose clock reads the time now. The step goes from the time in
// the parameter watermark towards the time in the parameter to. If another call has moved the watermark, advance does
// not move it. If the watermark is more than a skew ahead of the last complete sweep, advance sweeps instead. Otherwise
// idle records could stay long enough to look indebted again.
func (t *Table) advance(watermark, to uint64, now int64) {
	t.advancing.Add(1) // before the pace is read: see fence
	skew, alone := t.moves(now)
	step := to - watermark
	if swept := t.swept.Load(); watermark > swept && watermark-swept > skew {
		t.advancing.Add(^uint64(0))
		t.sweepAll(int64(watermark), int64(watermark), nil)
		return
	}
	if alone {
		step = leap(step, skew)
	} else {
		step = min(step, leapStep*skew) // no whole turns: records follow two plans, and their circles differ
	}
	t.watermark.CompareAndSwap(watermark, watermark+step)
	t.advancing.Add(^uint64(0))
}

// moves returns the skew by which the watermark moves for a call whose clock reads the time now. It also reports
// whether all records follow one plan. In a shared table all records always follow one plan, because moves first
// completes a replacement that another process has begun (R22).
func (t *Table) moves(now int64) (skew uint64, alone bool) {
	if t.owner != nil {
		return t.settled(func() int64 { return now }).skew, true
	}
	pace := t.pace.Load()
	return pace &^ replacing, pace&replacing == 0
}

// fence limits moves of the watermark to the smaller skew of two plans, until the pace is set again. A call that read
// the pace before fence set it is still counted in advancing. In that case fence moves the watermark, so the
// compare-and-swap of that call fails.
func (t *Table) fence(before, plan *Plan) {
	t.pace.Store(min(before.skew, plan.skew) | replacing)
	if t.advancing.Load() != 0 {
		t.raise(t.Watermark() + 1)
	}
}
