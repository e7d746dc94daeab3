//go:build stress && !explore

package word

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
)

// A Word is a 64-bit word that is accessed only by atomic operations. It works like sync/atomic.Uint64 and has the same
// size. But it lets other goroutines run before some operations. So a goroutine is often suspended between two
// operations. Otherwise this would happen only once in ten milliseconds.
type Word struct{ value atomic.Uint64 }

// Load returns the value.
func (w *Word) Load() uint64 {
	pause()
	return w.value.Load()
}

// Store writes the value.
func (w *Word) Store(value uint64) {
	pause()
	w.value.Store(value)
}

// Swap writes the value and returns the previous one.
func (w *Word) Swap(value uint64) uint64 {
	pause()
	return w.value.Swap(value)
}

// CompareAndSwap replaces the value by the second argument if the value equals the first argument. It reports whether
// it has replaced the value.
func (w *Word) CompareAndSwap(from, to uint64) bool {
	pause()
	return w.value.CompareAndSwap(from, to)
}

// Add adds delta and returns the sum.
func (w *Word) Add(delta uint64) uint64 {
	pause()
	return w.value.Add(delta)
}

// An Int64 is a word that has a signed number. It works like sync/atomic.Int64 and has the same size.
type Int64 struct{ value atomic.Int64 }

// Load returns the value.
func (i *Int64) Load() int64 {
	pause()
	return i.value.Load()
}

// Store writes the value.
func (i *Int64) Store(value int64) {
	pause()
	i.value.Store(value)
}

// pause suspends the goroutine before one operation in 32. Usually it lets each other goroutine run once, rarely up to
// 64 times. This finds faults that occur only if a slot gets a new owner several times between two operations. Each
// thread has its own random numbers, so that no shared word orders the goroutines.
func pause() {
	const interval, maxYields = 32, 64
	n := rand.Uint32()
	if n%interval != 0 {
		return
	}
	for range 1 << bits.TrailingZeros32(n/interval|maxYields) {
		runtime.Gosched()
	}
}
