package experiment

import (
	"runtime"
	"slices"
	"time"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/workload"
)

// Empty is a process without a limiter.
const Empty = "empty process"

// CollectOf names the subject that holds ten million keys while the garbage collector runs.
type CollectOf struct {
	Subject string `json:"subject"` // or Empty
}

// A Collected is the times that full collections took.
type Collected struct{ Nanos []int64 }

// MeasureCollect measures full collections of garbage, as runtime.GC does them.
func MeasureCollect(of CollectOf) (Collected, error) {
	var d measure.Decider
	if of.Subject != Empty {
		row, err := workload.Find("uniform-10m")
		if err != nil {
			return Collected{}, err
		}
		before, _ := row.Load()
		var release func()
		if d, release, err = measure.Open(&row, of.Subject, before); err != nil {
			return Collected{}, err
		}
		defer release()
		measure.Once(d, before)
		// Text that the limiter does not hold is garbage from here on.
	}
	runtime.GC()
	var c Collected
	for range 15 {
		began := time.Now()
		runtime.GC()
		c.Nanos = append(c.Nanos, int64(time.Since(began)))
	}
	runtime.KeepAlive(d)
	slices.Sort(c.Nanos)
	return c, nil
}
