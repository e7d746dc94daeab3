package engine

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/tsc"
)

// maxBack is how far the time of a [ClockFunc] may go back and still count as only late. Times go back a little if
// goroutines read a clock concurrently, or if a clock is adjusted. Such steps back are shorter than maxBack.
const maxBack = time.Minute

// A toldClock takes the time from the function of a [ClockFunc]. This function may be faulty, and the times that it
// returns become the watermark of the table, which never falls. If the function goes back by more than maxBack, the
// timeline continues from the latest time that the function returned. Otherwise every key would wait until the function
// reaches that time again. If the function jumps ahead by more than maxBack, it may be returning from such a step back.
// The timeline then advances only by the part of the jump that exceeds the timeline's lead over the function. So the
// lead is never more than the largest single excursion of the function.
type toldClock struct {
	read   func() time.Time
	latest atomic.Int64 // the latest time that was returned, on the timeline
	ahead  atomic.Int64 // how far the timeline is ahead of the function
}

// told returns the time according to the function. It ignores a time outside the timeline, and also a time in the
// second half of the rest of the timeline. Then the limiter's time stands still, so that the timeline is not used up
// when the function is right again.
//
// told is lock-free. It starts over, and calls the function again, only if another call has changed a value that this
// call had read and wants to replace. It does not start over because it has itself changed the field ahead. Otherwise,
// the loop would be endless if the function jumped back and forth with each reading.
func (c *clock) told() int64 {
	f := &c.function
	for {
		ahead, latest := f.ahead.Load(), f.latest.Load()
		nanos, ok := c.unix(f.read()) // read after latest, so an earlier time means that the function has gone back
		if !ok || nanos-c.origin > (math.MaxInt64-c.origin)/2 || nanos > math.MaxInt64-ahead {
			return latest
		}
		now := nanos + ahead
		switch {
		case now-latest > int64(maxBack) && ahead > 0:
			less := min(ahead, now-latest)
			if !f.ahead.CompareAndSwap(ahead, ahead-less) {
				continue
			}
			now -= less
		case latest-now > int64(maxBack):
			if !f.ahead.CompareAndSwap(ahead, latest-nanos) {
				continue
			}
			now = latest
		}
		if now <= latest || f.latest.CompareAndSwap(latest, now) {
			return now
		}
	}
}

// latest returns the latest time that the clock has returned. No take has had a later time.
func (c *clock) latest() int64 {
	if line := c.line.Load(); line != nil { // the same as nanos, with two calls less
		return line.nanosAt(tsc.Read())
	}
	now := c.surely()
	if c.kind == clockFunc {
		now = max(now, c.function.latest.Load())
	}
	return now
}
