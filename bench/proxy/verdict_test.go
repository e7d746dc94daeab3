package proxy

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/bench/proxy/server"
)

// withRatios has a row without a limiter at 1000 requests/s, and one with it.
func withRatios(ratios ...float64) *Run {
	weir := server.Weir("weir")
	without, with := Row{Server: weir, Mode: server.Without}, Row{Server: weir, Mode: server.With}
	for _, ratio := range ratios {
		without.Rounds = append(without.Rounds, Round{Load: Load{PerSecond: 1000}})
		with.Rounds = append(with.Rounds, Round{Load: Load{PerSecond: 1000 * ratio}})
	}
	return &Run{Rows: []Row{without, with}}
}

func TestTargetIsDecidedOnlyBeyondTheNoise(t *testing.T) {
	for want, ratios := range map[string][]float64{
		"0.990, want at least 0.97: met (95 % interval of the median 0.980 - 1.000)": {0.98, 0.99, 0.99, 0.99, 0.99, 1},
		"0.950, want at least 0.97: missed (95 % interval of the median 0.940 - 0.960)": {
			0.95, 0.94, 0.95, 0.96, 0.95, 0.95},
		"0.994, want at least 0.97: undecided (95 % interval of the median 0.933 - 1.511)": {
			0.994, 1.511, 0.933, 0.994, 0.994, 0.994},
		"1.000, want at least 0.97: undecided, fewer than 6 rounds tell nothing": {1, 1, 1, 1, 1},
	} {
		assert.Equal(t, "target: weir with/without "+want, target(withRatios(ratios...)))
	}
	r := withRatios(1)
	r.Rows = r.Rows[:1]
	assert.Equal(t, "target: not measured", target(r))
}

// TestIntervalIsThatOfTheSignTest compares with the tables of the sign test: the ranks for 95 %.
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
