package result

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSummarize(t *testing.T) {
	assert.Equal(t, Summary{}, Summarize(nil))
	assert.Equal(t, Summary{Median: 3, Min: 3, Max: 3, High: math.Inf(1), Rounds: 1}, Summarize([]float64{3}))
	assert.Equal(t, Summary{Median: 2.5, Min: 1, Max: 4, High: math.Inf(1), Spread: 1.4826 * 1 / 2.5, Rounds: 4},
		Summarize([]float64{4, 1, 3, 2}))

	figures := []float64{10, 11, 9, 10, 500}
	s := Summarize(figures)
	assert.Equal(t, 10.0, s.Median, "one figure that is far out moves neither the median")
	assert.InDelta(t, 0.14826, s.Spread, 1e-9, "nor the spread")
	assert.Equal(t, []float64{10, 11, 9, 10, 500}, figures, "the figures stay as they are")
}

// The interval's ends equal the ends in published tables of the sign test.
func TestTheInterval(t *testing.T) {
	for n, cut := range map[int]int{5: -1, 6: 0, 8: 0, 9: 1, 12: 2, 15: 3, 20: 5, 25: 7, 30: 9} {
		figures := make([]float64, n)
		for i := range figures {
			figures[i] = float64(i)
		}
		s := Summarize(figures)
		if cut < 0 {
			assert.Equal(t, []float64{0, math.Inf(1)}, []float64{s.Low, s.High}, n)
			continue
		}
		assert.Equal(t, []float64{float64(cut), float64(n - 1 - cut)}, []float64{s.Low, s.High}, n)
	}
}

func TestRatios(t *testing.T) {
	assert.Equal(t, []float64{2, 0.5}, Ratios([]float64{4, 1, 7, 0}, []float64{2, 2, 0, 5}),
		"rounds without a figure are left out")
	assert.Equal(t, []float64{3}, Ratios([]float64{3, 9}, []float64{1}))
	assert.Empty(t, Ratios(nil, []float64{1}))
}
