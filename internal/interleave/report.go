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

var explored int

// isInPart reports whether the next scenario is in the part that the environment variable WEIR_EXPLORE names. If the
// variable is not set, every scenario is. A process can have only one scheduler, so several processes share the
// scenarios, such as the parts 1/2 and 2/2. WEIR_EXPLORE is not a flag, because the go command does not cache the
// result of a test that has its own flags.
func isInPart(t *testing.T) bool {
	part, parts := 1, 1
	if text := os.Getenv("WEIR_EXPLORE"); text != "" {
		before, after, _ := strings.Cut(text, "/")
		var err, err2 error
		part, err = strconv.Atoi(before)
		parts, err2 = strconv.Atoi(after)
		if err != nil || err2 != nil || part < 1 || part > parts {
			t.Fatalf("WEIR_EXPLORE=%q: want 1/2, the first of two parts, for example", text)
		}
	}
	explored++
	return (explored-1)%parts == part-1
}

// Endless reports whether a test should also explore scenarios that take hours. If such a scenario catches a mutant, it
// catches the mutant much sooner.
func Endless() bool { return *endless }

// Test explores a scenario as a test with a name. It prints a line about the explored scenario, or about the broken
// rule and its schedule. It explores a large scenario only with -large.
func Test(t *testing.T, name string, isLarge bool, explore func() (Report, error)) {
	if isLarge && !*large || !isInPart(t) {
		return
	}
	t.Run(name, func(t *testing.T) {
		begin := time.Now()
		r, err := explore()
		result := "ok"
		if r.Partial {
			result = "partly"
		}
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
