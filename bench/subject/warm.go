package subject

import (
	"runtime"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/workload"
)

// Warm asks for every key that is there before the clock starts once, so that it is there, its
// memory is touched, and a row that refuses will.
func Warm(d measure.Decider, before *workload.Stream) {
	if b, ok := d.(interface{ Before() measure.Decider }); ok {
		d = b.Before()
	}
	if before.Len() > 100_000 { // with all processors: this is not measured
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	}
	measure.Once(d, before)
	runtime.GC()
}
