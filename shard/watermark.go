package shard

import "time"

// The watermark is a time that has certainly been reached, in nanoseconds. It never falls. A record is forgotten as
// idle only if it is idle at the watermark. The watermark also keeps times close together: a call compares two times
// modulo 2^54 ticks (the payload's circle), so they must not be too far apart (R7).
//
// Five things move the watermark: a sweep, an insert that claims a record which became idle after the watermark, a call
// whose time is far ahead of the watermark, a call that raises the price of a record (R27), and a replacement of the
// plan. All other calls only read it.

// Distances on the payload's circle, in skews. A bucket owes at most two skews, and was charged at most one skew ahead
// of the watermark.
const (
	circleSkews = 16
	leapStep    = 4 // a record that owes something before a step of this length is idle after it
)

// Watermark returns the watermark.
func (t *Table) Watermark() int64 { return int64(t.watermark.Load()) }

// catchUp returns the time at which a call whose clock reads now is decided: now, or the watermark if that is later. If
// now is further ahead of the watermark than a call may be, catchUp moves the watermark to now. That happens only after
// a long time without a sweep, or if the caller's time leaps. In a shared table, the machine's clock replaces now if it
// is earlier (R23).
func (t *Table) catchUp(now int64) int64 {
	for {
		watermark := t.watermark.Load()
		if now <= int64(watermark) {
			return int64(watermark)
		}
		if uint64(now)-watermark <= t.current().trust {
			return now
		}
		if now = t.reachedTime(now); now > int64(watermark) {
			t.advance(watermark, uint64(now), now)
		}
	}
}

// callTimes returns two times for a call at the time now, which may be ahead of its clock. The first (at) is the time
// at which the call is decided. The second (moveLimit) is the time up to which the call may move the watermark: the
// earlier of now and the clock, but at least the watermark. callTimes moves the watermark to moveLimit if the call
// would otherwise be too far ahead of the watermark.
func (t *Table) callTimes(now, clock int64) (at, moveLimit int64) {
	moveLimit = t.catchUp(min(now, clock))
	if now <= clock {
		return moveLimit, moveLimit // moveLimit is before now if the clock is ahead of the machine's clock
	}
	if at = max(now, moveLimit); at > moveLimit && uint64(at)-t.watermark.Load() > t.current().skew {
		t.raise(moveLimit)
	}
	return at, moveLimit
}

// leap returns how far the watermark moves in one step towards a time that is ahead by the given nanoseconds. The first
// step includes all whole turns of the circle, which do not change where a record is on the circle. Less than a turn
// remains, which takes at most four more steps.
func leap(ahead, skew uint64) uint64 {
	if ahead <= leapStep*skew {
		return ahead
	}
	return ahead - (ahead-leapStep*skew)%(circleSkews*skew)
}

// raise moves the watermark to the time now, unless it has already reached now. It returns the time up to which it has
// moved the watermark.
func (t *Table) raise(now int64) int64 { return t.raiseTo(now, now) }

// raiseTo moves the watermark to a time, for a call whose clock reads now, unless the watermark has already reached
// that time. (The time may be before the origin of time.) The watermark moves no further than the machine's clock
// (R23). raiseTo returns the time up to which it has moved the watermark.
func (t *Table) raiseTo(to, now int64) int64 {
	for {
		watermark := t.watermark.Load()
		if to = t.reachedTime(to); to <= int64(watermark) {
			return to
		}
		t.advance(watermark, uint64(to), now)
	}
}

// MaxTrust is how far a call of a shared table may be ahead of the watermark without a check of the machine's clock. A
// sweeper usually moves the watermark every ten seconds, so the check is rare.
const MaxTrust = 15 * time.Second

// reachedTime returns a time that has certainly been reached (R23). In a shared table, that is the given time or the
// machine's time, whichever is earlier. In other tables it is the given time.
func (t *Table) reachedTime(at int64) int64 {
	if t.clock == nil {
		return at
	}
	return min(at, t.clock())
}

// trustedTimes returns the time and the clock with which a call continues when its clock is found to be ahead of the
// machine's clock. A time that the caller has supplied stays.
func (t *Table) trustedTimes(now, clock int64) (int64, int64) {
	reachedClock := t.reachedTime(clock)
	if now <= clock {
		now = min(now, reachedClock)
	}
	return now, reachedClock
}

// replacingBit is the bit of the word pace that is set while the plan is being replaced.
const replacingBit = 1 << 63

// advance moves the watermark by one step towards a time, for a call whose clock reads now, unless another call has
// moved the watermark. If the watermark is more than a skew ahead of the last complete sweep, advance sweeps instead:
// otherwise idle records could stay until they look indebted again.
func (t *Table) advance(watermark, to uint64, now int64) {
	t.advancing.Add(1) // before the pace is read: see fence
	skew, onePlan := t.movePace(now)
	step := to - watermark
	if swept := t.swept.Load(); watermark > swept && watermark-swept > skew {
		t.advancing.Add(^uint64(0))
		t.sweepAll(int64(watermark), int64(watermark), nil)
		return
	}
	if onePlan {
		step = leap(step, skew)
	} else {
		step = min(step, leapStep*skew) // no whole turns: records follow two plans, and their circles differ
	}
	t.watermark.CompareAndSwap(watermark, watermark+step)
	t.advancing.Add(^uint64(0))
}

// movePace returns the skew by which the watermark moves for a call whose clock reads now. It also reports whether all
// records follow one plan. In a shared table all records do, because movePace first completes a replacement that is
// under way (R22).
func (t *Table) movePace(now int64) (skew uint64, onePlan bool) {
	if t.owner != nil {
		return t.completeReplacement(func() int64 { return now }).skew, true
	}
	pace := t.pace.Load()
	return pace &^ replacingBit, pace&replacingBit == 0
}

// fence limits moves of the watermark to the smaller skew of two plans, until the pace is set again. If a call that
// read the earlier pace is still counted in advancing, fence moves the watermark, so that the compare-and-swap of that
// call fails.
func (t *Table) fence(before, plan *Plan) {
	t.pace.Store(min(before.skew, plan.skew) | replacingBit)
	if t.advancing.Load() != 0 {
		t.raise(t.Watermark() + 1)
	}
}
