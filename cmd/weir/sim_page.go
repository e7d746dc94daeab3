package main

import (
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/dustin/go-humanize"

	"github.com/weir-go/weir/cmd/weir/internal/chart"
	"github.com/weir-go/weir/redislimit/sim"
)

// simTemplates are a page by itself, in the colours of the other reports, and its chart as a picture.
var simTemplates = template.Must(template.New("page").Funcs(template.FuncMap{
	"comma":   func(n uint64) string { return humanize.Comma(int64(n)) },
	"percent": percent,
	"chart":   simChart,
	"height":  func(r *sim.Report, more int) int { return len(r.Results)*chart.RowHeight + more },
}).Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>weir sim: {{.Rate}} on {{.Nodes}} nodes</title>
<style>
{{template "colours"}}
* { box-sizing:border-box; }
body { margin:0 auto; padding:1rem; max-width:64rem; color:var(--ink); background:var(--back); font:16px/1.5 system-ui, sans-serif; }
h1 { font-size:1.5rem; line-height:1.25; margin:.25rem 0 1rem; }
p { margin:.5rem 0; }
.soft { color:var(--soft); font-size:.9rem; }
.wide { overflow-x:auto; margin:1.25rem 0; }
.wide:focus-visible { outline:2px solid var(--part); }
table { border-collapse:collapse; width:100%; font-size:.9rem; font-variant-numeric:tabular-nums; }
th, td { text-align:right; padding:.3rem .5rem; border-bottom:1px solid var(--line); white-space:nowrap; }
thead th { white-space:normal; vertical-align:bottom; line-height:1.25; color:var(--soft); font-weight:normal; }
th:first-child { text-align:left; }
tbody th { font-weight:normal; }
thead th:nth-child(2), td:nth-child(2) { text-align:left; }
.broken { color:var(--rest); font-weight:bold; }
.rows { display:block; max-width:44rem; margin:1.25rem 0 .5rem; }
.key-rest::before, .key-part::before { content:""; display:inline-block; width:.8em; height:.8em; margin-right:.35em; border-radius:.15em; background:var(--part); }
.key-rest::before { background:var(--rest); }
.key-part { margin-right:1em; }
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
{{chart .}}
<p class="soft"><span class="key-part">within burst + rate × time</span> <span class="key-rest">beyond</span></p>
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
{{define "colours"}}:root { --ink:#1b2430; --soft:#566373; --line:#d5dbe3; --back:#fff; --rest:#c8500a; --part:#4a83bd; }
@media (prefers-color-scheme: dark) {
  :root { --ink:#e6eaf0; --soft:#a3afbd; --line:#3a4553; --back:#12171d; --rest:#ff8f4d; --part:#6ea8e0; }
}
.rows text { font:14px system-ui, sans-serif; fill:var(--ink); }
.rows .value { fill:var(--soft); font-variant-numeric:tabular-nums; }
.rows .rest { fill:var(--rest); }
.rows .part { fill:var(--part); }{{end}}
{{define "picture"}}<svg xmlns="http://www.w3.org/2000/svg" width="420" height="{{height . 96}}" viewBox="0 0 420 {{height . 96}}">
<style>{{template "colours"}}
.head, .key { font:600 14px system-ui, sans-serif; fill:var(--ink); }
.key { font-weight:normal; font-size:13px; fill:var(--soft); }
</style>
<rect width="100%" height="100%" rx="8" fill="var(--back)"/>
<text class="head" x="14" y="24">{{.Rate}}, burst {{.Burst}}, on {{.Nodes}} nodes</text>
<text class="key" x="14" y="43">{{.Load}} times that offered for {{.Seconds}} s</text>
<svg x="14" y="56" width="392">{{chart .}}</svg>
<rect x="14" y="{{height . 69}}" width="11" height="11" fill="var(--part)"/><text class="key" x="31" y="{{height . 79}}">within burst + rate × time</text>
<rect x="214" y="{{height . 69}}" width="11" height="11" fill="var(--rest)"/><text class="key" x="231" y="{{height . 79}}">beyond</text>
</svg>
{{end}}`))

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// simChart draws what was admitted of the first key: what is allowed at the left.
func simChart(r *sim.Report) template.HTML {
	var rows []chart.Row
	allowed := uint64(math.Floor(r.Allowed))
	sentence := "What each strategy admitted"
	if r.Keys > 1 {
		sentence += " of the key that is asked for most"
	}
	for i, o := range r.Results {
		rows = append(rows, chart.Row{
			Name: o.Title, Text: fmt.Sprintf("%.0f %% of the limit", 100*o.FirstOfLimit),
			Bar: chart.Bar{All: o.FirstAdmitted, Part: min(o.FirstAdmitted, allowed)},
		})
		between := ", "
		if i == 0 {
			between = ": "
		}
		sentence += fmt.Sprintf("%s%s %.0f percent of the limit", between, o.Title, 100*o.FirstOfLimit)
	}
	return chart.Rows(sentence+".", rows)
}

func writeSimPage(w io.Writer, r *sim.Report) error { return simTemplates.Execute(w, r) }

// writeSimPicture writes the chart as an SVG file.
func writeSimPicture(w io.Writer, r *sim.Report) error {
	return simTemplates.ExecuteTemplate(w, "picture", r)
}
