package report

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/replay"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/suggest"
	"github.com/weir-go/weir/cmd/internal/usagelog"
	"github.com/weir-go/weir/engine"
)

const rules = `rules:
- {name: client, rate: 10/m, burst: 5}
- {name: agents, rate: 100/h, algorithm: sliding-log, key: header:User-Agent, shadow: true}
- {name: nobody, rate: 1/s, match: {path: /nowhere}}
- {name: blind, rate: 1/s, match: {host: a.example}}
`

// made returns a page about the excerpt of a log, with suggestions.
func made(t *testing.T) *Page {
	t.Helper()
	f, err := rulefile.Parse("weir.yaml", []byte(rules))
	require.NoError(t, err)
	log, err := os.ReadFile("../replay/testdata/apache_access_excerpt.log")
	require.NoError(t, err)
	evil := `<script>x</script> - - [17/May/2015:14:06:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"` + "\n"
	lines := string(log) + strings.Repeat(evil, 9)
	r, err := replay.RunRules(f, replay.RulesOptions{Trace: true}, accesslog.NewLog(strings.NewReader(lines)))
	require.NoError(t, err)
	p := &Page{Source: "access.log", Rules: "weir.yaml", Top: 50, Report: r}
	for i := range r.Rules {
		var s *suggest.Suggestion
		if r.Rules[i].Blind == "" {
			s, err = suggest.Find(r.Rules[i].Rule, r.Rules[i].Trace, r.Rules[i].Names, suggest.Goal{Percent: 5}, nil)
			require.NoError(t, err)
		}
		p.Suggestions = append(p.Suggestions, s)
	}
	return p
}

func TestThePage(t *testing.T) {
	p := made(t)
	var out strings.Builder
	require.NoError(t, p.Write(&out))
	page := out.String()
	assert.False(t, strings.Contains(page, "<script"), "neither ours nor a client's")
	assert.True(t, strings.Contains(page, "&lt;script&gt;x&lt;/script&gt;"), "its name is shown")
	assert.False(t, regexp.MustCompile(`(?:src|href)=|url\(|@import|https?:`).MatchString(page), "it needs no network")
	for _, want := range []string{
		"What weir.yaml would have refused in access.log", `<meta name="viewport"`, "prefers-color-scheme: dark", `lang="en"`,
		"cannot be judged from this log: the log does not have the host of a request",
		"No request of this log matches.", "No suggestion: the rule counts no request of this log.",
		"<code>" + p.Suggestions[0].Point().Settings() + "</code>",
	} {
		assert.True(t, strings.Contains(page, want), want)
	}
	for i := range p.Report.Rules {
		assert.True(t, strings.Contains(page, "<h2>"+p.Report.Rules[i].Rule.Name), p.Report.Rules[i].Rule.Name)
	}
}

