package result

import (
	"math"
	"slices"
)

// A Summary of figures contains the median of the figures, an interval for the true median, and the median distance of
// a figure from the median.
type Summary struct {
	Median, Min, Max float64
	// Low and High are the bounds of an interval that contains the true median with a probability of at least 95 %.
	// With fewer than six rounds, they are 0 and infinity.
	Low, High float64
	// Spread is the median distance of a figure from the median, as a fraction of the median. It is scaled to the
	// standard deviation for normally distributed figures.
	Spread float64
	Rounds int
}

// Summarize returns the summary of figures. Without figures it is the zero Summary.
func Summarize(figures []float64) Summary {
	if len(figures) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(figures))
	s := Summary{Median: median(sorted), Min: sorted[0], Max: sorted[len(sorted)-1], Rounds: len(sorted)}
	s.Low, s.High = interval(sorted)
	away := make([]float64, len(sorted))
	for i, f := range sorted {
		away[i] = math.Abs(f - s.Median)
	}
	slices.Sort(away)
	const normal = 1.4826 // standard deviations per median distance, for a normal distribution
	if s.Median != 0 {
		s.Spread = normal * median(away) / math.Abs(s.Median)
	}
	return s
}

// interval returns two figures of the sorted list, equally far from its ends. The true median is between them with a
// probability of at least 95 %, and no closer two figures achieve this. This is the interval of the sign test, for any
// distribution: a figure is below the median as often as a coin falls on heads.
func interval(sorted []float64) (low, high float64) {
	n := len(sorted)
	low, high = 0, math.Inf(1)
	outside, heads := 0.0, math.Pow(0.5, float64(n)) // heads: the probability of exactly cut heads in n tosses
	for cut := 0; cut < n/2; cut++ {
		if outside += 2 * heads; outside > 0.05 {
			break
		}
		low, high = sorted[cut], sorted[n-1-cut]
		heads *= float64(n-cut) / float64(cut+1)
	}
	return low, high
}

func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Ratios returns a/b round by round. It leaves out rounds in which a or b is 0, because 0 means that there is no
// figure.
func Ratios(a, b []float64) []float64 {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if a[i] > 0 && b[i] > 0 {
			ratios = append(ratios, a[i]/b[i])
		}
	}
	return ratios
}
