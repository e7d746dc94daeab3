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
		if stacks := await(patience); len(stacks) > 0 {
			fmt.Fprintf(os.Stderr, "leakcheck: %d goroutines are left:\n\n%s\n", len(stacks), strings.Join(stacks, "\n\n"))
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
		stacks := goroutineStacks()
		if len(stacks) == 0 || time.Now().After(deadline) {
			return stacks
		}
		time.Sleep(wait)
	}
}

// goroutineStacks returns the stack of every goroutine, except the calling goroutine and the goroutines of the packages
// testing and os/signal.
func goroutineStacks() (stacks []string) {
	buffer := make([]byte, 1<<16)
	for n := runtime.Stack(buffer, true); ; n = runtime.Stack(buffer, true) {
		if n < len(buffer) {
			buffer = buffer[:n]
			break
		}
		buffer = make([]byte, 2*len(buffer))
	}
	// The calling goroutine comes first.
	for _, stack := range strings.Split(strings.TrimSpace(string(buffer)), "\n\n")[1:] {
		_, frames, _ := strings.Cut(stack, "\n")
		if !strings.HasPrefix(frames, "testing.") && !strings.HasPrefix(frames, "os/signal.") &&
			!strings.Contains(frames, "runtime.ensureSigM") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
