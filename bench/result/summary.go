package result

import (
	"math"
	"slices"
)

// A Summary of figures is their median, their range, and how far half of them are from the median.
type Summary struct {
	Median, Min, Max float64
	// Spread is the median distance from the median, as a fraction of it, scaled so that it is the
	// standard deviation where the figures are normally distributed.
	Spread float64
	Rounds int
}

// Summarize returns the summary of figures. Without any it is zero.
func Summarize(figures []float64) Summary {
	if len(figures) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(figures))
	s := Summary{Median: median(sorted), Min: sorted[0], Max: sorted[len(sorted)-1], Rounds: len(sorted)}
	away := make([]float64, len(sorted))
	for i, f := range sorted {
		away[i] = math.Abs(f - s.Median)
	}
	slices.Sort(away)
	const normal = 1.4826 // standard deviations in a median distance
	if s.Median != 0 {
		s.Spread = normal * median(away) / math.Abs(s.Median)
	}
	return s
}

func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Ratios returns a/b round by round. Rounds in which either has no figure, which is 0, are
// left out.
func Ratios(a, b []float64) []float64 {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if a[i] > 0 && b[i] > 0 {
			ratios = append(ratios, a[i]/b[i])
		}
	}
	return ratios
}
