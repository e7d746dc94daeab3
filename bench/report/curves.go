package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/result"
)

// A curve is a line of a chart. Points are in a field of 1000 by 1000 that is stretched over the
// chart; lines keep their thickness.
type curve struct {
	Name   string
	Class  string
	Points string
}

// A tick is a mark of an axis, at a share of its length in percent.
type tick struct {
	At    float64
	Label string
	Minor bool // not written on narrow screens
}

// curves is a chart of them.
type curves struct {
	ID, Title, Note string
	XTitle, YTitle  string
	X, Y            []tick
	Curves          []curve
}

// points writes a line through shares of the field, y upwards.
func points(xs, ys []float64) string {
	var b strings.Builder
	for i := range xs {
		fmt.Fprintf(&b, "%.1f,%.1f ", 1000*xs[i], 1000*(1-ys[i]))
	}
	return strings.TrimSpace(b.String())
}

// nines is where a percentile stands on an axis that gives every further nine the same room; the
// worst call has the place of a hundred millionth.
func nines(percentile float64) float64 {
	const all = 6
	if percentile >= 100 {
		return 1
	}
	return -math.Log10(1-percentile/100) / all
}

// latencyCurves returns a chart for each thing that may happen beside the calls.
func latencyCurves(r *result.Run) []curves {
	var charts []curves
	lowest, highest := math.Log10(20), math.Log10(1e6)
	for _, l := range r.Latency {
		for _, n := range l.Response {
			highest = max(highest, math.Ceil(math.Log10(float64(max(n, 1)))))
		}
	}
	for _, beside := range []string{experiment.Quiet, experiment.Sweep, experiment.Flood} {
		c := curves{
			ID: "latency-" + strings.ReplaceAll(beside, " ", "-"), Title: "Latency of a call, beside " + beside,
			Note:   "From when the call was due to its end; calls are due every 5 µs. Lower is better. What the call that does nothing shows is the machine and its scheduler.",
			XTitle: "percentile", YTitle: "time",
		}
		for i, p := range experiment.Percentiles {
			switch p {
			case 0, 90, 99, 99.9, 99.99, 99.999, 100:
				label := percentileLabel(i)
				if p == 100 {
					label = "worst"
				}
				c.X = append(c.X, tick{100 * nines(p), label, p == 0 || p == 99 || p == 99.99 || p == 99.999})
			}
		}
		for d := 100 * time.Nanosecond; math.Log10(float64(d)) <= highest; d *= 10 {
			c.Y = append(c.Y, tick{100 * (1 - share(float64(d), lowest, highest)), d.String(), false})
		}
		for _, l := range r.Latency {
			if l.Beside != beside || l.Error != "" || len(l.Response) != len(experiment.Percentiles) {
				continue
			}
			var xs, ys []float64
			for i, p := range experiment.Percentiles {
				xs, ys = append(xs, nines(p)), append(ys, share(float64(l.Response[i]), lowest, highest))
			}
			name, class := "weir's Allow", "weir"
			if l.Empty {
				name, class = "a call that does nothing", "floor"
			}
			c.Curves = append(c.Curves, curve{name, class, points(xs, ys)})
		}
		if len(c.Curves) > 0 {
			charts = append(charts, c)
		}
	}
	return charts
}

// share is where a figure stands between two powers of ten.
func share(figure, lowest, highest float64) float64 {
	return min(1, max(0, (math.Log10(max(figure, 1))-lowest)/(highest-lowest)))
}

// scalingCurves returns, for the rows that were measured on more than one number of processors, how
// many decisions all of them make together.
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

// scaled are the lines of a scaling chart.
var scaled = []struct{ name, class string }{
	{measure.WeirTSC, "weir"},
	{measure.FloorTSC, "floor"},
	{"diy GCRA, xsync map", "other"},
	{"sethvargo/go-limiter", "third"},
}

func scaling(rows []*result.Row) curves {
	c := curves{
		ID: "scaling-" + rows[0].Name, Title: rows[0].Title,
		Note: "Million decisions a second by all cores together. Higher is better.", XTitle: "GOMAXPROCS",
	}
	most := 0.0
	rate := func(row *result.Row, name string) float64 {
		if e, ok := row.Entry(name); ok && e.Error == "" && e.Median() > 0 {
			return 1000 / e.Median()
		}
		return 0
	}
	for _, row := range rows {
		for _, s := range scaled {
			most = max(most, rate(row, s.name))
		}
	}
	last := float64(rows[len(rows)-1].Cores)
	for _, row := range rows {
		c.X = append(c.X, tick{100 * (float64(row.Cores) - 1) / (last - 1), fmt.Sprint(row.Cores), false})
	}
	step := niceStep(most)
	for y := 0.0; y <= most; y += step {
		c.Y = append(c.Y, tick{100 * (1 - y/(1.05*most)), fmt.Sprintf("%g M/s", y), false})
	}
	for _, s := range scaled {
		var xs, ys []float64
		for _, row := range rows {
			if v := rate(row, s.name); v > 0 {
				xs, ys = append(xs, (float64(row.Cores)-1)/(last-1)), append(ys, v/(1.05*most))
			}
		}
		if len(xs) > 1 {
			c.Curves = append(c.Curves, curve{s.name, s.class, points(xs, ys)})
		}
	}
	return c
}

// niceStep returns the distance of about four marks up to most: 1, 2 or 5 times a power of ten.
func niceStep(most float64) float64 {
	if most <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, step := range []float64{1, 2, 5} {
		if most/(step*power) <= 5 {
			return step * power
		}
	}
	return 10 * power
}
