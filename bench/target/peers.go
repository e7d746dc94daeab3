package target

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/result"
)

// The function faster returns the target for every peer on every row. A peer that does not distinguish keys does less
// work, so it has no target.
func faster(r *result.Run) (all []result.Target) {
	const text = "faster than every library that distinguishes keys"
	for i := range r.Rows {
		row := &r.Rows[i]
		if rivals := rivalsOn(r, row, nil); len(rivals) > 0 {
			all = append(all, judge(label(row), text, rivals, 1))
		}
	}
	if len(all) == 0 {
		return []result.Target{{Row: "all rows", Target: text, Verdict: Unmeasured}}
	}
	return all
}

// flooded returns the targets for new keys while the table is full, against every peer with bounded memory.
func flooded(r *result.Run) (all []result.Target) {
	bounded := func(p result.Peer) bool { return p.Cannot[peers.Bound] == "" }
	for i := range r.Rows {
		row := &r.Rows[i]
		rivals := rivalsOn(r, row, bounded)
		switch {
		case row.Name != "flood" || len(rivals) == 0:
		case row.Cores == 1:
			all = append(all, judge(label(row), "as fast as every library that bounds its memory, or faster", rivals, 1))
		default:
			all = append(all, judge(label(row), "twice as fast as every library that bounds its memory", rivals, 2))
		}
	}
	return all
}

// A rival is a peer that is compared with weir on a row, with its time divided by weir's time.
type rival struct {
	name string
	result.Summary
}

// rivalsOn returns the peers that were measured on a row and distinguish keys. The function some may be nil. Otherwise
// rivalsOn returns only peers for which some returns true.
func rivalsOn(r *result.Run, row *result.Row, some func(result.Peer) bool) (rivals []rival) {
	weir := measure.WeirTSC
	if e, ok := row.Entry(weir); !ok || e.Cannot != "" {
		weir = measure.WeirPrecise
	}
	for _, p := range r.Peers {
		if e, ok := row.Entry(p.Name); ok && e.Cannot == "" && p.Cannot[peers.Keys] == "" && (some == nil || some(p)) {
			if s, ok := row.Ratio(p.Name, weir); ok {
				rivals = append(rivals, rival{p.Name, s})
			}
		}
	}
	return rivals
}

// judge returns a target about weir and its rivals. The target is met if the time of every rival is at least a multiple
// of weir's time. The argument times is the factor. The measured value is the ratio of the fastest rival.
func judge(row, text string, rivals []rival, times float64) result.Target {
	c := ratio{limit: times, least: true}
	nearest := slices.MinFunc(rivals, func(a, b rival) int { return cmp.Compare(a.Median, b.Median) })
	t := ratioTarget(row, text, nearest.Summary, Met)
	t.Measured += " (" + nearest.name + ")"
	t.Spread += fmt.Sprintf(", of %d", len(rivals))
	var open []string
	for _, v := range rivals {
		switch verdict := c.verdict(v.Summary); {
		case verdict == Met:
			continue
		case verdict == Missed || t.Verdict == Met:
			t.Verdict = verdict
		}
		open = append(open, fmt.Sprintf("%s %.2f times weir's time (%s)", v.name, v.Median, Interval(v.Summary)))
	}
	t.Why = strings.Join(open, ", ")
	return t
}
