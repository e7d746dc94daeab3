// Package testrace tells tests whether the race detector is on.
package testrace

import "testing"

// OneGoroutine skips a test if the race detector is on. It is for long tests in which every limiter gets its calls from
// one goroutine, when other tests make such calls from several.
func OneGoroutine(t testing.TB) {
	if Enabled {
		t.Skip("calls come from one goroutine: other tests are for the race detector")
	}
}
