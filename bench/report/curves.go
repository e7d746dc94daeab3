package report

import (
	"fmt"
	"html/template"
	"math"
	"time"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/internal/chart"
)

type curve struct {
	name   string
	colour chart.Colour
	dashes string // so that lines can also be distinguished without colors
	points []chart.Point
}

type curves struct {
	Title, Note string
	x, y        chart.Axis
	curves      []curve
}

// Chart draws the curves.
func (c curves) Chart() chart.Chart {
	p := chart.Plot{X: c.x, Y: c.y, Height: 210}
	for _, l := range c.curves {
		p.Line(chart.Line{Points: l.points, Colour: l.colour, Width: 2.5, Dashes: l.dashes})
	}
	return p.Chart(c.Title + ". " + c.Note)
}

// Legend returns the names of the curves.
func (c curves) Legend() template.HTML {
	var keys []chart.Key
	for _, l := range c.curves {
		keys = append(keys, chart.Key{Colour: l.colour, Text: l.name, Dashed: l.dashes != ""})
	}
	return chart.Legend(keys...)
}

// nines returns the position of a percentile on an axis on which 90 % to 99 % is as far as 99 % to 99.9 %. The slowest
// call is at 99.9999 %.
func nines(percentile float64) float64 {
	const maxNines = 6
	if percentile >= 100 {
		return 1
	}
	return -math.Log10(1-percentile/100) / maxNines
}

func percentileAxis() chart.Axis {
	axis := chart.Axis{Label: "percentile", Place: nines}
	for i, p := range experiment.Percentiles {
		switch p {
		case 0, 90, 99, 99.9, 99.99, 99.999, 100:
			text := percentileLabel(i)
			if p == 100 {
				text = "worst"
			}
			axis.Ticks = append(axis.Ticks, chart.Tick{At: p, Text: text, Minor: p == 0 || p == 99 || p == 99.99 || p == 99.999})
		}
	}
	return axis
}

func latencyAxis(latencies []result.Latency) chart.Axis {
	highest := time.Millisecond
	for _, l := range latencies {
		for _, n := range l.Response {
			for int64(highest) < n {
				highest *= 10
			}
		}
	}
	var ticks []chart.Tick
	for d := 100 * time.Nanosecond; d <= highest; d *= 10 {
		ticks = append(ticks, chart.Tick{At: float64(d), Text: d.String()})
	}
	const lowest = 20
	return chart.Log(lowest, float64(highest), ticks...)
}

// latencyCurves returns a chart for each kind of work that runs during the calls.
func latencyCurves(r *result.Run) []curves {
	var charts []curves
	x, y := percentileAxis(), latencyAxis(r.Latency)
	for _, load := range []string{experiment.Quiet, experiment.Sweep, experiment.Flood} {
		c := curves{
			Title: "Latency of a call, beside " + load,
			Note: "From when the call was due to its end; calls are due every 5 µs. Lower is better. " +
				"What the call that does nothing shows is the machine and its scheduler.",
			x: x, y: y,
		}
		for _, l := range r.Latency {
			if l.Beside != load || l.Error != "" || len(l.Response) != len(experiment.Percentiles) {
				continue
			}
			line := curve{name: "weir's Allow", colour: chart.Blue}
			if l.Empty {
				line = curve{name: "a call that does nothing", colour: chart.Grey, dashes: "5 4"}
			}
			for i, p := range experiment.Percentiles {
				line.points = append(line.points, chart.Point{X: p, Y: float64(l.Response[i])})
			}
			c.curves = append(c.curves, line)
		}
		if len(c.curves) > 0 {
			charts = append(charts, c)
		}
	}
	return charts
}

// scalingCurves returns charts of decisions per second on all processors, for rows with several numbers of processors.
func scalingCurves(r *result.Run) []curves {
	var charts []curves
	for _, name := range []string{"allowed-1k", "denied-1k", "allowed-1", "zipf-1m", "churn", "uniform-10m"} {
		var rows []*result.Row
		for i := range r.Rows {
			if r.Rows[i].Name == name {
				rows = append(rows, &r.Rows[i])
			}
		}
		if len(rows) < 2 {
			continue
		}
		charts = append(charts, scaling(rows))
	}
	return charts
}

// scalingLines contains the lines of a scaling chart.
var scalingLines = []curve{
	{name: measure.WeirTSC, colour: chart.Blue},
	{name: measure.FloorTSC, colour: chart.Grey, dashes: "5 4"},
	{name: "diy GCRA, xsync map", colour: chart.Ochre},
	{name: "sethvargo/go-limiter", colour: chart.Purple, dashes: "2 3"},
}

func scaling(rows []*result.Row) curves {
	maxRate := 0.0
	c := curves{Title: rows[0].Title, Note: "Million decisions a second by all cores together. Higher is better."}
	for _, s := range scalingLines {
		for _, row := range rows {
			if e, ok := row.Entry(s.name); ok && e.Error == "" && e.Median() > 0 {
				rate := 1000 / e.Median()
				maxRate = max(maxRate, rate)
				s.points = append(s.points, chart.Point{X: float64(row.Cores), Y: rate})
			}
		}
		if len(s.points) > 1 {
			c.curves = append(c.curves, s)
		}
	}
	var ticks []chart.Tick
	for _, row := range rows {
		ticks = append(ticks, chart.Tick{At: float64(row.Cores), Text: fmt.Sprint(row.Cores)})
	}
	c.x = chart.Linear(float64(rows[0].Cores), float64(rows[len(rows)-1].Cores), ticks...)
	c.x.Label = "GOMAXPROCS"
	c.y = chart.FromZero(maxRate, 0, func(rate float64) string { return fmt.Sprintf("%g M/s", rate) })
	return c
}
