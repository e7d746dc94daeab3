package measure

import (
	"runtime"

	"github.com/weir-go/weir/bench/workload"
)

// Warm makes one request for every key of the stream, so that the keys are in the table. On a row that refuses, the
// keys have no token left.
func Warm(d Decider, stream *workload.Stream) {
	if b, ok := d.(interface{ Before() Decider }); ok {
		d = b.Before()
	}
	if stream.Len() > 100_000 { // with all processors, because this is not measured
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	}
	Once(d, stream)
	runtime.GC()
}
