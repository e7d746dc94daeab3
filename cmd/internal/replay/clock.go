package replay

import (
	"sync/atomic"
	"time"
)

// A clock has the time of the log, which is the latest time stamp so far. It is atomic because the engine also reads it
// in another goroutine, for background work such as sweeping.
//
// The zero clock is at the beginning of 1970, before any log.
type clock struct{ unixNanos atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(0, c.unixNanos.Load()) }

// advance moves the clock forward to the time stamp, but never back. It returns the clock's time. Only the replay calls
// it.
func (c *clock) advance(stamp time.Time) time.Time {
	now := c.now()
	if stamp.After(now) {
		c.unixNanos.Store(stamp.UnixNano())
		return stamp
	}
	return now
}
