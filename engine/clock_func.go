package engine

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/tsc"
)

// maxBack is how far the function of a [ClockFunc] may go back and only be late. Goroutines that read a clock beside
// each other, and a clock that is set a little, go back by less.
const maxBack = time.Minute

// A toldClock is the time by the function of a [ClockFunc], which need not be a clock in working order. What it tells
// becomes the watermark of the table, which never falls. So when the function goes back by more than maxBack, the
// timeline goes on from the latest time that it told: else every key would wait until the function tells that again.
// When it goes ahead by more than maxBack, it may have come back from there: the timeline goes ahead only by what that
// is more than it was ahead of the function. So it never gets ahead by more than the largest of such excursions.
type toldClock struct {
	read   func() time.Time
	latest atomic.Int64 // on the timeline
	ahead  atomic.Int64 // how far the timeline is ahead of the function
}

// told returns the time by the function. A time that the timeline does not have, or in the second half of what is left
// of it, is not believed: time stands still meanwhile. So there is time left when the function is right again.
//
// It is lock-free: the function is called again only if another call has changed what this one had read. Were it called
// again after each change of ahead, a function that goes to and fro from one reading to the next would never be done.
func (c *clock) told() int64 {
	f := &c.function
	for {
		ahead, latest := f.ahead.Load(), f.latest.Load()
		nanos, ok := c.unix(f.read()) // after the latest, so an earlier time means that the function has gone back
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

// latest returns the latest time that the clock has told: no take has been at a later one.
func (c *clock) latest() int64 {
	if line := c.line.Load(); line != nil { // as nanos does, two calls less
		return line.nanosAt(tsc.Read())
	}
	now := c.surely()
	if c.kind == clockFunc {
		now = max(now, c.function.latest.Load())
	}
	return now
}
