package engine

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/tsc"
)

// A counterClock turns the time stamp counter into nanoseconds. There is one per
// process.
type counterClock struct {
	base    time.Time                   // when it was made
	origin  int64                       // base on the timeline
	current atomic.Pointer[calibration] // nil: the counter was given up

	mu   sync.Mutex // guards last
	last sample     // at the latest calibration
	// joint says that other processes count on the same timeline, by Go's clock or by counters of their own.
	joint bool
	// Once the counter was given up, Go's clock counts on from here.
	left      int64
	leftSince time.Time
}

// A calibration is a straight line from counts to nanoseconds. It is immutable;
// recalibrating publishes another.
type calibration struct {
	count uint64 // the counter where the line begins
	nanos int64  // the time there
	mul   uint64 // nanoseconds per count, as mul / 2^58
}

// nanosAt returns the time at a reading of the counter.
func (c *calibration) nanosAt(count uint64) int64 {
	d := count - c.count
	if int64(d) < 0 {
		d = 0 // another processor published the line a moment ago
	}
	hi, _ := bits.Mul64(d<<counterScale, c.mul)
	return c.nanos + int64(hi)
}

// counterScale makes nanoseconds per count a fraction below 1, for counters of
// 16 MHz and more. The line then holds for 2^58 counts, three years at 2.5 GHz.
const counterScale = 6

// shared is the process's counter clock, made when a limiter first wants it.
var shared struct {
	sync.Mutex
	clock *counterClock
}

// sharedCounter returns the process's counter clock, or nil if the kernel does not
// trust the counter, or if Go's clock does not show the counter's time: in a
// testing/synctest bubble it is another one.
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

// moved returns a counter clock whose timeline is so many nanoseconds ahead, and which other processes count by, too.
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
	// The bound ends the spin where Go's clock stands still.
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
	// calibrationTime is how long the first calibration spins. A sample is good
	// to some tens of nanoseconds, so the first line is good to some 20 parts in
	// a million; recalibrating refines it.
	calibrationTime = 2 * time.Millisecond
	// recalibrateEvery is the usual time between two calibrations, and
	// slewTime the least in which an error is worked off.
	recalibrateEvery = 10 * time.Second
	slewTime         = time.Minute
)

// tolerable reports whether the counter may have come off Go's clock by that much
// in the time elapsed: more than 10ms and 500 parts in a million, which is as
// fast as clocks are ever disciplined, means that it stopped, or was set, or that
// Go's clock is another one.
func tolerable(off, elapsed time.Duration) bool {
	return off.Abs() <= 10*time.Millisecond+elapsed.Abs()/2000
}

// nanos returns the time. It costs the reading and one multiplication.
func (c *counterClock) nanos() int64 {
	if line := c.current.Load(); line != nil {
		return line.nanosAt(tsc.Read())
	}
	return c.left + int64(time.Since(c.leftSince))
}

// recalibrate compares the counter with Go's clock and bends the line so that the
// two meet again, without a jump. If the counter is off by more than is tolerable
// it is never used again: from then on Go's clock counts on from the reading that the
// counter had. Calls within a second of another do nothing.
func (c *counterClock) recalibrate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	line, next := c.current.Load(), takeSample()
	elapsed := next.at.Sub(c.last.at)
	if line == nil || elapsed < time.Second {
		return
	}
	// Everything is taken at the sample: this goroutine may be suspended after it.
	late := next.at.Sub(c.base) - time.Duration(line.nanosAt(next.count)-c.origin)
	mul, ok := slope(c.last, next)
	c.last = next
	if !ok || !tolerable(late, elapsed) {
		c.left, c.leftSince = line.nanosAt(next.count), next.at // published by the store below
		if c.joint {
			c.left += int64(late) // what the others say
		}
		c.current.Store(nil)
		return
	}
	begin := tsc.Read()
	// The next calibration comes in about as long as this one did, so that is
	// the time to work the error off in: sooner would overshoot.
	step := mul / uint64(max(elapsed, slewTime))
	c.current.Store(&calibration{count: begin, nanos: line.nanosAt(begin), mul: mul + step*uint64(late)})
}

// A sample is one instant on both clocks.
type sample struct {
	count uint64
	at    time.Time
}

// takeSample reads the counter on both sides of Go's clock, several times, and
// keeps the tightest.
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

// slope returns nanoseconds per count between two samples, as a calibration holds
// them, and false if no counter in working order could give that.
func slope(a, b sample) (uint64, bool) {
	nanos, counts := uint64(b.at.Sub(a.at)), b.count-a.count
	if int64(nanos) <= 0 || int64(counts) <= 0 || nanos>>counterScale >= counts {
		return 0, false
	}
	mul, _ := bits.Div64(nanos>>counterScale, nanos<<(64-counterScale), counts)
	return mul, true
}
