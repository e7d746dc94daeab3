// Package leakcheck fails the tests of a package if they leave goroutines behind. It replaces go.uber.org/goleak,
// because programs that import the root module should not require another module only for tests. Also, goleak waits
// less than half a second for goroutines to end. On a busy machine, this is too short.
package leakcheck

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long a goroutine may take to end after the last test. Only a leak takes this long.
const patience = 10 * time.Second

// Main runs the tests and exits with their status. If all tests have passed and goroutines are left, it exits with
// status 1. Call Main in TestMain.
func Main(m *testing.M) {
	status := m.Run()
	if status == 0 {
		if left := await(patience); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "leakcheck: %d goroutines are left:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
			status = 1
		}
	}
	os.Exit(status)
}

// await returns the stacks of the goroutines that still run after the given time. It returns earlier if all of them
// have ended.
func await(patience time.Duration) []string {
	deadline := time.Now().Add(patience)
	for wait := time.Microsecond; ; wait = min(2*wait, 100*time.Millisecond) {
		left := others()
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(wait)
	}
}

// The function others returns the stack of every goroutine, except the calling goroutine and the goroutines of package
// testing and os/signal.
func others() (stacks []string) {
	all := make([]byte, 1<<16)
	for n := runtime.Stack(all, true); ; n = runtime.Stack(all, true) {
		if n < len(all) {
			all = all[:n]
			break
		}
		all = make([]byte, 2*len(all))
	}
	// The calling goroutine comes first.
	for _, stack := range strings.Split(strings.TrimSpace(string(all)), "\n\n")[1:] {
		_, frames, _ := strings.Cut(stack, "\n")
		if !strings.HasPrefix(frames, "testing.") && !strings.HasPrefix(frames, "os/signal.") &&
			!strings.Contains(frames, "runtime.ensureSigM") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
