package floor

import (
	"unsafe"
)

func records(memory []byte) []record {
	return unsafe.Slice((*record)(unsafe.Pointer(&memory[0])), len(memory)/16)
}

// Random is a table for compare-and-swaps on random words. In a large table, the words are not in any cache.
type Random struct{ table []record }

// NewRandom returns a table in memory from Map. The size of the memory must be a power of two.
func NewRandom(memory []byte) Random { return Random{records(memory)} }

// Decide does n operations on words that seed determines, and returns how many succeeded. As for a limiter's requests,
// the position of an operation does not depend on the result of the previous operation.
func (r Random) Decide(seed uint64, n int) (done int) {
	mask := uint64(len(r.table) - 1)
	for range n {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		w := &r.table[seed*0x9e3779b97f4a7c15>>20&mask].state
		if s := w.Load(); w.CompareAndSwap(s, s+1) {
			done++
		}
	}
	return done
}
