package overshoot

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func ones(times ...int64) (asked []request) {
	for _, at := range times {
		asked = append(asked, request{at, 1})
	}
	return asked
}

func TestExact(t *testing.T) {
	s := Scenario{Rate: 1000, Burst: 2}
	assert.EqualValues(t, 2, exact(s, ones(0, 0, 0, 0)))
	assert.EqualValues(t, 3, exact(s, ones(1e6, 0, 0, 0)), "in whatever order")
	assert.EqualValues(t, 3, exact(s, []request{{0, 1}, {0, 2}, {1e6, 2}}), "what is refused costs nothing")
	assert.EqualValues(t, 4, exact(s, ones(0, 0, 1e9, 1e9, 1e9)), "never more than the burst at once")
}

func TestExactWindows(t *testing.T) {
	s := Scenario{Rate: 2}
	assert.EqualValues(t, 3, exactWindows(s, ones(0, 0, 999_999_999, 1e9)))
}

func TestWhatIsRefusedFalselyIsWhatAnExactLimiterAdmits(t *testing.T) {
	s := Scenario{Rate: 2, Burst: 2}
	nodes := []NodeResult{{Offered: 4, Admitted: 2, End: 1e9, Begins: []int64{0, 0, 0, 1e9}}}
	r := summary(s, "lease", nodes)
	assert.EqualValues(t, 3, r.Exact)
	assert.InDelta(t, 25, r.Falsely, 1e-9)
	assert.InDelta(t, 200.0/3, r.OfExact, 1e-9)
	assert.InDelta(t, 100, r.OfRate, 1e-9)
	assert.EqualValues(t, 2+2+Overdraft, r.Bound)
	nodes[0].Admitted = 4 // more than the bound
	r = summary(s, "window 10ms", nodes)
	assert.Zero(t, r.Falsely)
	assert.InDelta(t, 400.0/3, r.OfExact, 1e-9, "two windows, and no burst")
	assert.Zero(t, r.Bound)
}
