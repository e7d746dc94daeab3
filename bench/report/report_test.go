package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/markdown"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/target"
	"github.com/weir-go/weir/internal/chart"
)

// sample returns a run that has at least one result of every kind, and text that must be escaped.
func sample() *result.Run {
	entries := []result.Entry{
		{Name: measure.FloorTSC, Floor: measure.FloorTSC, Nanos: []float64{20, 22, 21}, AllowedFraction: 1},
		{Name: measure.WeirTSC, Floor: measure.FloorTSC, Nanos: []float64{30, 44, 31}, AllowedFraction: 1},
		{Name: "slow & <odd>", Floor: measure.FloorTSC, Nanos: []float64{200, 210, 190}, AllowedFraction: 1, Allocs: 2,
			Bytes: 48},
		{Name: "gives up", Error: "97 % of the decisions were allowed: want 100 %"},
		{Name: "un-keyed", Cannot: "one limit for everybody"},
	}
	back := []result.Entry{
		{Name: measure.WeirTSC, Floor: measure.FloorTSC, Nanos: []float64{21, 22, 23}, AllowedFraction: 1},
		{Name: measure.WeirNeverIdle, Floor: measure.FloorTSC, Nanos: []float64{20, 20, 20}, AllowedFraction: 1},
	}
	delays := experiment.Delays{Calls: 1000, Sweeps: 3}
	for i := range experiment.Percentiles {
		delays.Service = append(delays.Service, int64(100+i*50))
		delays.Response = append(delays.Response, int64(100+i*i*9000))
	}
	r := &result.Run{
		Machine: result.ThisMachine(), Command: `weir bench --html "a<b>.html"`, Rounds: 3,
		Started: time.Unix(1e9, 0).UTC(), Took: time.Minute,
		Rows: []result.Row{
			{Name: "allowed-1k", Title: "allowed, 1,000 keys", Cores: 1, Entries: entries},
			{Name: "allowed-1k", Title: "allowed, 1,000 keys", Cores: 2, Entries: entries},
			{Name: "full-1k", Title: "1,000 keys in a table for 1,000", Cores: 1, Entries: entries},
			{Name: "flood", Title: "a flood", Cores: 2, Entries: entries},
			{Name: "hot", Title: "one hot key", Cores: 2,
				Entries: []result.Entry{{Name: measure.FloorHot, Nanos: []float64{9, 9, 9}}}},
			{Name: "returning-1k", Title: "1,000 keys that come back idle", Cores: 1, Entries: back,
				Found: &result.Found{Counted: experiment.Counted{Requests: 1000, Found: 993}}},
			{Name: "returning-1k/zipf", Title: "a variant", Cores: 1, Entries: back,
				Found: &result.Found{Error: "it was not counted"}},
		},
		Touched: []result.Touched{{Huge: true, Held: experiment.Held{Keys: 10, Resident: 21e6, Declared: 26.9e6}},
			{Error: "no small pages"}},
		Parts: []result.Entry{{Name: measure.Hash, Nanos: []float64{10, 11, 12}}},
		Tables: []result.Table{{Bytes: 16 << 20, Huge: true, Nanos: []float64{40, 41, 42},
			Note: "only 2 of 16 MiB are in huge pages"}},
		Memory: []result.Memory{{Name: measure.WeirTSC, Held: experiment.Held{Keys: 1e6, Resident: 27e6, Declared: 26e6}},
			{Name: "big", Held: experiment.Held{Keys: 1e6, Heap: 2e8}}, {Name: "dead", Error: "out of memory"}},
		Collect: []result.Collect{{Name: experiment.Empty, Nanos: []int64{200_000}},
			{Name: measure.WeirTSC, Nanos: []int64{300_000}}},
		Latency: []result.Latency{{Beside: experiment.Sweep, Delays: delays},
			{Beside: experiment.Sweep, Empty: true, Delays: delays}, {Beside: experiment.Flood, Error: "it stopped"}},
		Calls: []experiment.Allocated{{Name: "Allow"}},
		Peers: []result.Peer{{Name: "slow & <odd>", Version: "v1.2.3", How: "as it comes",
			Cannot: map[peers.Ability]string{peers.Bound: "it grows"}}},
		Absent: peers.NotMeasured(),
	}
	r.Targets = target.Evaluate(r)
	return r
}

