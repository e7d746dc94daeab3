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

// A funcClock gets its time from the function of a [ClockFunc], which may be faulty. After a step back of more than
// maxBack, the timeline continues from the latest time. Otherwise every key would wait until the function reaches that
// time again.
type funcClock struct {
	read   func() time.Time
	latest atomic.Int64 // the latest time that was returned, on the timeline
	offset atomic.Int64 // how far the timeline is ahead of the function
}

// funcNanos returns the time according to the function. It ignores a time outside the timeline, and a time so far ahead
// that it could use up the timeline.
//
// funcNanos is lock-free: it starts over only if another call has changed a value that funcNanos wants to replace. It
// does not start over after its own change of the field offset. Otherwise a function that jumps back and forth would
// make the loop endless.
func (c *clock) funcNanos() int64 {
	f := &c.function
	for {
		offset, latest := f.offset.Load(), f.latest.Load()
		nanos, ok := c.unix(f.read()) // read after latest, so an earlier time means that the function has gone back
		if !ok || nanos-c.origin > (math.MaxInt64-c.origin)/2 || nanos > math.MaxInt64-offset {
			return latest
		}
		now := nanos + offset
		switch {
		case now-latest > int64(maxBack) && offset > 0:
			reduction := min(offset, now-latest)
			if !f.offset.CompareAndSwap(offset, offset-reduction) {
				continue
			}
			now -= reduction
		case latest-now > int64(maxBack):
			if !f.offset.CompareAndSwap(offset, latest-nanos) {
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
	now := c.exactNanos()
	if c.kind == clockFunc {
		now = max(now, c.function.latest.Load())
	}
	return now
}
