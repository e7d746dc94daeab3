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

// simPage is a page by itself, in the colours of the other reports.
var simPage = template.Must(template.New("sim").Funcs(template.FuncMap{
	"comma":   func(n uint64) string { return humanize.Comma(int64(n)) },
	"percent": func(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) },
	"chart":   simChart,
}).Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>weir sim: {{.Rate}} on {{.Nodes}} nodes</title>
<style>
:root { --ink:#1b2430; --soft:#566373; --line:#d5dbe3; --back:#fff; --rest:#c8500a; --part:#4a83bd; }
@media (prefers-color-scheme: dark) {
  :root { --ink:#e6eaf0; --soft:#a3afbd; --line:#3a4553; --back:#12171d; --rest:#ff8f4d; --part:#6ea8e0; }
}
body { margin:0 auto; padding:1rem; max-width:60rem; color:var(--ink); background:var(--back); font:16px/1.5 system-ui, sans-serif; }
h1 { font-size:1.5rem; line-height:1.25; }
.soft { color:var(--soft); font-size:.9rem; }
.wide { overflow-x:auto; }
table { border-collapse:collapse; width:100%; font-size:.9rem; font-variant-numeric:tabular-nums; }
th, td { text-align:right; padding:.25rem .4rem; border-bottom:1px solid var(--line); }
th:first-child, td:first-child { text-align:left; white-space:nowrap; }
.chart { display:block; width:100%; max-width:44rem; height:auto; }
.tick { font:12px system-ui, sans-serif; fill:var(--soft); }
.grid { stroke:var(--line); }
.rest { fill:var(--rest); }
.part { fill:var(--part); }
.key-rest::before, .key-part::before { content:""; display:inline-block; width:.8em; height:.8em; margin-right:.35em; background:var(--part); }
.key-rest::before { background:var(--rest); }
.key-rest { margin-left:1em; }
</style>
<h1>{{.Rate}}, burst {{.Burst}}, on {{.Nodes}} nodes at {{.Load}} times that</h1>
<p class="soft">{{comma .Offered}} requests in {{.Seconds}} simulated seconds, of which one limiter for all would have admitted {{comma .Ideal}}.</p>
{{chart .}}
<p class="soft"><span class="key-part">within burst + rate × time</span><span class="key-rest">beyond</span> · admitted of the key that is asked for most; bars are numbered as the lines of the table</p>
<div class="wide" tabindex="0" role="region" aria-label="The strategies">
<table>
<thead><tr><th scope="col">strategy<th scope="col">admitted<th scope="col">of the limit<th scope="col">of the allowed<th scope="col">wrongly refused<th scope="col">calls/key/s<th scope="col">worst excess<th scope="col">bound<th scope="col">
<tbody>
{{range $i, $o := .Results}}<tr><td>{{$i}}: {{.Strategy}}<td>{{comma .Admitted}}<td>{{percent .FirstOfLimit}}<td>{{percent .FirstOfAllowed}}<td>{{percent .RefusedShare}}<td>{{printf "%.1f" .KeyCalls}}<td>{{printf "%.1f" .Worst}}<td>{{.WorstBound}}<td>{{if .Holds}}holds{{else}}broken{{end}}
{{end}}</table>
</div>
{{range .Results}}{{with .Note}}<p class="soft">{{.}}</p>{{end}}{{end}}
</html>
`))

// simChart draws what was admitted of the first key: what is allowed at the bottom.
func simChart(r *sim.Report) template.HTML {
	var bars []chart.Bar
	var labels []string
	allowed := uint64(math.Floor(r.Allowed))
	for i, o := range r.Results {
		bars = append(bars, chart.Bar{All: o.FirstAdmitted, Part: min(o.FirstAdmitted, allowed)})
		labels = append(labels, fmt.Sprint(i))
	}
	return chart.Bars("What each strategy admitted of the key that is asked for most, and how much of that is allowed. The numbers are in the table below.", bars, labels)
}

func writeSimPage(w io.Writer, r *sim.Report) error { return simPage.Execute(w, r) }
