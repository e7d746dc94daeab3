package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/weir-go/weir/cmd/weir/internal/chart"
	"github.com/weir-go/weir/cmd/weir/internal/replay"
	"github.com/weir-go/weir/cmd/weir/internal/suggest"
)

//go:embed page.html
var page string

var tmpl = template.Must(template.New("page").Funcs(template.FuncMap{
	"comma":  func(n uint64) string { return humanize.Comma(int64(n)) },
	"count":  func(keys []replay.Key) string { return humanize.Comma(int64(len(keys))) },
	"share":  share,
	"time":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"span":   span,
	"series": series,
	"rows":   rows,
	"curve":  curve,
	"near":   near,
	"bar":    func(part, whole uint64) float64 { return 100 * float64(part) / float64(max(whole, 1)) },
}).Parse(page))

// A Page is what there is to show.
type Page struct {
	Source string // of the requests: the name of the log
	Rules  string // the name of the rule file; "" for none
	Top    int    // most refused keys to show for each rule
	Report *replay.RulesReport
	Curves []*suggest.Curve // of the rules, in order; nil for one without, or for none at all
}

// A section is a rule on the page.
type section struct {
	*replay.RuleReport
	Top   []replay.Key
	Curve *suggest.Curve
}

// Sections returns the rules.
func (p *Page) Sections() []section {
	all := make([]section, len(p.Report.Rules))
	for i := range p.Report.Rules {
		r := &p.Report.Rules[i]
		all[i] = section{RuleReport: r, Top: r.RefusedKeys[:min(p.Top, len(r.RefusedKeys))]}
		if i < len(p.Curves) {
			all[i].Curve = p.Curves[i]
		}
	}
	return all
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error { return tmpl.Execute(w, p) }

func share(part, whole uint64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(part)/float64(whole))
}

func span(from, to time.Time) string {
	const day = 24 * time.Hour
	d := to.Sub(from)
	if d < day {
		return d.String()
	}
	return fmt.Sprintf("%d days %v", d/day, d%day)
}

// series draws requests over time.
func series(s replay.Series) template.HTML {
	bars := make([]chart.Bar, len(s.Bins))
	all := chart.Bar{}
	for i, b := range s.Bins {
		bars[i] = chart.Bar{All: b.Requests, Part: b.Refused}
		all.All, all.Part = all.All+b.Requests, all.Part+b.Refused
	}
	end := s.Start.Add(time.Duration(len(s.Bins)) * s.Bin)
	middle := s.Start.Add(end.Sub(s.Start) / 2)
	layout := "15:04:05"
	if end.Sub(s.Start) > 24*time.Hour {
		layout = "01-02 15:04"
	}
	var labels []string
	for _, t := range []time.Time{s.Start, middle, end} {
		labels = append(labels, t.UTC().Format(layout))
	}
	return chart.Bars(fmt.Sprintf("Requests over time, %v a bar: %d requests, %d of them refused.", s.Bin, all.All, all.Part), bars, labels)
}

// A binRow is a stretch of time in the table beside its bar.
type binRow struct {
	At                time.Time
	Requests, Refused uint64
}

func rows(s replay.Series) (all []binRow) {
	for i, b := range s.Bins {
		if b.Requests > 0 {
			all = append(all, binRow{s.Start.Add(time.Duration(i) * s.Bin), b.Requests, b.Refused})
		}
	}
	return all
}

// curve draws the suggested pairs.
func curve(c *suggest.Curve) template.HTML {
	var points []chart.Point
	across := chart.Axis{Label: "burst", Log: true}
	for i := range c.Points {
		p := &c.Points[i]
		x := float64(p.Burst)
		if p.Window > 0 {
			x, across = p.Window.Seconds(), chart.Axis{Label: "window in seconds", Log: true}
		}
		points = append(points, chart.Point{X: x, Y: p.PerSecond()})
	}
	return chart.Curve(fmt.Sprintf("The lowest rate for each %s that refuses at most %v percent.", across.Label, c.Percent),
		points, c.Best, across, chart.Axis{Log: true, Ticks: rateTicks, Text: rate})
}

// near draws what is refused at rates about the suggested one.
func near(c *suggest.Curve) template.HTML {
	var points []chart.Point
	chosen := -1
	for i := range c.Near {
		p := &c.Near[i]
		points = append(points, chart.Point{X: p.PerSecond(), Y: p.Share(c.Requests)})
		if p.Rate == c.Points[c.Best].Rate {
			chosen = i
		}
	}
	return chart.Curve("The share of requests refused at rates about the suggested one.", points, chosen,
		chart.Axis{Label: "rate", Log: true, Ticks: rateTicks, Text: rate},
		chart.Axis{Text: func(v float64) string { return fmt.Sprintf("%.3g %%", v) }})
}

// rateTicks are the rates that an axis is marked with, in tokens a second.
var rateTicks = []float64{
	1. / 86400, 10. / 86400, 1. / 3600, 10. / 3600, 1. / 60, 10. / 60, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000,
}

// rate writes so many a second in a unit in which it is at least 1.
func rate(perSecond float64) string {
	for _, u := range []struct {
		name    string
		seconds float64
	}{{"s", 1}, {"m", 60}, {"h", 3600}} {
		if n := perSecond * u.seconds; n >= 0.9995 {
			return fmt.Sprintf("%.3g/%s", n, u.name)
		}
	}
	return fmt.Sprintf("%.3g/d", perSecond*86400)
}
