package admin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestTimesOfTheLastMinute: only requests of the last minute count for the times.
func TestTimesOfTheLastMinute(t *testing.T) {
	var r requestRates
	now, total := time.Unix(1e9, 0), Requests{}
	tick := func(fast, slow, endless uint64) *timesView {
		counts := append([]uint64{0, 0, 0}, total.Times.Counts...)
		counts = counts[len(counts)-3:]
		total.Times = Times{Bounds: []float64{0.1, 0.3}, Counts: []uint64{counts[0] + fast, counts[1] + fast + slow,
			counts[2] + fast + slow + endless}}
		now = now.Add(time.Second)
		r.tick(now, total)
		return r.latest().Times
	}
	assert.Nil(t, tick(1000, 0, 0), "what was before is of no minute")
	assert.Equal(t, &timesView{50, 95, 99, 300}, tick(100, 0, 0))
	assert.Equal(t, &timesView{100, 280, 296, 300}, tick(0, 100, 0), "half of 200, and 90 and 98 of 100 above")
	for range minute - 2 {
		assert.NotNil(t, tick(0, 0, 0))
	}
	assert.Equal(t, &timesView{200, 290, 298, 300}, tick(0, 0, 0), "the fast ones are more than a minute ago")
	assert.Nil(t, tick(0, 0, 0))
	assert.Equal(t, &timesView{300, 300, 300, 300}, tick(0, 0, 7), "above the last bound")
}
