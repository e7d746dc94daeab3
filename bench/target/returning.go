package target

import (
	"fmt"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/workload"
)

// returning returns the targets for keys that come back idle. They are compared with the same keys under a limit that
// never leaves them idle.
func returning(r *result.Run) (all []result.Target) {
	for _, row := range workload.Rows() {
		if !row.Returning {
			continue
		}
		for _, name := range []string{row.Name, row.Name + "/zipf"} {
			all = append(all, ratio{row: name, a: measure.WeirTSC, b: measure.WeirNeverIdle,
				text: "at most 1.1 x the same keys, never idle", limit: 1.1}.evaluate(r)...)
			all = append(all, found(r, name)...)
		}
	}
	return all
}

func found(r *result.Run, name string) []result.Target {
	const least = 0.99
	t := result.Target{Row: name, Target: "99 % of requests find the record of their key"}
	for _, row := range r.Rows {
		if row.Name == name && row.Found != nil && row.Found.Error == "" {
			t.Measured = fmt.Sprintf("%.2f %%", 100*row.Found.Fraction())
			return one(t, true, row.Found.Fraction() >= least, "other keys claimed the records meanwhile")
		}
	}
	return one(t, false, false, "")
}
