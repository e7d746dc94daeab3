package engine

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/tsc"
)

// A counterClock converts the time stamp counter to nanoseconds. Each process has one.
type counterClock struct {
	base    time.Time                   // when the clock was made
	origin  int64                       // base on the timeline
	current atomic.Pointer[calibration] // nil if the counter is no longer used

	mu   sync.Mutex // guards last
	last sample     // at the latest calibration
	// isShared is true if other processes use the same timeline, with Go's clock or with their own counters.
	isShared bool
	// When Go's clock replaced the counter: the time on the timeline, and by Go's clock.
	switchNanos int64
	switchTime  time.Time
}

// A calibration is an immutable linear function from counts to nanoseconds.
type calibration struct {
	count uint64 // the count at which the line begins
	nanos int64  // the time at this count
	mul   uint64 // nanoseconds per count, as mul / 2^58
}

func (c *calibration) nanosAt(count uint64) int64 {
	d := count - c.count
	if int64(d) < 0 {
		d = 0 // another processor published the line a moment ago
	}
	high, _ := bits.Mul64(d<<counterScale, c.mul)
	return c.nanos + int64(high)
}

// counterScale shifts the nanoseconds per count of a calibration, which are below 1 for counters of 16 MHz and more. A
// calibration is then valid for 2^58 counts, three years at 2.5 GHz.
const counterScale = 6

// shared has the process's counter clock, made for the first limiter that needs it.
var shared struct {
	sync.Mutex
	clock *counterClock
}

// sharedCounter returns the process's counter clock, or nil if the counter cannot be trusted.
func sharedCounter() *counterClock {
	shared.Lock()
	defer shared.Unlock()
	if shared.clock == nil {
		shared.clock = makeCounter()
	}
	c := shared.clock
	if c == nil {
		return nil
	}
	for range 3 { // this goroutine may be suspended between the two readings
		elapsed := time.Since(c.base)
		if isTolerable(elapsed-time.Duration(c.nanos()-c.origin), elapsed) {
			return c
		}
	}
	return nil
}

// shifted returns a counter clock whose timeline is ahead of c's timeline by offset nanoseconds.
func (c *counterClock) shifted(offset int64) *counterClock {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &counterClock{base: c.base, origin: c.origin + offset, last: c.last, isShared: true, switchTime: c.base}
	m.switchNanos = m.origin
	if line := c.current.Load(); line != nil {
		m.current.Store(&calibration{count: line.count, nanos: line.nanos + offset, mul: line.mul})
	}
	return m
}

func makeCounter() *counterClock {
	if !tsc.Trusted() {
		return nil
	}
	first := takeSample()
	// This bound ends the loop if Go's clock stands still.
	for i := 0; i < 1<<20 && time.Since(first.at) < calibrationTime; i++ {
	}
	second := takeSample()
	mul, ok := slope(first, second)
	if !ok {
		return nil
	}
	c := &counterClock{base: first.at, origin: first.at.UnixNano(), last: second}
	c.current.Store(&calibration{count: first.count, nanos: c.origin, mul: mul})
	return c
}

const (
	// calibrationTime is how long the first calibration spins. The calibration is then accurate to about 20 parts in a
	// million.
	calibrationTime = 2 * time.Millisecond
	// recalibrateEvery is the usual time between two calibrations. slewTime is the shortest time over which an error is
	// corrected.
	recalibrateEvery = 10 * time.Second
	slewTime         = time.Minute
)

// isTolerable reports whether a working counter can differ from Go's clock by this difference after the elapsed time.
// Systems correct their clocks by at most 500 parts in a million.
func isTolerable(difference, elapsed time.Duration) bool {
	return difference.Abs() <= 10*time.Millisecond+elapsed.Abs()/2000
}

func (c *counterClock) nanos() int64 {
	if line := c.current.Load(); line != nil {
		return line.nanosAt(tsc.Read())
	}
	return c.switchNanos + int64(time.Since(c.switchTime))
}

// recalibrate changes the slope of the line so that the counter agrees with Go's clock again, without a jump. If the
// error is not tolerable, Go's clock replaces the counter for good.
func (c *counterClock) recalibrate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	line, next := c.current.Load(), takeSample()
	elapsed := next.at.Sub(c.last.at)
	if line == nil || elapsed < time.Second {
		return
	}
	// The current time is not used, because this goroutine may have been suspended since the sample.
	lag := next.at.Sub(c.base) - time.Duration(line.nanosAt(next.count)-c.origin)
	mul, ok := slope(c.last, next)
	c.last = next
	if !ok || !isTolerable(lag, elapsed) {
		c.switchNanos, c.switchTime = line.nanosAt(next.count), next.at // published by the Store below
		if c.isShared {
			c.switchNanos += int64(lag) // the other processes' clocks have this time
		}
		c.current.Store(nil)
		return
	}
	start := tsc.Read()
	// The error is corrected slowly, until about the next calibration. A faster correction would overshoot.
	step := mul / uint64(max(elapsed, slewTime))
	c.current.Store(&calibration{count: start, nanos: line.nanosAt(start), mul: mul + step*uint64(lag)})
}

type sample struct {
	count uint64
	at    time.Time
}

// takeSample reads the counter before and after Go's clock several times, and returns the tightest of these samples.
func takeSample() sample {
	best, width := sample{}, uint64(1<<63)
	for range 16 {
		before := tsc.Read()
		at := time.Now()
		after := tsc.Read()
		if w := after - before; w < width {
			best, width = sample{before + w/2, at}, w
		}
	}
	return best
}

// slope returns the nanoseconds per count between two samples, or false if no working counter has that slope.
func slope(a, b sample) (uint64, bool) {
	nanos, counts := uint64(b.at.Sub(a.at)), b.count-a.count
	if int64(nanos) <= 0 || int64(counts) <= 0 || nanos>>counterScale >= counts {
		return 0, false
	}
	mul, _ := bits.Div64(nanos>>counterScale, nanos<<(64-counterScale), counts)
	return mul, true
}
