// Package target contains weir's performance targets, and evaluates whether a run meets them.
package target

import (
	"fmt"
	"math"
	"strings"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/result"
)

// These are the verdicts, for floors and libraries alike. A verdict uses the median of the rounds' ratios and the 95 %
// interval of this median ([result.Summary]).
const (
	Met        = "met"       // the whole interval meets the target
	Missed     = "missed"    // the whole interval misses the target
	Undecided  = "undecided" // the interval does neither, or there are too few rounds for an interval
	Unmeasured = "not measured"
)

// Evaluate returns every target, in the order in which readers see them.
func Evaluate(r *result.Run) []result.Target {
	var all []result.Target
	for _, c := range ratios {
		all = append(all, c.evaluate(r)...)
	}
	for _, evaluate := range []func(*result.Run) []result.Target{
		published, sameClock, faster, flooded, returning, churnBytes, deniedScaling, memory, collection, latency, allocations,
	} {
		all = append(all, evaluate(r)...)
	}
	return all
}

// A ratio is a target for the time of the subject a, divided by the time of the subject b, on a row.
type ratio struct {
	row, a, b string
	text      string
	limit     float64
	least     bool // the limit is a lower bound, not an upper one
}

const (
	diy = "diy GCRA, xsync map"

	allowed = "allowed-1k"
	denied  = "denied-1k"
)

var ratios = []ratio{
	{row: allowed, a: measure.WeirCoarse, b: measure.FloorCoarse,
		text: "coarse clock: at most 1.5 x its floor", limit: 1.5},
	{row: allowed, a: diy, b: measure.WeirCoarse,
		text: "coarse clock: at least 2.5 x faster than the do-it-yourself xsync word", limit: 2.5, least: true},
	{row: allowed, a: measure.WeirTSC, b: measure.FloorPrecise,
		text: "TSC clock: at most 0.6 x the floor of the precise clock", limit: 0.6},
	{row: allowed, a: measure.WeirPrecise, b: measure.FloorPrecise,
		text: "precise clock: at most 1.3 x its floor", limit: 1.3},
	{row: "churn", a: measure.WeirTSC, b: measure.FloorTSC, text: "at most 2 x the floor", limit: 2},
	{row: "churn-aged", a: measure.WeirTSC, b: measure.FloorTSC,
		text: "at most 2 x the floor, when no slot was never used", limit: 2},
	{row: denied, a: measure.WeirCoarse, b: measure.FloorCoarse,
		text: "coarse clock: at most 1.5 x hash and load", limit: 1.5},
	{row: "zipf-1m", a: measure.WeirTSC, b: measure.FloorTSC, text: "at most 1.5 x the floor", limit: 1.5},
	{row: "uniform-10m", a: measure.WeirTSC, b: measure.FloorTSC, text: "at most 1.5 x the floor", limit: 1.5},
	{row: "batch-10m", a: measure.WeirSingle, b: measure.WeirBatch,
		text: "a batch: at least 1.8 x faster than single calls", limit: 1.8, least: true},
	{row: "hot", a: measure.WeirTSC, b: measure.FloorHot,
		text: "at most 1.2 x the contended compare-and-swap", limit: 1.2},
}

// evaluate returns the target for every number of processors on which the row was measured.
func (c ratio) evaluate(r *result.Run) []result.Target {
	var all []result.Target
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Name != c.row {
			continue
		}
		s, ok := row.Ratio(c.a, c.b)
		if !ok {
			continue
		}
		t := ratioTarget(label(row), c.text, s, c.verdict(s))
		if t.Verdict == Missed {
			t.Why = c.explain(row, s.Median)
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return []result.Target{{Row: c.row, Target: c.text, Verdict: Unmeasured}}
	}
	return all
}

func label(row *result.Row) string { return fmt.Sprintf("%s, %s", row.Name, cores(row.Cores)) }

func cores(n int) string {
	if n == 1 {
		return "1 core"
	}
	return fmt.Sprintf("%d cores", n)
}

func ratioTarget(row, text string, s result.Summary, verdict string) result.Target {
	return result.Target{
		Row: row, Target: text, Measured: fmt.Sprintf("%.2f", s.Median), Spread: Interval(s), Verdict: verdict,
	}
}

// Interval returns the interval of a summary and the number of its rounds as text.
func Interval(s result.Summary) string {
	if math.IsInf(s.High, 1) {
		return fmt.Sprintf("none by %d rounds", s.Rounds)
	}
	return fmt.Sprintf("%.2f - %.2f, %d rounds", s.Low, s.High, s.Rounds)
}

func verdict(met bool) string {
	if met {
		return Met
	}
	return Missed
}

// explain says by how many nanoseconds the measured ratio misses the target. It computes this from the median time of
// the subject b.
func (c ratio) explain(row *result.Row, measured float64) string {
	a, _ := row.Entry(c.a)
	b, _ := row.Entry(c.b)
	over := (measured - c.limit) * b.Median()
	if c.least {
		over = (1 - measured/c.limit) * b.Median()
	}
	text := fmt.Sprintf("%s takes %.1f ns, %s %.1f ns: about %.1f ns too many", a.Name, a.Median(), b.Name, b.Median(),
		over)
	return text
}

func (c ratio) verdict(s result.Summary) string {
	low, high := s.Low >= c.limit, s.High >= c.limit
	if !c.least {
		low, high = s.High <= c.limit, s.Low <= c.limit
	}
	switch {
	case math.IsInf(s.High, 1) || low != high:
		return Undecided
	}
	return verdict(low)
}

// published returns the targets that compare weir with every published library that distinguishes keys.
func published(r *result.Run) (all []result.Target) {
	const text = "coarse clock: at least 5 x faster than every published library with keys"
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Name != allowed {
			continue
		}
		var nearest result.Summary
		var name string
		var closer []string
		for _, p := range r.Peers {
			s, ok := row.Ratio(p.Name, measure.WeirCoarse)
			if !ok || !p.Package || p.Cannot["keys"] != "" {
				continue
			}
			if s.Median < 5 {
				closer = append(closer, fmt.Sprintf("%s %.2f", p.Name, s.Median))
			}
			if name == "" || s.Median < nearest.Median {
				nearest, name = s, p.Name
			}
		}
		if name == "" {
			continue
		}
		c := ratio{limit: 5, least: true}
		t := ratioTarget(label(row), text, nearest, c.verdict(nearest))
		t.Measured += " (" + name + ")"
		if t.Verdict == Missed {
			t.Why = "nearer than that: " + strings.Join(closer, ", ")
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return []result.Target{{Row: allowed, Target: text, Verdict: Unmeasured}}
	}
	return all
}
