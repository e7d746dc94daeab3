package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/internal/chart"
)

var (
	//go:embed page.tmpl
	pageText string
	//go:embed page.css
	pageStyle string
)

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"style": func() template.CSS { return chart.Style() + template.CSS(pageStyle) },
}).Parse(pageText))

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

// A rowView is a chart together with the table that contains the same figures.
type rowView struct {
	Bars  bars
	Table table
}

// HTML writes the run as one page that needs no other files.
func HTML(w io.Writer, r *result.Run) error {
	p := page{
		Run: r, Headline: headline(r), Targets: targets(r),
		Scaling: scalingCurves(r), Memory: memoryBars(r), Collect: collectBars(r), Latency: latencyCurves(r),
		Rest:    []table{returning(r), touched(r), parts(r), pages(r), libraries(r), notMeasured(r)},
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
		if isVariant(&r.Rows[i]) {
			continue
		}
		p.Workloads = append(p.Workloads, rowView{rowBars(&r.Rows[i]), row(&r.Rows[i], r.Peers)})
	}
	if err := templates.ExecuteTemplate(w, "page", p); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}
