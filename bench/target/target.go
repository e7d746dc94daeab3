// Package target is the list of performance targets of weir, and evaluates them against a run.
package target

import (
	"fmt"
	"strings"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/result"
)

// Verdicts.
const (
	Met        = "met"
	Missed     = "missed"
	Retired    = "retired" // out of reach of any exact limiter on this machine: see ratio.bare
	Unmeasured = "not measured"
)

// Evaluate returns every target, in the order in which they are read.
func Evaluate(r *result.Run) []result.Target {
	var all []result.Target
	for _, c := range ratios {
		all = append(all, c.evaluate(r)...)
	}
	for _, evaluate := range []func(*result.Run) []result.Target{
		published, sameClock, faster, returning, churnBytes, deniedScaling, memory, collection, latency, allocations,
	} {
		all = append(all, evaluate(r)...)
	}
	return all
}

// A ratio is a target for the time of a by the time of b on a row.
type ratio struct {
	row, a, b string
	text      string
	limit     float64
	least     bool // the limit is a lower bound, not an upper one
	// bare is the floor that stands in for weir when the target is missed. If the floor misses it as well, no exact
	// limiter can meet it on this machine, and the target is retired: sameClock and faster are there instead.
	bare string
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
		text: "coarse clock: at least 2.5 x faster than the do-it-yourself xsync word", limit: 2.5, least: true,
		bare: measure.FloorCoarse},
	{row: allowed, a: measure.WeirTSC, b: measure.FloorPrecise,
		text: "TSC clock: at most 0.6 x the floor of the precise clock", limit: 0.6,
		bare: measure.FloorTSC},
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
		text: "at most 1.2 x the contended compare-and-swap", limit: 1.2,
		bare: measure.FloorTSC},
}

// evaluate returns the target for every number of processors that the row was measured on.
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
		t := ratioTarget(label(row), c.text, s, c.meets(s.Median))
		if t.Verdict == Missed {
			t.Why = c.explain(row, s.Median)
			if floor, ok := c.reached(row); ok && !c.meets(floor.Median) {
				t.Verdict, t.Why = Retired, retired(c.bare, floor.Median)
			}
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

func ratioTarget(row, text string, s result.Summary, met bool) result.Target {
	return result.Target{
		Row: row, Target: text,
		Measured: fmt.Sprintf("%.2f", s.Median),
		Spread:   fmt.Sprintf("%.2f - %.2f, ±%.0f %%", s.Min, s.Max, 100*s.Spread),
		Verdict:  verdict(met),
	}
}

func verdict(met bool) string {
	if met {
		return Met
	}
	return Missed
}

// explain says by how much the measured ratio misses the target, in nanoseconds of b's median.
func (c ratio) explain(row *result.Row, measured float64) string {
	a, _ := row.Entry(c.a)
	b, _ := row.Entry(c.b)
	over := (measured - c.limit) * b.Median()
	if c.least {
		over = (1 - measured/c.limit) * b.Median()
	}
	text := fmt.Sprintf("%s takes %.1f ns, %s %.1f ns: about %.1f ns too many", a.Name, a.Median(), b.Name, b.Median(),
		over)
	if floor, ok := c.reached(row); ok {
		text += fmt.Sprintf("; %q itself reaches %.2f", c.bare, floor.Median)
	}
	return text
}

// reached returns the ratio with the bare floor in weir's place.
func (c ratio) reached(row *result.Row) (s result.Summary, ok bool) {
	switch {
	case c.bare == "":
		return s, false
	case c.least:
		return row.Ratio(c.a, c.bare)
	}
	return row.Ratio(c.bare, c.b)
}

// meets reports whether a ratio meets the target.
func (c ratio) meets(measured float64) bool {
	if c.least {
		return measured >= c.limit
	}
	return measured <= c.limit
}

// retired says why a target is retired.
func retired(floor string, reached float64) string {
	return fmt.Sprintf("%q itself reaches only %.2f, so no exact limiter can do it on this machine; "+
		"instead: at most 1.5 x the floor with the same clock, and faster than every library", floor, reached)
}

// published is the target against every published library with keys.
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
		t := ratioTarget(label(row), text, nearest, nearest.Median >= 5)
		t.Measured += " (" + name + ")"
		if t.Verdict == Missed {
			t.Why = "nearer than that: " + strings.Join(closer, ", ")
			if s, ok := row.Ratio(name, measure.FloorCoarse); ok && s.Median < 5 {
				t.Verdict, t.Why = Retired, retired(measure.FloorCoarse, s.Median)
			}
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return []result.Target{{Row: allowed, Target: text, Verdict: Unmeasured}}
	}
	return all
}
