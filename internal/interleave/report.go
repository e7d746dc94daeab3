//go:build explore

package interleave

import (
	"errors"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

var large = flag.Bool("large", false, "explore the larger scenarios too")

var endless = flag.Bool("endless", false, "explore also scenarios that take hours, in which mutants are found")

// explored counts the scenarios of this process.
var explored int

// isInPart reports whether the next scenario is in the part that WEIR_EXPLORE names, such as 1/2, for one process, and
// 2/2, for another: a scheduler has a process for itself. All are where it is not set. It is no flag, because the go
// command does not keep the result of a test that has one of its own.
func isInPart(t *testing.T) bool {
	part, of := 1, 1
	if text := os.Getenv("WEIR_EXPLORE"); text != "" {
		before, after, _ := strings.Cut(text, "/")
		var err, err2 error
		part, err = strconv.Atoi(before)
		of, err2 = strconv.Atoi(after)
		if err != nil || err2 != nil || part < 1 || part > of {
			t.Fatalf("WEIR_EXPLORE=%q: want 1/2, the first of two parts, for example", text)
		}
	}
	explored++
	return (explored-1)%of == part-1
}

// Endless reports whether a test is to explore also what takes hours: a mutant is found in it sooner.
func Endless() bool { return *endless }

// Test explores a scenario as a test of that name and prints a line of what was explored, or what
// is broken and by which schedule. One that is large is explored with -large only.
func Test(t *testing.T, name string, isLarge bool, explore func() (Report, error)) {
	if isLarge && !*large || !isInPart(t) {
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
