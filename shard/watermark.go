package shard

import "time"

// The watermark is a time that has certainly been reached, in nanoseconds; it never
// falls. Two things hang on it (R7 in doc.go):
//
//   - A record is forgotten as idle only if it is idle at the watermark, and a new
//     record starts full at the watermark or later. So forgetting is unobservable even
//     to a call whose clock is late.
//   - Two times that meet in one call are never so far apart that their difference
//     on the payload's circle would mean something else.
//
// Ordinary calls read it and compare. It is written by the sweeper, by an insert
// that claims a record which became idle after the watermark, when time has leapt, and
// when the plan is replaced.

// Distances on the payload's circle, in skews. A bucket owes at most two, and was
// charged at most one ahead of the watermark.
const (
	circle   = 16
	leapStep = 4 // all that was indebted before the step is idle after it
)

// Watermark returns the watermark.
func (t *Table) Watermark() int64 { return int64(t.watermark.Load()) }

// catchUp returns the time at which a call whose clock reads now is to be
// decided: the watermark if now is late. If now is further ahead of the watermark than a
// call may be, which takes a long time without a sweep, or a leap in the caller's time, the
// watermark follows it. In a shared table both follow the machine's clock if that is earlier (R23).
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

// follow returns the time at which a call is to be decided that comes at the time now, which may be ahead of its clock,
// and how far the watermark may follow it: to the clock, or where it is if the clock is late. It moves the watermark
// there if the call would be too far ahead of it otherwise.
func (t *Table) follow(now, clock int64) (at, upTo int64) {
	upTo = t.catchUp(min(now, clock))
	if now <= clock {
		return upTo, upTo // which is before now if the clock is ahead of the machine's
	}
	if at = max(now, upTo); at > upTo && uint64(at)-t.watermark.Load() > t.current().skew {
		t.raise(upTo)
	}
	return at, upTo
}

// leap returns how far the watermark goes in one step towards a time so far ahead. Whole
// turns of the circle come with the first step, and cost nothing: a record stays at
// the same distance, and the rest of the step makes it idle. What then remains is less
// than a turn, four steps more.
func leap(ahead, skew uint64) uint64 {
	if ahead <= leapStep*skew {
		return ahead
	}
	return ahead - (ahead-leapStep*skew)%(circle*skew)
}

// raise makes the watermark at least now, and returns the time up to which it did.
func (t *Table) raise(now int64) int64 { return t.raiseTo(now, now) }

// raiseTo makes the watermark at least a time, which may be before the origin of time, for a call whose clock reads
// now. If the machine's clock has not reached that time, the watermark moves up to where that is (R23). It returns the
// time up to which it moved.
func (t *Table) raiseTo(to, now int64) int64 {
	for {
		watermark := t.watermark.Load()
		if to = t.reached(to); to <= int64(watermark) {
			return to
		}
		t.advance(watermark, uint64(to), now)
	}
}

// MaxTrust is how far a call of a shared table may be ahead of the watermark without a look at the machine's clock. A
// sweeper usually moves the watermark every ten seconds, so hardly any call is.
const MaxTrust = 15 * time.Second

// reached returns a time that has certainly been reached: the given one, or that of the machine's clock if it is
// earlier and the table is shared (R23).
func (t *Table) reached(at int64) int64 {
	if t.clock == nil {
		return at
	}
	return min(at, t.clock())
}

// believed returns the time and the clock of a call as it goes on when it has found its clock ahead of the machine's. A
// time that was supplied by the caller stays.
func (t *Table) believed(now, clock int64) (int64, int64) {
	reached := t.reached(clock)
	if now <= clock {
		now = min(now, reached)
	}
	return now, reached
}

// replacing says of a pace that the plan is being replaced.
const replacing = 1 << 63

// advance moves the watermark from where it is by one step towards a later time, if it is still there, for a call whose
// clock reads now. Before the watermark moves on, the last leap's sweep has to be made, by the call that comes first:
// or idle records would stay behind long enough to look indebted again.
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
		step = min(step, leapStep*skew) // no turns: records follow two plans, and their circles differ
	}
	t.watermark.CompareAndSwap(watermark, watermark+step)
	t.advancing.Add(^uint64(0))
}

// moves returns the skew by which the watermark moves for a call whose clock reads now, and whether all records follow
// one plan. In a shared table they do: what another process has begun is completed first, at that time (R22).
func (t *Table) moves(now int64) (skew uint64, alone bool) {
	if t.owner != nil {
		return t.settled(func() int64 { return now }).skew, true
	}
	pace := t.pace.Load()
	return pace &^ replacing, pace&replacing == 0
}

// fence makes the watermark move by the smaller skew of two plans from now on, until the pace is set again. A call that
// read the pace before is still counted, and its compare-and-swap fails when the watermark has moved.
func (t *Table) fence(before, plan *Plan) {
	t.pace.Store(min(before.skew, plan.skew) | replacing)
	if t.advancing.Load() != 0 {
		t.raise(t.Watermark() + 1)
	}
}
