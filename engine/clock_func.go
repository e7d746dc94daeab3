package engine

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/tsc"
)

// maxBack is the largest step back of a [ClockFunc] that counts only as a late reading. Concurrent readings and
// adjustments of a clock go back by less.
const maxBack = time.Minute

// A toldClock gets its time from the function of a [ClockFunc], which may be faulty. After a step back of more than
// maxBack, the timeline continues from the latest time. Otherwise every key would wait until the function reaches that
// time again.
type toldClock struct {
	read   func() time.Time
	latest atomic.Int64 // the latest time that was returned, on the timeline
	ahead  atomic.Int64 // how far the timeline is ahead of the function
}

// told returns the time according to the function. It ignores a time outside the timeline, and a time so far ahead that
// it could use up the timeline.
//
// told is lock-free: it starts over only if another call has changed a value that told wants to replace. It does not
// start over after its own change of the field ahead. Otherwise a function that jumps back and forth would make the
// loop endless.
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

// latest returns the latest time that the clock has returned.
func (c *clock) latest() int64 {
	if line := c.line.Load(); line != nil { // like nanos, with two calls less
		return line.nanosAt(tsc.Read())
	}
	now := c.surely()
	if c.kind == clockFunc {
		now = max(now, c.function.latest.Load())
	}
	return now
}
