// Package experiment contains the measurements. Each measurement runs in a separate process.
package experiment

import "github.com/weir-go/weir/bench/child"

// These are the names of the measurements.
const (
	Rate    = "rate"
	Memory  = "memory"
	Collect = "collect"
	Latency = "latency"
	Table   = "table"
	Calls   = "calls"
	Found   = "found"
	Touched = "touched"
)

// All returns all measurements by name.
func All() map[string]child.Work {
	return map[string]child.Work{
		Rate:    child.Of(MeasureRate),
		Memory:  child.Of(MeasureMemory),
		Collect: child.Of(MeasureCollect),
		Latency: child.Of(MeasureLatency),
		Table:   child.Of(MeasureTable),
		Calls:   child.Of(MeasureCalls),
		Found:   child.Of(MeasureFound),
		Touched: child.Of(MeasureTouched),
	}
}
