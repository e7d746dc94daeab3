package main

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/weir-go/weir/cmd/weir/internal/number"
	"github.com/weir-go/weir/internal/chart"
	"github.com/weir-go/weir/redislimit/sim"
)

// simPage is a page by itself, in the colours of the other reports.
var simPage = template.Must(template.New("page").Funcs(template.FuncMap{
	"comma":   number.Comma,
	"percent": percent,
	"chart":   func(r *sim.Report) template.HTML { return simChart(r).HTML() },
	"legend":  func() template.HTML { return chart.Legend(simLegend...) },
	"style":   chart.Style,
}).Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>weir sim: {{.Rate}} on {{.Nodes}} nodes</title>
<style>
{{style}}
* { box-sizing:border-box; }
body { margin:0 auto; padding:1rem; max-width:64rem; color:var(--ink); background:var(--back); font:16px/1.5 system-ui, sans-serif; }
h1 { font-size:1.5rem; line-height:1.25; margin:.25rem 0 1rem; }
p { margin:.5rem 0; }
.soft { color:var(--soft); font-size:.9rem; }
.wide { overflow-x:auto; margin:1.25rem 0; }
.wide:focus-visible { outline:2px solid var(--blue); }
table { border-collapse:collapse; width:100%; font-size:.9rem; font-variant-numeric:tabular-nums; }
th, td { text-align:right; padding:.3rem .5rem; border-bottom:1px solid var(--line); white-space:nowrap; }
thead th { white-space:normal; vertical-align:bottom; line-height:1.25; color:var(--soft); font-weight:normal; }
th:first-child { text-align:left; }
tbody th { font-weight:normal; }
thead th:nth-child(2), td:nth-child(2) { text-align:left; }
.broken { color:var(--orange); font-weight:bold; }
.rows { max-width:44rem; margin:1.25rem 0 .5rem; }
dl { display:grid; grid-template-columns:auto minmax(0, 1fr); gap:.25rem 1rem; }
dt { color:var(--ink); }
dd { margin:0; }
@media (max-width: 30rem) {
  body { padding:.75rem; }
  h1 { font-size:1.25rem; }
  tbody th { white-space:normal; min-width:7rem; }
  th, td { padding:.3rem; font-size:.8rem; }
  dl { grid-template-columns:minmax(0, 1fr); gap:0; }
  dd { margin-bottom:.5rem; }
}
</style>
<main>
<h1>{{.Rate}}, burst {{.Burst}}, on {{.Nodes}} nodes at {{.Load}} times that</h1>
<p class="soft">{{comma .Offered}} requests in {{.Seconds}} simulated seconds, of which one limiter for all would have admitted {{comma .Ideal}}.</p>
<p>Admitted{{if gt .Keys 1}} of the key that is asked for most{{end}}:</p>
<div class="rows">{{chart .}}</div>
{{legend}}
<div class="wide" tabindex="0" role="region" aria-label="The strategies">
<table>
<thead><tr><th scope="col">strategy<th scope="col">bound<th scope="col">admitted<th scope="col">of the limit<th scope="col">of the allowed<th scope="col">wrongly refused<th scope="col">asked/key/s<th scope="col">calls/s<th scope="col">worst excess<th scope="col">at most</thead>
<tbody>
{{range .Results}}<tr><th scope="row">{{.Title}}<td>{{if .Holds}}holds{{else}}<span class="broken">broken</span>{{end}}<td>{{comma .Admitted}}<td>{{percent .FirstOfLimit}}<td>{{percent .FirstOfAllowed}}<td>{{percent .RefusedShare}}<td>{{printf "%.1f" .AskedAKey}}<td>{{printf "%.1f" .CallsASec}}<td>{{printf "%.1f" .Worst}}<td>{{.WorstBound}}
{{end}}</tbody>
</table>
</div>
<dl class="soft">
<dt>of the limit, of the allowed<dd>what was admitted{{if gt .Keys 1}} of the key that is asked for most{{end}}, of rate × time and of burst + rate × time
<dt>wrongly refused<dd>requests that one limiter for all would have admitted, of all requests
<dt>asked/key/s, calls/s<dd>questions to the store about a key; calls of all nodes together, each with the up to 64 questions that waited while eight calls of a node were under way
<dt>worst excess<dd>the most beyond the rate and what nodes held before, in any interval; of settling later since the start, by whole windows. The bound holds if it is at most what the last column says.
</dl>
{{with .Away}}<p class="soft">The store was away from {{.From}} to {{.To}}.</p>{{end}}
{{range .Results}}{{$title := .Title}}{{with .Note}}<p class="soft">{{$title}}: {{.}}</p>{{end}}{{end}}
</main>
</html>
`))

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// simLegend says what the parts of a bar are.
var simLegend = []chart.Key{
	{Colour: chart.Blue, Text: "within burst + rate × time"},
	{Colour: chart.Orange, Text: "beyond"},
}

// simChart draws what was admitted of the first key: what the limit allows at the left, and the excess.
func simChart(r *sim.Report) chart.Chart {
	var rows []chart.Row
	var said []string
	for _, o := range r.Results {
		admitted := float64(o.FirstAdmitted)
		within := min(admitted, math.Floor(r.Allowed))
		rows = append(rows, chart.Row{
			Name: o.Title, Text: fmt.Sprintf("%.0f %% of the limit", 100*o.FirstOfLimit),
			Parts: []chart.Part{{Value: within, Colour: chart.Blue}, {Value: admitted - within, Colour: chart.Orange}},
		})
		said = append(said, fmt.Sprintf("%s %.0f percent of the limit", o.Title, 100*o.FirstOfLimit))
	}
	label := "What each strategy admitted"
	if r.Keys > 1 {
		label += " of the key that is asked for most"
	}
	return chart.Rows(label+": "+strings.Join(said, ", ")+".", rows)
}

func writeSimPage(w io.Writer, r *sim.Report) error { return simPage.Execute(w, r) }

// writeSimPicture writes the chart as an SVG file.
func writeSimPicture(w io.Writer, r *sim.Report) error {
	return chart.Picture{
		Title:    fmt.Sprintf("%s, burst %d, on %d nodes", r.Rate, r.Burst, r.Nodes),
		Subtitle: fmt.Sprintf("%g times that offered for %g s", r.Load, r.Seconds),
		Width:    420,
		Chart:    simChart(r),
		Legend:   simLegend,
	}.Write(w)
}
