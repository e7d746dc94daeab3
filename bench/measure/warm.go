package measure

import (
	"runtime"

	"github.com/weir-go/weir/bench/workload"
)

// Warm asks for every key that is there before the clock starts once, so that it is there, its
// memory is touched, and a row that refuses will.
func Warm(d Decider, before *workload.Stream) {
	if b, ok := d.(interface{ Before() Decider }); ok {
		d = b.Before()
	}
	if before.Len() > 100_000 { // with all processors: this is not measured
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	}
	Once(d, before)
	runtime.GC()
}
