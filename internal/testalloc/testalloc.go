// Package testalloc counts what calls allocate, for tests of calls that shall not.
package testalloc

import (
	"math"
	"runtime"
)

const (
	rounds = 200 // which are short, so that others allocate in few of them
	calls  = 10  // of a round
)

// PerCall returns how many objects a call of f allocates, on average, after a first call that is not counted. The
// runtime counts what all goroutines allocate, and others may be at it: a connection that ends, limiters of earlier
// tests that the collector has found. So it is the least of many short rounds: a call that allocates does in each of
// them.
//
// It is used in the place of testing.AllocsPerRun, which counts the others too, and takes half an allocation for none.
func PerCall(f func()) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	f()
	least := math.Inf(1)
	for round := 0; round < rounds && least > 0; round++ {
		before := objects()
		for range calls {
			f()
		}
		least = min(least, float64(objects()-before)/calls)
	}
	return least
}

// objects is how many objects the program has allocated.
func objects() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}