// The text under a row's table compares weir with the do-it-yourself limiter that reads the same clock, and names
// missing subjects.
func TestWhatStandsUnderARow(t *testing.T) {
	six := func(ns float64) []float64 { return []float64{ns, ns, ns, ns, ns, ns} }
	r := &result.Row{Name: "allowed-1k", Cores: 1, Entries: []result.Entry{
		{Name: measure.WeirTSC, Nanos: six(28)}, {Name: peers.DIYCounter, Nanos: six(20)},
	}}
	known := []result.Peer{{Name: peers.DIYCounter}, {Name: "uber-go/ratelimit (un-keyed)",
		Cannot: map[peers.Ability]string{peers.Keys: "one limit for everybody"}}, {Name: "echo"}, {Name: "tollbooth"}}
	assert.Equal(t, "Same clock, weir by the do-it-yourself word: 1.40 (1.40-1.40) by the counter. "+
		"Without one limit for everybody: uber-go/ratelimit (un-keyed); no time for it in this run: echo, tollbooth.", row(r, known).Note)
}

// wellFormed fails the test unless the text is XML, and returns all character data.
func wellFormed(t *testing.T, text []byte) string {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Entity = xml.HTMLEntity
	var words strings.Builder
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return words.String()
		}
		require.NoError(t, err)
		if c, ok := token.(xml.CharData); ok {
			words.Write(c)
			words.WriteByte('\n')
		}
	}
}

// The function said returns the texts that every form of the report must contain.
func said(r *result.Run) []string {
	words := []string{"97 % of the decisions were allowed", "one limit for everybody", "only 2 of 16 MiB", "out of memory",
		"it stopped", "it grows", "v1.2.3", "as it comes", "99.30 %", "it was not counted", "21.00", "no small pages"}
	for _, x := range r.Targets {
		words = append(words, x.Row, x.Target, x.Verdict, x.Why)
	}
	for _, row := range r.Rows {
		if row.Name != "returning-1k/zipf" { // variants share one table, which contains their names
			words = append(words, row.Title)
		}
		words = append(words, row.Name)
		for _, e := range row.Entries {
			words = append(words, e.Name)
		}
	}
	for _, a := range r.Absent {
		words = append(words, a.Name, a.Reason)
	}
	return words
}

func TestTextSaysEverything(t *testing.T) {
	r := sample()
	var b strings.Builder
	require.NoError(t, Text(&b, r))
	for _, word := range said(r) {
		assert.Contains(t, b.String(), word)
	}
	assert.Less(t, strings.Index(b.String(), "Targets"), strings.Index(b.String(), "allowed, 1,000 keys ("),
		"targets come first")
	assert.Regexp(t, `weir, TSC clock +31.0 +1.50 +none by 3 rounds `, b.String())
	assert.NotRegexp(t, `(?m) $`, b.String())
	assert.Regexp(t, `returning-1k +1 +22.0 +20.0 +1.10 +none by 3 rounds +±7 % +99.30 %`, b.String())
	assert.NotContains(t, b.String(), "a variant")
}

func TestPageSaysEverything(t *testing.T) {
	r := sample()
	var b bytes.Buffer
	require.NoError(t, HTML(&b, r))
	text := wellFormed(t, b.Bytes())
	for _, word := range said(r) {
		assert.Contains(t, text, word)
	}
	assert.Contains(t, text, r.Command)
	assert.Regexp(t, `role="img" aria-label="allowed, 1,000 keys, 1 core. Time of a decision`, b.String())
	assert.NotRegexp(t, `role="img" (aria-label=""|[^a])`, b.String(), "every chart says what it shows")
	for _, outside := range []string{"http:", "https:", "src=", "@import", "<script", "url("} {
		assert.NotContains(t, strings.ReplaceAll(b.String(), "http://www.w3.org/2000/svg", ""), outside,
			"the page needs nothing else")
	}
}

