package run

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/child"
	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/workload"
)

func TestMain(m *testing.M) {
	if child.Main(experiment.All(), os.Stdout) {
		return
	}
	os.Exit(m.Run())
}

func TestScheduleErrors(t *testing.T) {
	_, err := NewSchedule(Default, []string{"zipf"}, 0)
	assert.ErrorContains(t, err, `row "zipf": did you mean zipf-1m? want one of allowed-1, `)
	assert.ErrorContains(t, err, "parts, tables, memory, gc, latency, allocations")
	for _, rounds := range []int{-1, 1001} {
		_, err = NewSchedule(Quick, nil, rounds)
		assert.ErrorContains(t, err, "rounds: want 1 to 1000")
	}
}

// A full run has every supported peer on every row, except on rows of keys that come back. A shorter run has at least
// weir on all rows.
func TestSchedulesAreComplete(t *testing.T) {
	for _, effort := range []Effort{Quick, Default, Full} {
		p, err := NewSchedule(effort, nil, 0)
		require.NoError(t, err)
		assert.Equal(t, efforts[effort].rounds, p.Rounds)
		assert.Positive(t, p.Estimate())
		for _, row := range workload.Rows() {
			var names []string
			for _, c := range p.cells {
				if c.row.Name == row.Name {
					names = append(names, c.subjects...)
					assert.Positive(t, c.rounds)
				}
			}
			for _, name := range measure.Of(&row) {
				assert.Equal(t, measure.Cannot(&row, name) == "", slices.Contains(names, name), "%s on %s", name, row.Name)
			}
			if row.Missing() != "" {
				assert.Contains(t, p.missing, row)
			}
			for _, peer := range peers.All() {
				if effort == Full && !row.Batch && !row.Aged && !row.Returning {
					able := measure.Cannot(&row, peer.Name) == ""
					assert.Equal(t, able, slices.Contains(names, peer.Name), "%s on %s", peer.Name, row.Name)
				}
			}
		}
	}
	for _, name := range shortRunPeers {
		assert.True(t, slices.ContainsFunc(peers.All(), func(p peers.Peer) bool { return p.Name == name }), name)
	}
}

// The effort determines which variants are measured. Found records are counted once for each row.
func TestScheduleOfVariants(t *testing.T) {
	for effort, want := range map[Effort]int{Quick: 0, Default: 4, Full: 11} {
		p, err := NewSchedule(effort, []string{"returning-1k"}, 0)
		require.NoError(t, err)
		variants, rows := 0, map[string]bool{}
		for _, c := range p.cells {
			rows[c.row.Name] = true
			if c.row.Differences() > 0 {
				variants++
				assert.Len(t, c.subjects, 3)
				assert.Equal(t, efforts[effort].slow, c.rounds)
				assert.Equal(t, 1, c.cores)
			}
		}
		assert.Equal(t, want, variants)
		assert.Len(t, p.steps(), len(rows), "one count of a row")
	}
}

// If a row cannot be loaded, the run has the row with the reason. A process reads the log only once, so this test is
// skipped if another test has already read a log.
func TestDoNamesAMissingRow(t *testing.T) {
	t.Setenv("WEIR_ACCESS_LOG", "")
	row, err := workload.Find("access-log")
	require.NoError(t, err)
	if row.Missing() == "" {
		t.Skip("the log was read before")
	}
	p, err := NewSchedule(Quick, []string{"access-log"}, 1)
	require.NoError(t, err)
	r, err := p.Do(t.Context(), "test", func() {})
	require.NoError(t, err)
	require.Len(t, r.Rows, 1)
	weir, _ := measure.Default()
	e, ok := r.Rows[0].Entry(weir)
	require.True(t, ok)
	assert.Equal(t, "WEIR_ACCESS_LOG names no access log", e.Cannot)
	assert.Empty(t, Broken(r))
}

