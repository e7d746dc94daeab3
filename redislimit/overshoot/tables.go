package overshoot

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/sim"
)

const tooLate = 500 * time.Millisecond

// Tables writes the results as the two tables of docs/distributed.md. The first has the modes of package redislimit,
// next to the simulator's results. The second has the forms of the hybrid that settles later.
func Tables(ctx context.Context, w io.Writer, results []Result) error {
	rows := group(results)
	text, maxLate := "", time.Duration(0)
	for _, row := range rows {
		strict, leased := row.ways["strict"], row.ways["lease"]
		if strict == nil && leased == nil {
			continue
		}
		simulated, err := simulate(ctx, row.scenario)
		if err != nil {
			return fmt.Errorf("overshoot: %s: %w", row.scenario.Name, err)
		}
		text += fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", row.scenario.Name,
			strict.ofExact(simulated["strict"]), strict.bound(), leased.ofExact(simulated["lease"]), leased.bound(),
			leased.cell("%.3f %%", func(r *Result) float64 { return r.Falsely }),
			strict.cell("%.0f", func(r *Result) float64 { return r.Calls }),
			leased.cell("%.0f", func(r *Result) float64 { return r.Calls }))
		for _, r := range []*Result{strict, leased} {
			if r != nil {
				maxLate = max(maxLate, r.Late)
			}
		}
	}
	if text != "" {
		text = "| load | strict | its bound | leased | its bound | falsely refused, leased | script calls a second, strict | leased |\n" +
			"|---|--:|---|--:|---|--:|--:|--:|\n" + text + fmt.Sprintf("\nRequests came up to %v after their time.\n", maxLate.Round(time.Millisecond))
	}
	if settleTable := settlingTable(rows); settleTable != "" {
		text += "\n" + settleTable
	}
	_, err := io.WriteString(w, text)
	return err
}

func settlingTable(rows []row) (text string) {
	ways := []string{"window 200ms", "window 50ms", "window 10ms", "settle 200ms", "settle 50ms", "settle 10ms"}
	for _, row := range rows {
		isMeasured, cells := false, ""
		for _, way := range ways {
			r := row.ways[way]
			isMeasured = isMeasured || r != nil
			cells += " " + r.cell("%.2f", func(r *Result) float64 { return r.OfExact }) + " |"
		}
		if isMeasured {
			text += "| " + row.scenario.Name + " |" + cells + "\n"
		}
	}
	if text == "" {
		return ""
	}
	return "| load | windows, 200 ms | 50 ms | 10 ms | level, 200 ms | 50 ms | 10 ms |\n" +
		"|---|" + strings.Repeat("--:|", len(ways)) + "\n" + text
}

type row struct {
	scenario Scenario
	ways     map[string]*Result
}

func group(results []Result) (rows []row) {
	for i, r := range results {
		if len(rows) == 0 || rows[len(rows)-1].scenario.Name != r.Scenario.Name {
			rows = append(rows, row{r.Scenario, map[string]*Result{}})
		}
		rows[len(rows)-1].ways[r.Way] = &results[i]
	}
	return rows
}

func (r *Result) cell(format string, number func(*Result) float64) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf(format, number(r))
}

func (r *Result) ofExact(simulated string) string {
	if r != nil && r.Late > tooLate {
		return "not on time" + simulated
	}
	return r.cell("%.2f", func(r *Result) float64 { return r.OfExact }) + simulated
}

func (r *Result) bound() string {
	switch {
	case r == nil || r.Bound == 0:
		return ""
	case r.Holds():
		return fmt.Sprintf("%d <= %d", r.Admitted, r.Bound)
	}
	return fmt.Sprintf("%d > %d BROKEN", r.Admitted, r.Bound)
}

// simulate returns the simulator's results for a scenario, in brackets, one for each way.
func simulate(ctx context.Context, s Scenario) (map[string]string, error) {
	if s.Differ {
		return nil, nil
	}
	simulated := sim.Default()
	simulated.Nodes, simulated.Traffic, simulated.Time = len(s.Shares), s.Shares, s.Time
	simulated.Rate, simulated.Burst, simulated.Load = engine.PerSecond(s.Rate), s.Burst, s.Offered/s.Rate
	simulated.Costs, simulated.Overdraft = s.Costs, Overdraft
	simulated.Strategies = []sim.Strategy{sim.Strict(), sim.Lease()}
	switch {
	case s.CutOff > 0:
		simulated.Away, simulated.CutOff = sim.Span{From: s.Time / 4, To: s.Time * 3 / 4}, s.CutOff
	case s.Stall > 0:
		simulated.Away, simulated.AwayEvery = sim.Span{From: s.StallEvery, To: s.StallEvery + s.Stall}, s.StallEvery
	}
	report, err := sim.Run(ctx, simulated, nil)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, r := range report.Results {
		note := ""
		if !r.Holds {
			note = ", bound BROKEN"
		}
		texts[r.Strategy] = fmt.Sprintf(" (%.2f%s)", 100*float64(r.Admitted)/float64(report.Ideal), note)
	}
	return texts, nil
}
