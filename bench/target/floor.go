package target

import (
	"slices"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/workload"
)

// sameClock returns the targets that compare weir with the floor with the same clock, except the targets in the list
// ratios.
func sameClock(r *result.Run) (all []result.Target) {
	for _, row := range workload.Rows() {
		for _, clock := range clocks {
			c := ratio{row: row.Name, a: clock.weir, b: clock.floor, limit: 1.5,
				text: clock.name + " clock: at most 1.5 x the floor with the same clock"}
			if named(c) || !on(&row, c) {
				continue
			}
			all = append(all, c.evaluate(r)...)
		}
	}
	return all
}

var clocks = []struct{ name, weir, floor string }{
	{"TSC", measure.WeirTSC, measure.FloorTSC},
	{"coarse", measure.WeirCoarse, measure.FloorCoarse},
	{"precise", measure.WeirPrecise, measure.FloorPrecise},
}

// The function named reports whether the list ratios has a target for the row and the subjects of c.
func named(c ratio) bool {
	for _, other := range ratios {
		if other.row == c.row && other.a == c.a && other.b == c.b {
			return true
		}
	}
	return false
}

func on(row *workload.Row, c ratio) bool {
	subjects := measure.Of(row)
	return slices.Contains(subjects, c.a) && slices.Contains(subjects, c.b)
}
