package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/number"
	"github.com/weir-go/weir/cmd/internal/replay"
	"github.com/weir-go/weir/cmd/internal/suggest"
	"github.com/weir-go/weir/internal/chart"
)

//go:embed page.html
var page string

var tmpl = template.Must(template.New("page").Funcs(template.FuncMap{
	"style":  chart.Style,
	"legend": legend,
	"comma":  number.Comma,
	"count":  func(keys []replay.Key) string { return number.Comma(uint64(len(keys))) },
	"share":  share,
	"time":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"span":   span,
	"series": series,
	"rows":   rows,
	"plain":  plain,
	"trade":  tradeOff,
	"bar":    func(part, total uint64) float64 { return 100 * float64(part) / float64(max(total, 1)) },
}).Parse(page))

// A Page has the contents of a report.
type Page struct {
	Source string // name of the log
	Rules  string // name of the rule file; "" if there is none
	Top    int    // how many of the most refused keys to show for each rule
	Report *replay.RulesReport
	// Suggestions has a suggestion for each rule, in the order of the rules. A rule without a suggestion has nil.
	// Suggestions itself may be nil.
	Suggestions []*suggest.Suggestion
}

// A section is a part of the page about one rule.
type section struct {
	*replay.RuleReport
	Top        []replay.Key
	Suggestion *suggest.Suggestion
}

// Sections returns the rules.
func (p *Page) Sections() []section {
	sections := make([]section, len(p.Report.Rules))
	for i := range p.Report.Rules {
		r := &p.Report.Rules[i]
		sections[i] = section{RuleReport: r, Top: r.RefusedKeys[:min(p.Top, len(r.RefusedKeys))]}
		if i < len(p.Suggestions) {
			sections[i].Suggestion = p.Suggestions[i]
		}
	}
	return sections
}

// A UsagePage has the contents of a report on a usage log.
type UsagePage struct {
	Source     string
	Top        int // how many of the most refused keys to show for each estimate
	Report     *replay.UsageReport
	Suggestion *suggest.Suggestion // nil if there is none
}

// An estimateSection is a part of the page about one estimate.
type estimateSection struct {
	*replay.Estimated
	Requests uint64
	Top      []replay.Key
}

// Sections returns the estimates.
func (p *UsagePage) Sections() []estimateSection {
	sections := make([]estimateSection, len(p.Report.Estimates))
	for i := range sections {
		e := &p.Report.Estimates[i]
		sections[i] = estimateSection{e, p.Report.Requests, e.RefusedKeys[:min(p.Top, len(e.RefusedKeys))]}
	}
	return sections
}

// Write writes the page.
func (p *UsagePage) Write(w io.Writer) error { return tmpl.ExecuteTemplate(w, "usage", p) }

// Write writes the page.
func (p *Page) Write(w io.Writer) error { return tmpl.Execute(w, p) }

func share(part, total uint64) string {
	if total == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(part)/float64(total))
}

func span(from, to time.Time) string {
	const day = 24 * time.Hour
	d := to.Sub(from)
	if d < day {
		return d.String()
	}
	return fmt.Sprintf("%d days %v", d/day, d%day)
}

// plain returns a duration as text, without smaller units that are zero.
func plain(d time.Duration) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
}

// chartHeight is the height, in pixels, of the area in which a chart is drawn.
const chartHeight = 180

// legend returns a legend. The parameter entries has a color, then its text, then the next color, and so on.
func legend(entries ...string) template.HTML {
	var keys []chart.Key
	for i := 0; i+1 < len(entries); i += 2 {
		keys = append(keys, chart.Key{Colour: chart.Colour(entries[i]), Text: entries[i+1]})
	}
	return chart.Legend(keys...)
}

// series draws requests over time.
func series(s replay.Series) template.HTML {
	bins := float64(len(s.Bins))
	var requests, refused, highest uint64
	for _, b := range s.Bins {
		requests, refused, highest = requests+b.Requests, refused+b.Refused, max(highest, b.Requests)
	}
	p := chart.Plot{X: chart.Linear(0, bins, timeTicks(s)...), Y: chart.FromZero(float64(highest), 1, chart.Short),
		Height: chartHeight}
	for i, b := range s.Bins {
		from := float64(i)
		to := from + 1
		if bins < 100 {
			to -= 0.12 // a gap between bars, unless the bars are thin
		}
		p.Column(chart.Orange, from, to, 0, float64(b.Refused))
		p.Column(chart.Blue, from, to, float64(b.Refused), float64(b.Requests))
	}
	return p.Chart(fmt.Sprintf("Requests over time, %v a bar: %d requests, %d of them refused.", s.Bin, requests,
		refused)).HTML()
}

// timeTicks returns ticks at the beginning, in the middle and at the end of a series.
func timeTicks(s replay.Series) []chart.Tick {
	end := s.Start.Add(time.Duration(len(s.Bins)) * s.Bin)
	layout := "15:04:05"
	if end.Sub(s.Start) > 24*time.Hour {
		layout = "01-02 15:04"
	}
	var ticks []chart.Tick
	for i, t := range []time.Time{s.Start, s.Start.Add(end.Sub(s.Start) / 2), end} {
		ticks = append(ticks, chart.Tick{At: float64(i) / 2 * float64(len(s.Bins)), Text: t.UTC().Format(layout)})
	}
	return ticks
}

// A binRow is a row of a table: an interval of time, its numbers, and its bar.
type binRow struct {
	At                time.Time
	Requests, Refused uint64
}

func rows(s replay.Series) (rows []binRow) {
	for i, b := range s.Bins {
		if b.Requests > 0 {
			rows = append(rows, binRow{s.Start.Add(time.Duration(i) * s.Bin), b.Requests, b.Refused})
		}
	}
	return rows
}

// tradeOff draws which share of the keys each limit would refuse. All its limits have the same period.
func tradeOff(s *suggest.Suggestion) template.HTML {
	c := &s.Curves[s.Best]
	var points []chart.Point
	var xs, ys []float64
	for i := range c.Points {
		p := &c.Points[i]
		x, y := p.Rate.Tokens, 100*float64(p.Refused)/float64(max(s.KeyDays, 1))
		points, xs, ys = append(points, chart.Point{X: x, Y: y}), append(xs, x), append(ys, y)
	}
	var marks []float64
	for power := 1.0; power <= 10*xs[len(xs)-1]; power *= 10 {
		marks = append(marks, power, 2*power, 5*power)
	}
	x := chart.LogAround(xs, marks, chart.Short)
	x.Label = "limit for " + plain(c.Period)
	p := chart.Plot{X: x, Y: chart.FromZero(slices.Max(ys), 0, func(v float64) string { return fmt.Sprintf("%.3g %%", v) }),
		Height: chartHeight}
	p.Line(chart.Line{Colour: chart.Blue, Points: points})
	for i, point := range points {
		if i != c.Best {
			p.Mark(chart.Blue, point, 2.5)
		}
	}
	p.Mark(chart.Green, points[c.Best], 6)
	return p.Chart(fmt.Sprintf("The share of the keys of a day that limits for %v refuse anything: the suggested one %s.", c.Period,
		share(c.Point().Refused, s.KeyDays))).HTML()
}
