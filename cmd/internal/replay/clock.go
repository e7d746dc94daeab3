package replay

import (
	"sync/atomic"
	"time"
)

// A clock is the time of the log: the latest stamp seen so far. The engine uses it, also for background work such as
// sweeping, which runs in another goroutine: hence the atomic.
//
// The zero clock stands at the beginning of 1970, before any log.
type clock struct{ unixNanos atomic.Int64 }

// now returns the latest stamp seen so far.
func (c *clock) now() time.Time { return time.Unix(0, c.unixNanos.Load()) }

// advance moves the clock forward to stamp and returns its time. Only the replay itself calls it.
func (c *clock) advance(stamp time.Time) time.Time {
	now := c.now()
	if stamp.After(now) {
		c.unixNanos.Store(stamp.UnixNano())
		return stamp
	}
	return now
}