// TestCharts: every chart is well-formed, has a description, and stays inside its frame.
func TestCharts(t *testing.T) {
	var out strings.Builder
	require.NoError(t, made(t).Write(&out))
	charts := regexp.MustCompile(`(?m)^<svg class="chart".*</svg>$`).FindAllString(out.String(), -1)
	assert.Len(t, charts, 1+2+1, "all requests; two rules that count some, one with a suggestion")
	for _, chart := range charts {
		assert.Regexp(t, `^<svg [^>]*role="img" aria-label="[^"]{20,}\."`, chart)
		decoder := xml.NewDecoder(strings.NewReader(chart))
		for {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
		assert.NotContains(t, chart, "NaN")
		assert.NotContains(t, chart, "Inf")
		field := strings.ReplaceAll(chart, `class="tick" x="-6"`, "") // numbers to the left of the vertical axis
		assert.NotRegexp(t, `="-\d`, field, "a place outside")
	}
}

// TestTheTableSaysWhatTheBarsSay: the bars of a chart add up to the number of requests. So do the rows of the table
// next to it.
func TestTheTableSaysWhatTheBarsSay(t *testing.T) {
	p := made(t)
	var requests, refused uint64
	for _, row := range rows(p.Report.Series) {
		requests, refused = requests+row.Requests, refused+row.Refused
	}
	assert.Equal(t, p.Report.Requests, requests)
	assert.Equal(t, p.Report.Refused, refused)
}

func TestJSON(t *testing.T) {
	p := made(t)
	var out strings.Builder
	require.NoError(t, WriteJSON(&out, p.Report, p.Suggestions))
	var got struct {
		Rules []struct {
			Name       string
			Suggestion *struct {
				Best     *jsonPoint
				Others   []jsonPoint    `json:"trade_off"`
				Affected []jsonAffected `json:"most_affected"`
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	best := p.Suggestions[0].Point()
	assert.Equal(t, best.Rate.String(), got.Rules[0].Suggestion.Best.Rate)
	assert.Equal(t, best.Burst, got.Rules[0].Suggestion.Best.Burst)
	assert.Len(t, got.Rules[0].Suggestion.Others, len(p.Suggestions[0].Curves[p.Suggestions[0].Best].Points))
	require.NotEmpty(t, got.Rules[0].Suggestion.Affected)
	assert.Equal(t, p.Suggestions[0].Affected[0].Refused, got.Rules[0].Suggestion.Affected[0].Refused)
	assert.Equal(t, p.Suggestions[0].Affected[0].First, got.Rules[0].Suggestion.Affected[0].First)
	assert.Nil(t, got.Rules[2].Suggestion.Best)
	assert.Nil(t, got.Rules[3].Suggestion)
}

// usagePage is a page of a usage log, with a suggestion.
func usagePage(t *testing.T) *UsagePage {
	t.Helper()
	log, err := usagelog.Read([]string{"../usagelog/testdata/usage.jsonl"}, usagelog.Options{})
	require.NoError(t, err)
	log.Requests[0].Key = "<script>x</script>"
	r, err := replay.NewUsage(log, true)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	require.NoError(t, r.Try(engine.TokenBucket(engine.Per(30_000, time.Minute), 30_000), nil))
	rule := rulefile.NewRule("tokens")
	rule.Policy = r.Policy
	s, err := suggest.Find(&rule, r.Trace, r.Names, suggest.Goal{}, nil)
	require.NoError(t, err)
	return &UsagePage{Source: "usage.jsonl", Top: 10, Report: r, Suggestion: s}
}

// TestTheUsagePage: the page of a usage log has the numbers of each estimate and the suggestion. It also says what is
// not known.
func TestTheUsagePage(t *testing.T) {
	p := usagePage(t)
	var out strings.Builder
	require.NoError(t, p.Write(&out))
	page := out.String()
	assert.NotContains(t, page, "<script")
	assert.NotRegexp(t, `(?:src|href)=|url\(|@import|https?:`, page)
	for _, want := range []string{
		"What token bucket 30000/m burst 30000 would have done to the tokens of usage.jsonl", `<meta name="viewport"`, "prefers-color-scheme: dark",
		"estimate: learned", "estimate: none", "<dd>715,409</dd>", "keys, by team", "learned: the first 20 requests for a model hold what they cost",
		"<code>" + p.Suggestion.Point().Settings() + "</code>", "As if the cost of each request were known before it.",
	} {
		assert.Contains(t, page, want)
	}
	assert.Len(t, regexp.MustCompile(`(?m)^<svg class="chart".*</svg>$`).FindAllString(page, -1), 3+1, "an estimate each, and the suggestion")
	for i := range p.Report.Estimates {
		e := &p.Report.Estimates[i]
		assert.Equal(t, p.Report.Requests, e.Allowed+e.Refused)
		assert.Equal(t, p.Report.Tokens, e.Admitted+e.Rejected)
	}
	out.Reset()
	require.NoError(t, WriteUsageJSON(&out, p.Report, p.Suggestion))
	var got struct {
		Suggestion struct{ Best jsonPoint }
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	assert.Equal(t, p.Suggestion.Point().Rate.String(), got.Suggestion.Best.Rate)
	out.Reset()
	require.NoError(t, WriteUsageJSON(&out, p.Report, nil))
	assert.NotContains(t, out.String(), "suggestion")
}
