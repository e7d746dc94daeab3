package engine

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/tsc"
)

type clockKind uint8

const (
	clockTSC clockKind = iota // the default; clockPrecise replaces it if the counter is not available
	clockPrecise
	clockCoarse
	clockFunc
)

// A clock counts nanoseconds on the limiter's timeline, from 1970 to 2262. A change of the wall clock does not move it.
type clock struct {
	kind     clockKind
	base     time.Time // an instant, with its monotonic reading if it has one
	origin   int64     // base on the timeline
	function funcClock // only for clockFunc
	// counter is the calibrated time stamp counter, or nil if there is none.
	counter *counterClock
	// line has the counter's current calibration for clockTSC, and nil for any other kind of clock.
	line *atomic.Pointer[calibration]

	_      [64]byte
	coarse atomic.Int64 // only for clockCoarse; 0 when no goroutine renews it
	_      [56]byte
}

// newClock returns a clock of the kind, or clockPrecise instead of clockTSC if the counter is not available.
func newClock(kind clockKind, read func() time.Time) (*clock, error) {
	c := &clock{kind: kind, base: time.Now(), line: new(atomic.Pointer[calibration])}
	if kind == clockFunc {
		c.base, c.function.read = read(), read
	} else if c.counter = sharedCounter(); c.counter != nil {
		c.base = c.counter.base
	} else if kind == clockTSC {
		c.kind = clockPrecise
	}
	if y := c.base.UTC().Year(); y < 1970 || y > 2261 {
		return nil, fmt.Errorf("engine: the clock reads %v: want a time from 1970 to 2261", c.base)
	}
	if c.kind == clockTSC {
		c.line = &c.counter.current
	}
	c.origin = c.base.UnixNano()
	c.function.latest.Store(c.origin)
	return c, nil
}

// join puts the clock on the timeline of other processes, by the machine's monotonic clock. The error is less than a
// microsecond, unless this goroutine was suspended during every one of its readings.
func (c *clock) join(timeline func() int64) {
	var offset int64
	width := time.Duration(math.MaxInt64)
	for range 16 {
		before := time.Now()
		reading := timeline()
		if w := time.Since(before); w < width {
			offset, width = reading-c.origin-int64(before.Add(w/2).Sub(c.base)), w
		}
	}
	c.origin += offset
	if c.counter != nil {
		c.counter = c.counter.shifted(offset)
		if c.kind == clockTSC {
			c.line = &c.counter.current
		}
	}
}

func (c *clock) nanos() int64 {
	if line := c.line.Load(); line != nil {
		return line.nanosAt(tsc.Read())
	}
	switch c.kind {
	case clockTSC: // the counter is no longer used
		return c.counter.nanos()
	case clockPrecise:
		return c.precise()
	case clockCoarse:
		if n := c.coarse.Load(); n != 0 {
			return n
		}
		return c.exact()
	}
	return c.funcNanos()
}

func (c *clock) precise() int64 { return c.origin + int64(time.Since(c.base)) }

// exact returns the time by the cheapest clock that is never late.
func (c *clock) exact() int64 {
	if c.counter != nil {
		return c.counter.nanos()
	}
	return c.precise()
}

// exactNanos returns the time, by a clock that is never late.
func (c *clock) exactNanos() int64 {
	if c.kind == clockCoarse {
		return c.exact()
	}
	return c.nanos()
}

// machine returns the time by the machine's monotonic clock, which all processes of a shared table have in common. If
// the counter is ahead of that clock, machine stops using the counter.
func (c *clock) machine() int64 {
	if now := c.precise(); c.counter == nil || isTolerable(time.Duration(c.counter.nanos()-now), recalibrateEvery) {
		return now
	}
	c.counter.recalibrate()
	return c.precise()
}

func (c *clock) lateness() time.Duration {
	if c.kind == clockCoarse {
		return coarseDoubt
	}
	return 0
}

// instant returns t on the timeline, or the nearest end of the timeline for a time outside of it.
func (c *clock) instant(t time.Time) int64 {
	if nanos, ok := c.unix(t); ok {
		offset := c.function.offset.Load()
		return min(nanos, math.MaxInt64-offset) + offset
	}
	if t.Before(c.base) {
		return 0
	}
	return math.MaxInt64
}

// unix returns the nanoseconds from 1970 to t, by monotonic readings if t and the base have them. It returns false if
// they are negative or do not fit into an int64.
func (c *clock) unix(t time.Time) (int64, bool) {
	d := int64(t.Sub(c.base)) // at most 292 years, because Sub saturates
	if d > math.MaxInt64-c.origin || c.origin+d < 0 {
		return 0, false
	}
	return c.origin + d, true
}
