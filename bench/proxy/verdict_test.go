package proxy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/bench/proxy/server"
)

// withRatios returns a run with two rows, whose requests/s have the given ratios, one in each turn.
func withRatios(t target, ratios ...float64) *Run {
	a, b := Row{Server: &server.Server{Name: t.a.server}, Mode: t.a.mode}, Row{Server: &server.Server{Name: t.b.server}, Mode: t.b.mode}
	for _, ratio := range ratios {
		b.Rounds = append(b.Rounds, Round{Load: Load{Requests: 1, PerSecond: 1000}, CPU: 1000})
		a.Rounds = append(a.Rounds, Round{Load: Load{Requests: 1, PerSecond: 1000 * ratio}, CPU: time.Duration(1000 * ratio)})
	}
	return &Run{Turns: []Row{a, b}}
}

func TestTargetIsDecidedOnlyBeyondTheNoise(t *testing.T) {
	least, most := targets[0], targets[1]
	for want, c := range map[string]struct {
		target target
		ratios []float64
	}{
		"0.990, want at least 0.97: met (95 % interval of the median 0.980 - 1.000)": {
			least, []float64{0.98, 0.99, 0.99, 0.99, 0.99, 1}},
		"0.950, want at least 0.97: missed (95 % interval of the median 0.940 - 0.960)": {
			least, []float64{0.95, 0.94, 0.95, 0.96, 0.95, 0.95}},
		"0.994, want at least 0.97: undecided (95 % interval of the median 0.933 - 1.511)": {
			least, []float64{0.994, 1.511, 0.933, 0.994, 0.994, 0.994}},
		"1.000, want at least 0.97: undecided, fewer than 6 turns tell nothing": {least, []float64{1, 1, 1, 1, 1}},
		"1.020, want at most 1.05: met (95 % interval of the median 1.010 - 1.040)": {
			most, []float64{1.02, 1.04, 1.01, 1.02, 1.02, 1.02}},
		"1.070, want at most 1.05: missed (95 % interval of the median 1.060 - 1.080)": {
			most, []float64{1.07, 1.06, 1.08, 1.07, 1.07, 1.07}},
		"1.040, want at most 1.05: undecided (95 % interval of the median 1.030 - 1.060)": {
			most, []float64{1.04, 1.06, 1.03, 1.04, 1.04, 1.04}},
	} {
		assert.Equal(t, "target: "+c.target.name+" "+want, c.target.verdict(withRatios(c.target, c.ratios...)))
	}
	r := withRatios(least, 1)
	r.Turns = r.Turns[:1]
	assert.Equal(t, "target: requests/s of weir with/without: not measured", least.verdict(r))
}

// TestIntervalIsThatOfTheSignTest: the interval's ranks equal the ranks in published tables of the sign test for 95 %.
func TestIntervalIsThatOfTheSignTest(t *testing.T) {
	for n, rank := range map[int]int{6: 1, 8: 1, 9: 2, 11: 2, 12: 3, 15: 4, 20: 6, 25: 8, 30: 10, 40: 14, 1000: 469} {
		figures := make([]float64, n)
		for i := range figures {
			figures[i] = float64(n - i)
		}
		low, high, ok := interval(figures)
		assert.True(t, ok, n)
		assert.Equal(t, float64(rank), low, "of %d", n)
		assert.Equal(t, float64(n+1-rank), high, "of %d", n)
	}
	for n := range 6 {
		_, _, ok := interval(make([]float64, n))
		assert.False(t, ok, n)
	}
}
