package shard

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWhatACallGoesByWhenItsClockIsAhead (R23): a call whose clock is ahead of the machine's clock uses the machine's
// clock, but a time that the caller has supplied stays.
func TestWhatACallGoesByWhenItsClockIsAhead(t *testing.T) {
	for name, c := range map[string]struct{ now, clock, machine, wantNow, wantClock int64 }{
		"its clock is ahead":                  {100, 100, 50, 50, 50},
		"its clock is not ahead":              {100, 100, 200, 100, 100},
		"the caller supplied an earlier time": {20, 100, 50, 20, 50},
		"the caller supplied a time ahead":    {150, 100, 50, 150, 50},
	} {
		table := &Table{}
		table.clock = func() int64 { return c.machine }
		now, clock := table.trustedTimes(c.now, c.clock)
		assert.Equal(t, []int64{c.wantNow, c.wantClock}, []int64{now, clock}, name)
	}
}
