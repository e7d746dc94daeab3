package target

import (
	"fmt"
	"strings"

	"github.com/aclements/go-moremath/mathx"
	"github.com/aclements/go-moremath/stats"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/result"
)

// significance is the probability below which a difference is not taken for chance. The target asks for all peers at
// once, so it is not divided by their number: one that is not slower is enough to miss it.
const significance = 0.05

// faster is the target against every peer on every row, on every number of processors. Peers that do not tell keys
// apart do less, and are there for reference.
func faster(r *result.Run) (all []result.Target) {
	const text = "faster than every library that tells keys apart, p < 0.05"
	for i := range r.Rows {
		row := &r.Rows[i]
		weir, ok := row.Entry(measure.WeirTSC)
		if !ok || weir.Cannot != "" {
			weir, ok = row.Entry(measure.WeirPrecise)
		}
		if !ok || weir.Error != "" || weir.Cannot != "" {
			continue
		}
		var rivals []rival
		for _, p := range r.Peers {
			if e, ok := row.Entry(p.Name); ok && e.Error == "" && e.Cannot == "" && p.Cannot[peers.Keys] == "" {
				if v, ok := against(weir, e); ok {
					rivals = append(rivals, v)
				}
			}
		}
		if len(rivals) > 0 {
			all = append(all, judge(label(row), text, rivals))
		}
	}
	if len(all) == 0 {
		return []result.Target{{Row: "all rows", Target: text, Verdict: Unmeasured}}
	}
	return all
}

// A rival is a peer beside weir on a row.
type rival struct {
	name  string
	ratio float64 // its median time by weir's
	p     float64 // the probability that weir's times are so much shorter by chance
	least float64 // the least p that so many rounds can have
}

// against compares the times of weir and a peer, round by round apart: by the Mann-Whitney U test, as benchstat does.
func against(weir, peer *result.Entry) (rival, bool) {
	x, y := measured(weir.Nanos), measured(peer.Nanos)
	if len(x) == 0 || len(y) == 0 {
		return rival{}, false
	}
	v := rival{name: peer.Name, ratio: peer.Median() / weir.Median(), p: 1, least: 1 / mathx.Choose(len(x)+len(y), len(x))}
	// An error means that all times are the same, which leaves p at 1.
	if test, err := stats.MannWhitneyUTest(x, y, stats.LocationLess); err == nil {
		v.p = test.P
	}
	return v, true
}

// measured returns the times of the rounds that have a result.
func measured(nanos []float64) (times []float64) {
	for _, n := range nanos {
		if n > 0 {
			times = append(times, n)
		}
	}
	return times
}

// judge returns the target on a row: what is measured is the nearest rival.
func judge(row, text string, rivals []rival) result.Target {
	nearest, worst, few := rivals[0], 0.0, false
	var open []string
	for _, v := range rivals {
		if v.ratio < nearest.ratio {
			nearest = v
		}
		worst = max(worst, v.p)
		if v.ratio <= 1 || v.p >= significance {
			open = append(open, fmt.Sprintf("%s %.2f times weir's time (p = %.2g)", v.name, v.ratio, v.p))
		}
		few = few || v.least >= significance
	}
	t := result.Target{
		Row: row, Target: text,
		Measured: fmt.Sprintf("%.2f (%s)", nearest.ratio, nearest.name),
		Spread:   fmt.Sprintf("of %d, p at most %.2g", len(rivals), worst),
		Verdict:  verdict(len(open) == 0),
	}
	switch {
	case few:
		t.Verdict, t.Why = Unmeasured, "so few rounds cannot tell a difference from chance"
	case t.Verdict == Missed:
		t.Why = strings.Join(open, ", ")
	}
	return t
}
