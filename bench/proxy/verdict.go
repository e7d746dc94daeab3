package proxy

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/bench/proxy/server"
	"github.com/weir-go/weir/bench/result"
)

// Target is the least ratio of requests/s with weir's limiter to those without.
const Target = 0.97

// target says whether weir has reached Target, or that the rounds differ too much to tell. A median alone would reach
// it by chance half of the time when the effect is small against the noise.
func target(r *Run) string {
	said := "target: not measured"
	r.pairs(func(name string, without, with *Row) {
		if name != server.WeirName {
			return
		}
		ratios := result.Ratios(with.figures(perSecond), without.figures(perSecond))
		said = fmt.Sprintf("target: %s with/without %.3f, want at least %.2f: ", name, result.Summarize(ratios).Median,
			Target)
		low, high, ok := interval(ratios)
		switch {
		case !ok:
			said += "undecided, fewer than 6 rounds tell nothing"
			return
		case low >= Target:
			said += "met"
		case high < Target:
			said += "missed"
		default:
			said += "undecided"
		}
		said += fmt.Sprintf(" (95 %% interval of the median %.3f - %.3f)", low, high)
	})
	return said
}

// interval returns the bounds between which the median lies with a confidence of at least 95 %,
// whatever the distribution: the k-th figure from below and from above, where k is the largest for which
// fewer than k of so many coin tosses are heads with a probability of at most 2.5 %. Fewer than 6
// figures have no such bounds.
func interval(figures []float64) (low, high float64, ok bool) {
	const tail = 0.025
	n, k := len(figures), 0
	sum, tosses := 0.0, 1.0 // tosses: n over k, divided by 2^n
	for range n {
		tosses /= 2
	}
	for sum+tosses <= tail && k < n/2 {
		sum += tosses
		tosses *= float64(n-k) / float64(k+1)
		k++
	}
	if k == 0 || n == 0 {
		return 0, 0, false
	}
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[k-1], sorted[n-k], true
}
