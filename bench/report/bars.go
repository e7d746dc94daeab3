package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/internal/chart"
)

type bar struct {
	name, label      string
	value, low, high float64 // low and high are the range over the rounds; both are 0 if there is none
}

type bars struct {
	Title, Note string
	Bars        []bar
	Missing     []string // the subjects without a bar, each with the reason
}

// sorted returns the chart with the shortest bar first.
func (c bars) sorted() bars {
	slices.SortStableFunc(c.Bars, func(a, b bar) int { return cmp.Compare(a.value, b.value) })
	return c
}

// Chart draws the bars.
func (c bars) Chart() chart.Chart {
	rows := make([]chart.Row, len(c.Bars))
	for i, b := range c.Bars {
		rows[i] = chart.Row{
			Name: b.name, Text: b.label, Strong: measure.IsWeir(b.name),
			Parts: []chart.Part{{Value: b.value, Colour: colourOf(b.name)}}, Low: b.low, High: b.high,
		}
	}
	return chart.Rows(c.Title+". "+c.Note, rows)
}

// colourOf returns different colors for weir, its floors and the peers.
func colourOf(name string) chart.Colour {
	switch {
	case measure.IsWeir(name):
		return chart.Blue
	case measure.IsFloor(name) || name == experiment.Empty:
		return chart.Grey
	}
	return chart.Ochre
}

// weirOf returns the name of weir with the clock that it read by default where the row was measured. If the kernel did
// not trust the time stamp counter, that is the precise clock.
func weirOf(row *result.Row) string {
	if e, ok := row.Entry(measure.WeirTSC); ok && e.Cannot == "" {
		return measure.WeirTSC
	}
	return measure.WeirPrecise
}

// floorOf returns the floor with which a chart's bars are compared: that of weir with its default clock.
func floorOf(row *result.Row) string {
	if e, ok := row.Entry(weirOf(row)); ok {
		return e.Floor
	}
	return row.Entries[0].Floor
}

// rowBars returns the chart of a row, relative to its floor.
func rowBars(row *result.Row) bars {
	base := floorOf(row)
	c := bars{
		Title: fmt.Sprintf("%s, %s", row.Title, plural(row.Cores, "core")),
		Note: fmt.Sprintf("Time of a decision as a multiple of %q, and in nanoseconds. Shorter is better. "+
			"The thin line is the range over the rounds.", base),
	}
	for i := range row.Entries {
		e := &row.Entries[i]
		s, ok := row.Ratio(e.Name, base)
		switch {
		case e.Error != "":
			c.Missing = append(c.Missing, e.Name+" failed: "+e.Error)
		case ok:
			c.Bars = append(c.Bars, bar{e.Name, fmt.Sprintf("%.2f × · %.0f ns", s.Median, e.Median()), s.Median, s.Min, s.Max})
		}
	}
	return c.sorted()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func memoryBars(r *result.Run) bars {
	c := bars{
		Title: "Memory for a key, a million keys in use",
		Note:  "Bytes in RAM or on the heap, whichever is more, without the keys' own text. Shorter is better.",
	}
	for _, m := range r.Memory {
		if m.Error != "" {
			c.Missing = append(c.Missing, m.Name+" failed: "+m.Error)
			continue
		}
		c.Bars = append(c.Bars, bar{name: m.Name, label: fmt.Sprintf("%.0f bytes", m.PerKey()), value: m.PerKey()})
	}
	return c.sorted()
}

func collectBars(r *result.Run) bars {
	c := bars{
		Title: "A full garbage collection, ten million keys",
		Note:  "Milliseconds of runtime.GC, the median of fifteen. Shorter is better.",
	}
	for _, x := range r.Collect {
		if x.Error != "" {
			c.Missing = append(c.Missing, x.Name+" failed: "+x.Error)
			continue
		}
		c.Bars = append(c.Bars, bar{name: x.Name, label: fmt.Sprintf("%.2f ms", x.Millis()), value: x.Millis()})
	}
	return c.sorted()
}
