// Package testalloc counts allocations of calls, for tests of calls that must not allocate.
package testalloc

import (
	"math"
	"runtime"
)

const (
	rounds = 200 // short rounds, so that other goroutines allocate in few of them
	calls  = 10  // calls in a round
)

// PerCall returns how many objects a call of f allocates, on average, after a first call that is not counted. The
// runtime counts the allocations of all goroutines, such as those of a connection that ends, or of cleanups for
// limiters of earlier tests. So PerCall counts in many short rounds, and returns the result of the round with the
// fewest allocations. The allocations of f are included, because they occur in each round.
//
// PerCall does not use testing.AllocsPerRun. That function also counts the allocations of other goroutines, and rounds
// half an allocation per call down to none.
func PerCall(f func()) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	f()
	minimum := math.Inf(1)
	for round := 0; round < rounds && minimum > 0; round++ {
		before := objects()
		for range calls {
			f()
		}
		minimum = min(minimum, float64(objects()-before)/calls)
	}
	return minimum
}

func objects() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}
