package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/weir-go/weir/bench/result"
)

//go:embed page.tmpl charts.tmpl colours.css page.css
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"css":   css,
	"down":  func(top, by int) int { return top + by },
	"minus": func(a, b float64) float64 { return a - b },
}).ParseFS(files, "page.tmpl", "charts.tmpl"))

// css returns style sheets of this package, one after the other.
func css(names ...string) (template.CSS, error) {
	var b strings.Builder
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return "", err
		}
		b.Write(text)
	}
	return template.CSS(b.String()), nil
}

// page is what the template shows.
type page struct {
	Run       *result.Run
	Headline  string
	Met       int
	Judged    int
	Targets   table
	Workloads []rowView
	Scaling   []curves
	Memory    bars
	Collect   bars
	Latency   []curves
	Rest      []table
	MemoryT   table
	CollectT  table
	LatencyT  table
}

// A rowView is a chart with the table that says the same.
type rowView struct {
	Chart bars
	Table table
}

// HTML writes the run as one page that needs nothing else.
func HTML(w io.Writer, r *result.Run) error {
	p := page{
		Run: r, Headline: headline(r), Targets: targets(r),
		Scaling: scalingCurves(r), Memory: memoryBars(r), Collect: collectBars(r), Latency: latencyCurves(r),
		Rest:    []table{parts(r), pages(r), bounded(r), absent(r)},
		MemoryT: memory(r), CollectT: collections(r), LatencyT: latencies(r),
	}
	for _, t := range r.Targets {
		switch t.Verdict {
		case "met":
			p.Met++
			p.Judged++
		case "missed":
			p.Judged++
		}
	}
	for i := range r.Rows {
		p.Workloads = append(p.Workloads, rowView{rowBars(&r.Rows[i]), row(&r.Rows[i])})
	}
	if err := templates.ExecuteTemplate(w, "page", p); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}