// In a document, a row's table has columns for every number of cores, even if some subjects lack some of these numbers.
func TestSideBySide(t *testing.T) {
	six := func(ns float64) []float64 { return []float64{ns, ns, ns, ns, ns, ns} }
	entry := func(name string, ns float64) result.Entry {
		return result.Entry{Name: name, Floor: measure.FloorTSC, Nanos: six(ns)}
	}
	costly := entry("costly", 60)
	costly.Allocs, costly.Bytes = 2, 48
	r := &result.Run{Rows: []result.Row{
		{Name: "allowed-1k", Title: "allowed", Cores: 1, Entries: []result.Entry{entry(measure.FloorTSC, 20), costly,
			entry(measure.WeirTSC, 30), {Name: "juju", Cannot: "one limit"}}},
		{Name: "allowed-1k", Title: "allowed", Cores: 2, Entries: []result.Entry{entry(measure.FloorTSC, 10),
			entry(measure.WeirTSC, 16), entry("late", 50), {Name: "broken", Error: "it stopped"}}},
	}, Peers: []result.Peer{{Name: "late"}, {Name: "juju"}, {Name: "echo"}}}
	all := sideBySide(r)
	require.Len(t, all, 1)
	assert.Equal(t, []string{"", "1 core, ns", "x floor", "2 cores, ns", "x floor"}, all[0].Head)
	var cells [][]string
	for _, l := range all[0].Rows {
		cells = append(cells, l.Cells)
	}
	assert.Equal(t, [][]string{
		{measure.FloorTSC, "20.0", "1.00 (1.00-1.00)", "10.0", "1.00 (1.00-1.00)"},
		{measure.WeirTSC, "30.0", "1.50 (1.50-1.50)", "16.0", "1.60 (1.60-1.60)"},
		{"costly", "60.0 (2 allocs, 48 bytes)", "3.00 (3.00-3.00)", "", ""},
		{"late", "", "", "50.0", "5.00 (5.00-5.00)"},
		{"broken", "", "", "failed", "it stopped"},
	}, cells)
	assert.Equal(t, "Without one limit: juju; no time for it in this run: echo.", all[0].Note)
}

// Each target has exactly one line in a document, whatever its rows and verdicts.
func TestTargetsTogether(t *testing.T) {
	lines := targetTable(&result.Run{Targets: []result.Target{
		{Row: "a, 1 core", Target: "fast", Measured: "1.61", Spread: "1.50 - 1.69, 20 rounds", Verdict: target.Missed, Why: "x"},
		{Row: "a, 2 cores", Target: "fast", Measured: "1.10 (y)", Spread: "1.00 - 1.20, 20 rounds, of 5", Verdict: target.Met},
		{Row: "b, 1 core", Target: "fast", Measured: "1.20", Spread: "none by 3 rounds", Verdict: target.Undecided},
		{Row: "gc", Target: "short", Measured: "9 ms", Spread: "1 ms, empty", Verdict: target.Missed, Why: "busy"},
		{Row: "a", Target: "fast", Verdict: target.Unmeasured}, {Row: "c, 1 core", Target: "fast", Measured: "0.90", Verdict: target.Met},
	}}).Rows
	require.Len(t, lines, 2)
	assert.Equal(t, []string{"fast", "a, 2 cores: 1.10 (y) (1.00-1.20); c, 1 core: 0.90",
		"b, 1 core: 1.20 (none by 3 rounds); a: not measured", "a, 1 core: 1.61 (1.50-1.69)"}, lines[0].Cells)
	assert.Equal(t, []string{"short", "", "", "gc: 9 ms (1 ms, empty; busy)"}, lines[1].Cells)
}

// Document writes all tables between the two lines and keeps the text around them. A second call changes nothing.
func TestDocument(t *testing.T) {
	r := sample()
	path := filepath.Join(t.TempDir(), "doc.md")
	const around = "# Speed\n\n%s%s\nafter\n"
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, around, markdown.Begin(docsCommand), "old\n"+markdown.End), 0o600))
	for range 2 {
		require.NoError(t, Document(path, r))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(text), "# Speed\n") &&
			strings.HasSuffix(string(text), markdown.End+"\nafter\n"))
		assert.NotContains(t, string(text), "old\n")
		assert.Contains(t, string(text), "\n| `allowed-1k` | allowed, 1,000 keys | 31.0 ns | 1.50 | 31.0 ns | 1.50 |\n")
		for _, table := range slices.Concat([]table{targetTable(r)}, sideBySide(r), costs(r)) {
			for _, l := range table.Rows {
				for _, cell := range append(l.Cells, l.Under...) {
					assert.Contains(t, string(text), cell)
				}
			}
		}
		for _, l := range strings.Split(string(text), "\n") { // every line of a table has as many cells as the head
			if strings.HasPrefix(l, "|---") {
				assert.Regexp(t, `^(\|---)+\|$`, l)
			}
		}
	}
	require.NoError(t, Short(path, r))
	short, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, want := range []string{"\n| 1 core | full-1k |\n", "\n| 2 cores | flood |\n", "\n| weir, TSC clock | 31.0 |\n",
		"![1,000 keys in a table for 1,000, 1 core](images/bench-speed.svg)\n", "![a flood, 2 cores](images/bench-flood-2.svg)\n"} {
		assert.Contains(t, string(short), want)
	}
	assert.NotContains(t, string(short), "/zipf")
	require.NoError(t, os.WriteFile(path, []byte("nothing\n"), 0o600))
	assert.ErrorContains(t, Document(path, r), "want the lines")
	assert.ErrorIs(t, Document(path+"x", r), os.ErrNotExist)
}

