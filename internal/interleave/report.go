//go:build explore

package interleave

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"
)

var large = flag.Bool("large", false, "explore the larger scenarios too")

var endless = flag.Bool("endless", false, "explore also scenarios that take hours, in which mutants are found")

// Endless reports whether a test is to explore also what takes hours: a mutant is found in it sooner.
func Endless() bool { return *endless }

// Test explores a scenario as a test of that name and prints a line of what was explored, or what
// is broken and by which schedule. One that is large is explored with -large only.
func Test(t *testing.T, name string, isLarge bool, explore func() (Report, error)) {
	if isLarge && !*large {
		return
	}
	t.Run(name, func(t *testing.T) {
		begin := time.Now()
		r, err := explore()
		result := "ok"
		if err != nil {
			result = "BROKEN"
		}
		t.Logf("%-6s %-55s %9d states %9d stops %9d schedules, the longest %3d steps, %v",
			result, name, r.States, r.Stops, r.Schedules, r.Longest, time.Since(begin).Round(time.Millisecond))
		if err == nil {
			return
		}
		t.Errorf("broken: %v", err)
		if f := (Failure{}); errors.As(err, &f) {
			t.Log("the schedule:\n" + strings.Join(f.Schedule, "\n"))
		}
	})
}
