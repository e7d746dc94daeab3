package shard

// The mark is a time that has certainly been reached, in nanoseconds; it never
// falls. Two things hang on it (R7 in doc.go):
//
//   - A record is forgotten as idle only if it is idle at the mark, and a new
//     record starts full at the mark or later. So forgetting is unobservable even
//     to a call whose clock is late.
//   - Two times that meet in one call are never more than the skew apart, so that
//     differences on the payload's circle mean what they say.
//
// Ordinary calls read it and compare. It is written by the sweeper, by an insert
// that reclaims a record which became idle after the mark, and when time has
// leapt.

// Mark returns the mark.
func (t *Table) Mark() int64 { return int64(t.mark.Load()) }

// catchUp returns the time at which a call whose clock reads now is to be
// decided: the mark if now is late. If now is further ahead of the mark than the
// skew, which takes days without a sweep or a leap in the caller's time, the
// mark follows it, with as many sweeps as the circle needs.
func (t *Table) catchUp(now int64) int64 {
	// No record can owe anything three skews after the mark: one for the clock that
	// wrote it, one for the burst, one for what is left over. So four steps free every
	// record, and the rest of the way is empty.
	for range 4 {
		mark := t.Mark()
		if now <= mark {
			return mark
		}
		if now-mark <= int64(t.skew) {
			return now
		}
		t.raise(mark + int64(t.skew))
	}
	t.raise(now)
	return max(now, t.Mark())
}

// raise lifts the mark to now and sees to it that no idle record stays behind
// long enough to look indebted again.
func (t *Table) raise(now int64) {
	t.lift(now)
	if now-int64(t.swept.Load()) > int64(t.skew) {
		t.pass(now, nil)
	}
}

// lift makes the mark at least now.
func (t *Table) lift(now int64) {
	for {
		mark := t.mark.Load()
		if uint64(now) <= mark || t.mark.CompareAndSwap(mark, uint64(now)) {
			return
		}
	}
}