func TestPageOfNothing(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, HTML(&b, &result.Run{Targets: target.Evaluate(&result.Run{})}))
	assert.Contains(t, wellFormed(t, b.Bytes()), "not measured")
}

func TestCharts(t *testing.T) {
	folder, r := t.TempDir(), sample()
	require.NoError(t, WriteCharts(folder, r))
	for name, words := range map[string][]string{
		"bench-flood-2.svg": {"a flood, 2 cores"},
		SpeedChart:          {"1,000 keys in a table for 1,000, 1 core", "slow & <odd>", measure.WeirTSC, "1.50 × · 31 ns"},
		MemoryChart:         {"big", "200 bytes", "27 bytes"},
	} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		for _, word := range words {
			assert.Contains(t, wellFormed(t, text), word, name)
		}
	}
	assert.ErrorContains(t, WriteCharts(folder, &result.Run{}), "the run has no row full-1k on one core")
	r.Memory = nil
	assert.ErrorContains(t, WriteCharts(folder, r), "the run measured no memory")
	assert.Error(t, WriteCharts(filepath.Join(folder, "missing"), sample()))
}

// The shortest bar comes first, and subjects without a bar are named.
func TestBars(t *testing.T) {
	r := sample()
	c := rowBars(&r.Rows[0])
	assert.Equal(t, []bar{
		{measure.FloorTSC, "1.00 × · 21 ns", 1, 1, 1},
		{measure.WeirTSC, "1.50 × · 31 ns", 1.5, 31.0 / 21, 2},
		{"slow & <odd>", "9.55 × · 200 ns", 210.0 / 22, 190.0 / 21, 10},
	}, c.Bars)
	assert.Equal(t, []string{"gives up failed: 97 % of the decisions were allowed: want 100 %"}, c.Missing)
	assert.Contains(t, string(c.Chart().HTML()), "slow &amp; &lt;odd&gt;")
}

func TestAxes(t *testing.T) {
	assert.Equal(t, 0.0, nines(0))
	assert.InDelta(t, 2.0/6, nines(99), 1e-9)
	assert.InDelta(t, 4.0/6, nines(99.99), 1e-9)
	assert.Equal(t, 1.0, nines(100))
	assert.Equal(t, "worst", percentileAxis().Ticks[6].Text)
	for worst, want := range map[int64]string{0: "1ms", 1_000_000: "1ms", 1_000_001: "10ms", 3e9: "10s"} {
		axis := latencyAxis([]result.Latency{{Delays: experiment.Delays{Response: []int64{500, worst}}}})
		top := axis.Ticks[len(axis.Ticks)-1]
		assert.Equal(t, want, top.Text, worst)
		assert.Equal(t, 1.0, axis.Place(top.At))
	}
}

func TestScaling(t *testing.T) {
	r := sample()
	charts := scalingCurves(r)
	require.Len(t, charts, 1, "of rows on more than one number of cores")
	require.Len(t, charts[0].curves, 2, "of what was measured on both")
	assert.Equal(t, []chart.Point{{X: 1, Y: 1000.0 / 31}, {X: 2, Y: 1000.0 / 31}}, charts[0].curves[0].points)
	assert.Empty(t, scalingLines[0].points, "the list is not changed")
}

// TestAMachineWithoutATrustedCounter: weir with the precise clock, and its floor, are what a row is compared with.
func TestAMachineWithoutATrustedCounter(t *testing.T) {
	row := result.Row{Name: "zipf-1m", Cores: 1, Entries: []result.Entry{
		{Name: measure.FloorPrecise, Floor: measure.FloorPrecise, Nanos: []float64{20}},
		{Name: measure.WeirTSC, Cannot: "no counter"},
		{Name: measure.WeirPrecise, Floor: measure.FloorPrecise, Nanos: []float64{30}},
		{Name: "slow", Floor: measure.FloorPrecise, Nanos: []float64{60}},
	}}
	assert.Equal(t, measure.FloorPrecise, floorOf(&row))
	assert.Contains(t, relativeToWeir(&row, "slow", 1), "60.0 (2.00")
	lines := weirOnRows(&result.Run{Rows: []result.Row{row}}).Rows
	assert.Len(t, lines, 1)
	assert.Equal(t, "1.50", lines[0].Cells[3])
	glance := glanceTable(&result.Run{Rows: []result.Row{row}, Rounds: 1}, 1, "")
	assert.Equal(t, measure.WeirPrecise, glance.Rows[0].Cells[0])
}
