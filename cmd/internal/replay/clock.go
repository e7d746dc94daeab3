package replay

import (
	"sync/atomic"
	"time"
)

// A clock has the time of the log, which is the latest stamp so far. The engine reads it. It is atomic because the
// engine also does background work, such as sweeping, in another goroutine.
//
// The zero clock is at the beginning of 1970, before any log.
type clock struct{ unixNanos atomic.Int64 }

// now returns the latest stamp so far.
func (c *clock) now() time.Time { return time.Unix(0, c.unixNanos.Load()) }

// advance moves the clock forward to the parameter stamp if this time is later, and returns the clock's time. Only the
// replay itself calls it.
func (c *clock) advance(stamp time.Time) time.Time {
	now := c.now()
	if stamp.After(now) {
		c.unixNanos.Store(stamp.UnixNano())
		return stamp
	}
	return now
}
