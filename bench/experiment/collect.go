package experiment

import (
	"runtime"
	"slices"
	"time"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/workload"
)

// Empty names a process without a limiter.
const Empty = "empty process"

// CollectOf names the subject of MeasureCollect. The subject has ten million keys while the garbage collector runs.
type CollectOf struct {
	Subject string `json:"subject"` // or Empty
}

// A Collected contains the times of full collections.
type Collected struct{ Nanos []int64 }

// MeasureCollect measures full garbage collections, as runtime.GC makes them.
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
		// From here on, the text of the keys is garbage, unless the limiter keeps it.
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
