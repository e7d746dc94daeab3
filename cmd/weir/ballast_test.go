package main

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestTheBallastGivesWay: if GOGC or GOMEMLIMIT is set, there is no ballast, and the collector works as Go documents.
func TestTheBallastGivesWay(t *testing.T) {
	for _, c := range []struct {
		gogc, limit string
		ballast     bool
	}{{"", "", true}, {"200", "", false}, {"", "64MiB", false}} {
		t.Setenv("GOGC", c.gogc)
		t.Setenv("GOMEMLIMIT", c.limit)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		drop := loadBallast()
		runtime.ReadMemStats(&after)
		drop()
		assert.Equal(t, c.ballast, after.TotalAlloc-before.TotalAlloc >= ballastBytes, c)
	}
}
