package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/workload"
)

// A bar is one subject in a chart. Positions are shares of the chart's width, so that a chart is as
// wide as its page and its text keeps its size.
type bar struct {
	Name   string
	Label  string
	Class  string // weir, floor or peer
	Top    int    // pixels
	Width  float64
	From   float64 // the range over the rounds
	To     float64
	Ranged bool

	value, low, high float64
}

// bars is a chart of them.
type bars struct {
	ID, Title, Note string
	Height          int
	Bars            []bar
	Missing         []string // who has no bar, and why
}

// pitch is the height of a bar with its name, in pixels.
const pitch = 36

// layout sorts the bars and puts them in their places. The widest range ends at the right edge,
// but one that is far out is cut off there.
func (c *bars) layout() {
	slices.SortStableFunc(c.Bars, func(a, b bar) int { return cmp.Compare(a.value, b.value) })
	widest, out := 0.0, 0.0
	for _, b := range c.Bars {
		widest, out = max(widest, b.value), max(out, b.high)
	}
	widest = max(widest, min(out, 1.3*widest))
	for i := range c.Bars {
		b := &c.Bars[i]
		b.Top = i * pitch
		if widest > 0 {
			b.Width, b.From, b.To = 100*b.value/widest, min(100, 100*b.low/widest), min(100, 100*b.high/widest)
		}
		b.Ranged = b.high > b.low
	}
	c.Height = len(c.Bars)*pitch + 2
}

func class(name string) string {
	switch {
	case measure.IsWeir(name):
		return "weir"
	case measure.IsFloor(name) || name == "empty process":
		return "floor"
	}
	return "peer"
}

// measure returns the floor that all bars of a row's chart are measured by.
func measureOf(row *result.Row) string {
	found, err := workload.Find(row.Name)
	if err != nil {
		return measure.FloorTSC
	}
	base := measure.FloorOf(&found, "")
	if _, ok := row.Entry(base); !ok {
		base = measure.FloorPrecise // of a machine without a counter
	}
	return base
}

// rowBars returns the chart of a row, relative to its floor.
func rowBars(row *result.Row) bars {
	base := measureOf(row)
	c := bars{
		ID:    fmt.Sprintf("row-%s-%d", row.Name, row.Cores),
		Title: fmt.Sprintf("%s, %s", row.Title, plural(row.Cores, "core")),
		Note:  fmt.Sprintf("Time of a decision as a multiple of %q, and in nanoseconds. Shorter is better. The thin line is the range over the rounds.", base),
	}
	for i := range row.Entries {
		e := &row.Entries[i]
		s, ok := row.Ratio(e.Name, base)
		switch {
		case e.Cannot != "":
			c.Missing = append(c.Missing, e.Name+" cannot: "+e.Cannot)
		case e.Error != "":
			c.Missing = append(c.Missing, e.Name+" failed: "+e.Error)
		case ok:
			c.Bars = append(c.Bars, bar{
				Name: e.Name, Label: fmt.Sprintf("%.2f × · %.0f ns", s.Median, e.Median()), Class: class(e.Name),
				value: s.Median, low: s.Min, high: s.Max,
			})
		}
	}
	c.layout()
	return c
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// memoryBars returns the chart of the bytes for a key.
func memoryBars(r *result.Run) bars {
	c := bars{
		ID: "memory", Title: "Memory for a key, a million keys in use",
		Note: "Bytes in RAM or on the heap, whichever is more, without the keys' own text. Shorter is better.",
	}
	for _, m := range r.Memory {
		if m.Error != "" {
			c.Missing = append(c.Missing, m.Name+" failed: "+m.Error)
			continue
		}
		c.Bars = append(c.Bars, bar{Name: m.Name, Label: fmt.Sprintf("%.0f bytes", m.PerKey()), Class: class(m.Name), value: m.PerKey()})
	}
	c.layout()
	return c
}

// collectBars returns the chart of full collections.
func collectBars(r *result.Run) bars {
	c := bars{
		ID: "gc", Title: "A full garbage collection, ten million keys",
		Note: "Milliseconds of runtime.GC, the median of fifteen. Shorter is better.",
	}
	for _, x := range r.Collect {
		if x.Error != "" {
			c.Missing = append(c.Missing, x.Name+" failed: "+x.Error)
			continue
		}
		c.Bars = append(c.Bars, bar{Name: x.Name, Label: fmt.Sprintf("%.2f ms", x.Millis()), Class: class(x.Name), value: x.Millis()})
	}
	c.layout()
	return c
}
