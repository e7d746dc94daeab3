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
	// joint is set if other processes use the same timeline, with Go's clock or with their own counters.
	joint bool
	// When the counter is no longer used, Go's clock continues the timeline: at the time leftSince, the timeline was at
	// left.
	left      int64
	leftSince time.Time
}

// A calibration is an immutable linear function from counts to nanoseconds. recalibrate publishes a new one.
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
	hi, _ := bits.Mul64(d<<counterScale, c.mul)
	return c.nanos + int64(hi)
}

// A calibration's factor is the nanoseconds per count, as a fraction that is shifted by counterScale. So the fraction
// is below 1 for counters of 16 MHz and more. A calibration is then valid for 2^58 counts, three years at 2.5 GHz.
const counterScale = 6

// shared has the process's counter clock, made for the first limiter that needs it.
var shared struct {
	sync.Mutex
	clock *counterClock
}

// sharedCounter returns the process's counter clock. It returns nil if the kernel does not trust the counter, or if
// Go's clock does not advance with the counter, as in a testing/synctest bubble.
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
		if tolerable(elapsed-time.Duration(c.nanos()-c.origin), elapsed) {
			return c
		}
	}
	return nil
}

// moved returns a counter clock on a timeline of several processes, which is ahead of c's timeline by some nanoseconds.
func (c *counterClock) moved(ahead int64) *counterClock {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &counterClock{base: c.base, origin: c.origin + ahead, last: c.last, joint: true, leftSince: c.base}
	m.left = m.origin
	if line := c.current.Load(); line != nil {
		m.current.Store(&calibration{count: line.count, nanos: line.nanos + ahead, mul: line.mul})
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
	// calibrationTime is how long the first calibration spins. A sample is accurate to some tens of nanoseconds, so the
	// first calibration is accurate to about 20 parts in a million. Later calibrations are more accurate.
	calibrationTime = 2 * time.Millisecond
	// recalibrateEvery is the usual time between two calibrations. slewTime is the shortest time over which an error is
	// corrected.
	recalibrateEvery = 10 * time.Second
	slewTime         = time.Minute
)

// tolerable reports whether a working counter can have drifted from Go's clock by the duration off in the time elapsed.
// Systems correct their clocks by at most 500 parts in a million. So if the drift is more than that and more than 10ms,
// the counter stopped or was set, or Go's clock has another source.
func tolerable(off, elapsed time.Duration) bool {
	return off.Abs() <= 10*time.Millisecond+elapsed.Abs()/2000
}

func (c *counterClock) nanos() int64 {
	if line := c.current.Load(); line != nil {
		return line.nanosAt(tsc.Read())
	}
	return c.left + int64(time.Since(c.leftSince))
}

// recalibrate compares the counter with Go's clock, and changes the slope of the line so that both will agree again,
// without a jump. If the error is not tolerable, Go's clock continues from the last reading for good. A call within a
// second of the previous call does nothing.
func (c *counterClock) recalibrate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	line, next := c.current.Load(), takeSample()
	elapsed := next.at.Sub(c.last.at)
	if line == nil || elapsed < time.Second {
		return
	}
	// late is computed from times of the sample only, because this goroutine may have been suspended since the sample.
	late := next.at.Sub(c.base) - time.Duration(line.nanosAt(next.count)-c.origin)
	mul, ok := slope(c.last, next)
	c.last = next
	if !ok || !tolerable(late, elapsed) {
		c.left, c.leftSince = line.nanosAt(next.count), next.at // published by the store below
		if c.joint {
			c.left += int64(late) // so that the time is that of the other processes' clocks
		}
		c.current.Store(nil)
		return
	}
	begin := tsc.Read()
	// The error is corrected over about the time until the next calibration. That is assumed to be as long as the time
	// since the previous one. A faster correction would overshoot.
	step := mul / uint64(max(elapsed, slewTime))
	c.current.Store(&calibration{count: begin, nanos: line.nanosAt(begin), mul: mul + step*uint64(late)})
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

// slope returns the nanoseconds per count between two samples, in the form of a calibration. It returns false if no
// working counter could have that slope.
func slope(a, b sample) (uint64, bool) {
	nanos, counts := uint64(b.at.Sub(a.at)), b.count-a.count
	if int64(nanos) <= 0 || int64(counts) <= 0 || nanos>>counterScale >= counts {
		return 0, false
	}
	mul, _ := bits.Div64(nanos>>counterScale, nanos<<(64-counterScale), counts)
	return mul, true
}
