package experiment

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/peers"
	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/internal/testrace"
)

// A row fails if its number of allowed requests does not match its name.
func TestWrong(t *testing.T) {
	admit, refuse := workload.Row{}, workload.Row{Refused: true}
	for _, c := range []struct {
		row     workload.Row
		allowed int
		want    string
	}{
		{admit, 100_000, ""},
		{admit, 99_950, ""},
		{admit, 99_000, "99 % of the decisions were allowed: want 100 %"},
		{admit, 0, "0 % of the decisions were allowed: want 100 %"},
		{refuse, 0, ""},
		{refuse, 60, ""},
		{refuse, 500, "0.5 % of the decisions were allowed: want 0 %"},
	} {
		assert.Equal(t, c.want, Wrong(&c.row, measure.Sample{Ops: 100_000, Allowed: c.allowed}))
	}
	assert.Equal(t, "no decision was made", Wrong(&admit, measure.Sample{}))
}

// Every subject decides as the row requires, alone or in turns with other subjects.
func TestRateOfEverything(t *testing.T) {
	testrace.OneGoroutine(t)
	// Parts of a floor are measured on one processor, without contention.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, name := range []string{"allowed-1k", "denied-1k", "mixed"} {
		row, err := workload.Find(name)
		require.NoError(t, err)
		names := measure.Of(&row)
		for _, p := range peers.All() {
			names = append(names, p.Name)
		}
		if row.Want() == 1 {
			names = append(names, measure.Parts()...)
		}
		able := slices.DeleteFunc(names, func(n string) bool { return measure.Cannot(&row, n) != "" })
		got, err := MeasureRate(RateOf{Row: name, Subjects: able, For: time.Millisecond})
		require.NoError(t, err)
		for _, n := range able {
			r, ok := got[n]
			require.True(t, ok, n)
			assert.Empty(t, r.Error, "%s on %s", n, name)
			assert.Positive(t, r.Ops, n)
		}
	}
}

func TestRateOfAnUnknownSubject(t *testing.T) {
	_, err := MeasureRate(RateOf{Row: "allowed-1k", Subjects: []string{"nobody"}})
	assert.EqualError(t, err, `nobody: "nobody" is nothing that could be measured`)
	_, err = MeasureRate(RateOf{Row: "nothing"})
	assert.ErrorContains(t, err, `row "nothing"`)
}

func TestTable(t *testing.T) {
	for _, huge := range []bool{true, false} {
		got, err := MeasureTable(TableOf{Bytes: 4 << 20, Huge: huge, For: time.Millisecond})
		require.NoError(t, err)
		assert.Positive(t, got.PerOp)
		if !huge {
			assert.Zero(t, got.HugeBytes, "small pages were asked for")
		}
	}
}

// The curve has a point for each percentile, and never falls.
func TestPaceAndCurve(t *testing.T) {
	row, err := workload.Find("allowed-1k")
	require.NoError(t, err)
	_, requests := row.Load()
	var d Delays
	require.NoError(t, pace(nothing{}, requests, 5*time.Millisecond, &d))
	assert.EqualValues(t, 5*time.Millisecond/every, d.Calls)
	require.Len(t, d.Service, len(Percentiles))
	require.Len(t, d.Response, len(Percentiles))
	assert.IsNonDecreasing(t, d.Service)
	assert.IsNonDecreasing(t, d.Response)
	last := len(Percentiles) - 1
	// Histograms keep three significant digits.
	assert.GreaterOrEqual(t, float64(d.Response[last]), 0.998*float64(d.Service[last]),
		"a response includes the service")

	assert.ErrorContains(t, pace(never{}, requests, time.Millisecond, &d), "not one call was allowed")
}

type never struct{}

func (never) Allow(string) bool { return false }

func TestCollectOfAnEmptyProcess(t *testing.T) {
	got, err := MeasureCollect(CollectOf{Subject: Empty})
	require.NoError(t, err)
	assert.Len(t, got.Nanos, 15)
	assert.IsNonDecreasing(t, got.Nanos)
}