// The run contains the found records and the figures about memory.
func TestDoCountsAndTouches(t *testing.T) {
	p, err := NewSchedule(Quick, []string{"returning-1k"}, 1)
	require.NoError(t, err)
	for i := range p.cells {
		p.cells[i].each = 1e6
	}
	r, err := p.Do(t.Context(), "test", func() {})
	require.NoError(t, err)
	assert.Empty(t, Broken(r))
	row, ok := r.Row("returning-1k", 1)
	require.True(t, ok)
	require.NotNil(t, row.Found)
	assert.Greater(t, row.Found.Fraction(), 0.9)
	weir, _ := measure.Default()
	_, ok = row.Ratio(weir, measure.WeirNeverIdle)
	assert.True(t, ok)

	run := new(result.Run)
	touchedStep(true).do(t.Context(), run, 0)
	require.Len(t, run.Touched, 1)
	assert.Empty(t, run.Touched[0].Error)
	assert.Equal(t, 10, run.Touched[0].Keys)
}

// TestDo checks that a run measures in separate processes, with a run as short as possible.
func TestDo(t *testing.T) {
	p, err := NewSchedule(Quick, []string{"denied-1k", Parts, Calls}, 1)
	require.NoError(t, err)
	for i := range p.cells {
		p.cells[i].each = 1e6
	}
	steps := 0
	r, err := p.Do(t.Context(), "test", func() { steps++ })
	require.NoError(t, err)
	assert.Equal(t, p.Steps(), steps)
	assert.Empty(t, Broken(r))
	row, ok := r.Row("denied-1k", 1)
	require.True(t, ok)
	for _, e := range row.Entries {
		switch {
		case e.Cannot != "":
			assert.Zero(t, e.Median())
		default:
			assert.Empty(t, e.Error, e.Name)
			assert.Positive(t, e.Median(), e.Name)
			assert.Zero(t, e.AllowedFraction, "%s allows nothing", e.Name)
			_, ok := row.Ratio(e.Name, e.Floor)
			assert.True(t, ok, e.Name)
		}
	}
	cannot, ok := row.Entry("uber-go/ratelimit (un-keyed)")
	require.True(t, ok, "a peer that cannot is named")
	assert.Equal(t, "it waits, it never says no", cannot.Cannot)
	assert.Len(t, r.Parts, len(measure.Parts()))
	assert.NotEmpty(t, r.Calls)
}

func TestDoEndsWithItsContext(t *testing.T) {
	p, err := NewSchedule(Quick, []string{"allowed-1"}, 1)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Do(ctx, "test", func() {})
	assert.ErrorIs(t, err, context.Canceled)
}

// Wrong decisions of weir or a floor fail a run. Wrong decisions of a peer are only reported.
func TestBroken(t *testing.T) {
	wrong := func(name string) *result.Run {
		return &result.Run{Rows: []result.Row{{Name: "churn",
			Entries: []result.Entry{{Name: name, Error: "97 % were allowed"}}}}}
	}
	assert.Equal(t, []string{"churn: weir, TSC clock: 97 % were allowed"}, Broken(wrong(measure.WeirTSC)))
	assert.Len(t, Broken(wrong(measure.FloorHot)), 1)
	assert.Empty(t, Broken(wrong("throttled")))
	assert.Equal(t, []string{"latency beside a flood of new keys: late"},
		Broken(&result.Run{Latency: []result.Latency{{Beside: experiment.Flood, Error: "late"}}}))
	assert.Len(t, Broken(&result.Run{Memory: []result.Memory{{Name: measure.WeirTSC, Error: "x"},
		{Name: "ulule/limiter", Error: "x"}}}), 1)
	assert.Len(t, Broken(&result.Run{Collect: []result.Collect{{Name: experiment.Empty, Error: "x"},
		{Name: "ulule/limiter", Error: "x"}}}), 1)
	assert.Equal(t, []string{"returning-1k: records found: x"},
		Broken(&result.Run{Rows: []result.Row{{Name: "returning-1k", Found: &result.Found{Error: "x"}}}}))
	assert.Equal(t, []string{"memory that is touched: x"},
		Broken(&result.Run{Touched: []result.Touched{{Huge: true, Error: "x"}, {Error: "small pages cannot be had here"}}}))
	assert.Equal(t, []string{"allocations: x"}, Broken(&result.Run{Failed: []string{"allocations: x"}}))
}
