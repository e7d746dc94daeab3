// Package testrace leaves out tests in which the race detector cannot find anything.
package testrace

import "testing"

// OneGoroutine skips a test if the race detector is on. It is for long tests that make all their calls from one
// goroutine, when other tests make such calls from several.
func OneGoroutine(t testing.TB) {
	if Enabled {
		t.Skip("one goroutine: the race detector cannot find anything")
	}
}
