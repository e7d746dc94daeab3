//go:build explore

package explore

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"
)

var large = flag.Bool("large", false, "explore the larger scenarios too")

// TestScenarios (I1, I2, I3, I4, I5, I7, I9) explores every scenario and prints what was
// explored.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios {
		if s.large && !*large {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			begin := time.Now()
			r, err := explore(s)
			result := "ok"
			if err != nil {
				result = "BROKEN"
			}
			t.Logf("%-6s %-55s %9d states %9d stops %9d schedules, the longest %3d steps, %v",
				result, s.name, r.states, r.stops, r.schedules, r.longest, time.Since(begin).Round(time.Millisecond))
			if err == nil {
				return
			}
			t.Errorf("broken: %v", err)
			if f := (failure{}); errors.As(err, &f) {
				t.Log("the schedule:\n" + strings.Join(f.schedule, "\n"))
			}
		})
	}
}
