package report

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/admin/browsertest"
	"github.com/weir-go/weir/cmd/internal/replay"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/suggest"
)

const phoneRules = `rules:
- {name: everyone, rate: 6/m, burst: 10}
- {name: pages-of-the-blog-and-of-nothing-else, match: {path: /blog/}, rate: 10/m, burst: 10, shadow: true}
- {name: window, algorithm: sliding-window, rate: 100/h}
- {name: agents, rate: 9/m, key: "header:User-Agent"}
- {name: api, rate: 5/s, key: "header:X-API-Key"}
`

// TestThePageFitsAPhone: the page of a real log fits a phone. Neither the page nor a table must be scrolled sideways.
func TestThePageFitsAPhone(t *testing.T) {
	f, err := rulefile.Parse("weir.yaml", []byte(phoneRules))
	require.NoError(t, err)
	log, err := accesslog.Open([]string{"../replay/testdata/apache_access_excerpt.log"}, "")
	require.NoError(t, err)
	defer log.Close()
	r, err := replay.RunRules(f, replay.RulesOptions{Trace: true}, log)
	require.NoError(t, err)
	defer r.Close()
	page := &Page{Source: "apache_access_excerpt.log (combined)", Rules: "weir.yaml", Top: 10, Report: r,
		Suggestions: make([]*suggest.Suggestion, len(r.Rules))}
	for i := range r.Rules {
		if r.Rules[i].Blind == "" {
			page.Suggestions[i], err = suggest.Find(r.Rules[i].Rule, r.Rules[i].Trace, r.Rules[i].Names,
				suggest.Goal{Percent: 5}, nil)
			require.NoError(t, err)
		}
	}
	fitsAPhone(t, page.Write)
}

// TestTheUsagePageFitsAPhone: the page of a usage log fits a phone, too.
func TestTheUsagePageFitsAPhone(t *testing.T) { fitsAPhone(t, usagePage(t).Write) }

func fitsAPhone(t *testing.T, write func(io.Writer) error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, write(file))
	require.NoError(t, file.Close())

	b := browsertest.New(t)
	b.Do(chromedp.Navigate("file://" + path))
	b.Evaluate(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`, nil)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 390, 1280} {
			b.Do(b.Size(width, 844, scheme))
			assert.Zero(t, b.Over(), "%d pixels wide", width)
			var cut []string
			b.Evaluate(`[...document.querySelectorAll("table, .wide, section, .pair > *")]
				.filter((e) => e.scrollWidth > e.clientWidth + 1)
				.map((e) => e.tagName + " " + e.className + " " + e.textContent.trim().slice(0, 40))`, &cut)
			assert.Empty(t, cut, "%d pixels wide", width)
		}
	}
	b.NoProblems()
}
