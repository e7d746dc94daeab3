package proxy

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/bench/proxy/server"
	"github.com/weir-go/weir/bench/result"
)

// A target is a bound on a ratio: a figure of one row divided by the same figure of another row.
type target struct {
	name  string
	of    func(Round) float64
	a, b  rowName
	bound float64
	most  bool // the bound is the largest ratio that meets the target; if false, the smallest
}

type rowName struct {
	server string
	mode   server.Mode
}

// targets are the targets of weir. For processor time, weir with its limiter is compared with other servers without a
// limiter.
var targets = []target{
	{"requests/s of weir with/without", perSecond, rowName{server.WeirName, server.With},
		rowName{server.WeirName, server.Without}, 0.97, false},
	{"processor time of weir/" + server.BareName, cpu, rowName{server.WeirName, server.With},
		rowName{server.BareName, server.Without}, 1.05, true},
	{"processor time of weir/" + server.CaddyName, cpu, rowName{server.WeirName, server.With},
		rowName{server.CaddyName, server.Without}, 1, true},
}

// verdict says whether the turns of a run meet the target, or differ too much to decide. If the effect is small, the
// median alone would meet the target by chance half of the time.
func (t target) verdict(r *Run) string {
	a, b := find(r.Turns, t.a), find(r.Turns, t.b)
	if a == nil || b == nil {
		return fmt.Sprintf("target: %s: not measured", t.name)
	}
	want := "at least"
	if t.most {
		want = "at most"
	}
	ratios := result.Ratios(a.figures(t.of), b.figures(t.of))
	said := fmt.Sprintf("target: %s %.3f, want %s %.2f: ", t.name, result.Summarize(ratios).Median, want, t.bound)
	low, high, ok := interval(ratios)
	if !ok {
		return said + "undecided, fewer than 6 turns tell nothing"
	}
	is := "undecided"
	switch above, below := low >= t.bound, high <= t.bound; {
	case above && !t.most, below && t.most:
		is = "met"
	case above, below:
		is = "missed"
	}
	return fmt.Sprintf("%s%s (95 %% interval of the median %.3f - %.3f)", said, is, low, high)
}

// interval returns bounds of the median with a confidence of at least 95 %, for any distribution. The bounds are the
// k-th smallest and the k-th largest of n figures. The number k is the largest for which n coin tosses have fewer than
// k heads with a probability of at most 2.5 %. Fewer than 6 figures have no bounds.
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
