//go:build explore

package explore

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"
)

var large = flag.Bool("explore.large", false, "explore the larger scenarios too")

// TestScenarios explores every scenario and prints what was explored.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios {
		if s.large && !*large {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			begin := time.Now()
			r, err := explore(s)
			t.Logf("%9d states %10d schedules %11d steps, the longest %3d, in %v",
				r.states, r.schedules, r.steps, r.longest, time.Since(begin).Round(time.Millisecond))
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
