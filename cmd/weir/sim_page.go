package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/weir-go/weir/cmd/internal/number"
	"github.com/weir-go/weir/internal/chart"
	"github.com/weir-go/weir/redislimit/sim"
)

//go:embed sim.html
var simPageText string

// simPage is a complete page in the colors of the other reports of weir.
var simPage = template.Must(template.New("page").Funcs(template.FuncMap{
	"comma":   number.Comma,
	"percent": percent,
	"chart":   func(r *sim.Report) template.HTML { return simChart(r).HTML() },
	"legend":  func() template.HTML { return chart.Legend(simLegend...) },
	"style":   chart.Style,
}).Parse(simPageText))

func percent(fraction float64) string { return fmt.Sprintf("%.2f %%", 100*fraction) }

var simLegend = []chart.Key{
	{Colour: chart.Blue, Text: "within burst + rate × time"},
	{Colour: chart.Orange, Text: "beyond"},
}

// simChart draws one bar for each strategy. A bar shows how many tokens of the first key were admitted: first the part
// within the limit, and then the excess.
func simChart(r *sim.Report) chart.Chart {
	var rows []chart.Row
	var descriptions []string
	for _, o := range r.Results {
		admitted := float64(o.FirstAdmitted)
		withinLimit := min(admitted, math.Floor(r.Allowed))
		rows = append(rows, chart.Row{
			Name: o.Title, Text: fmt.Sprintf("%.0f %% of the limit", 100*o.FirstOfLimit),
			Parts: []chart.Part{{Value: withinLimit, Colour: chart.Blue}, {Value: admitted - withinLimit, Colour: chart.Orange}},
		})
		descriptions = append(descriptions, fmt.Sprintf("%s %.0f percent of the limit", o.Title, 100*o.FirstOfLimit))
	}
	label := "What each strategy admitted"
	if r.Keys > 1 {
		label += " of the key that is asked for most"
	}
	return chart.Rows(label+": "+strings.Join(descriptions, ", ")+".", rows)
}

func writeSimPage(w io.Writer, r *sim.Report) error { return simPage.Execute(w, r) }

func writeSimPicture(w io.Writer, r *sim.Report) error {
	return chart.Picture{
		Title:    fmt.Sprintf("%s, burst %d, on %d nodes", r.Rate, r.Burst, r.Nodes),
		Subtitle: fmt.Sprintf("%g times that offered for %g s", r.Load, r.Seconds),
		Width:    420,
		Chart:    simChart(r),
		Legend:   simLegend,
	}.Write(w)
}
