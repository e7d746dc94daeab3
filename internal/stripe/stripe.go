// Package stripe counts events that many goroutines report.
package stripe

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
)

// Kinds is how many kinds of events Counters count.
const Kinds = 8

// Counters count events of several kinds. Make them with [New]. All methods may be called concurrently.
type Counters struct{ stripes []stripe }

// A stripe is a part of the counters. Processors fetch cache lines in pairs. A stripe fills two cache lines, so that no
// two stripes share a pair of lines.
type stripe struct {
	counts [Kinds]atomic.Uint64
	_      [128 - Kinds*8]byte
}

// New returns counters at 0. They have a stripe of 128 bytes for each processor that Go uses. The number of stripes is
// rounded up to a power of two, and is at most 64.
func New() *Counters {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < 64 {
		n *= 2
	}
	return &Counters{stripes: make([]stripe, n)}
}

// Add counts an event of a kind, a number below [Kinds]. It picks a stripe at random, so goroutines on several
// processors seldom write the same line. It does not block and does not allocate.
func (c *Counters) Add(kind int) {
	i := 0
	if len(c.stripes) > 1 {
		i = int(rand.Uint32()) & (len(c.stripes) - 1)
	}
	c.stripes[i].counts[kind].Add(1)
}

// Totals returns how many events of each kind were counted. Each number is exact and never falls, but the numbers are
// not read at one instant.
func (c *Counters) Totals() (t [Kinds]uint64) {
	for i := range c.stripes {
		for kind := range t {
			t[kind] += c.stripes[i].counts[kind].Load()
		}
	}
	return t
}
