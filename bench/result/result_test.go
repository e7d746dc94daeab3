package result

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/experiment"
)

func TestWriteAndRead(t *testing.T) {
	r := &Run{
		Machine: ThisMachine(), Command: "weir bench", Rounds: 2,
		Rows:    []Row{{Name: "churn", Cores: 1, Entries: []Entry{{Name: "a", Nanos: []float64{1, 2}, AllowedFraction: 1}}}},
		Memory:  []Memory{{Name: "a", Held: experiment.Held{Keys: 3, Heap: 4}}},
		Latency: []Latency{{Beside: experiment.Sweep, Delays: experiment.Delays{Service: []int64{1}, Calls: 1}}},
	}
	var b bytes.Buffer
	require.NoError(t, r.Write(&b))
	got, err := Read(&b)
	require.NoError(t, err)
	assert.Equal(t, r, got)

	_, err = Read(strings.NewReader("nonsense"))
	assert.ErrorContains(t, err, "not a run's JSON")
	_, err = Read(strings.NewReader(`{"format": 99}`))
	assert.EqualError(t, err, "format 99 of a run: want 1")
}

func TestRatio(t *testing.T) {
	row := Row{Entries: []Entry{
		{Name: "a", Nanos: []float64{2, 0, 9}}, {Name: "b", Nanos: []float64{1, 1, 3}},
		{Name: "wrong", Nanos: []float64{1, 1, 1}, Error: "x"}, {Name: "none", Nanos: []float64{0, 0, 0}},
	}}
	s, ok := row.Ratio("a", "b")
	assert.True(t, ok)
	assert.Equal(t, 2, s.Rounds, "a round without a figure is left out")
	assert.Equal(t, 2.5, s.Median)
	for _, name := range []string{"wrong", "none", "missing"} {
		_, ok = row.Ratio(name, "b")
		assert.False(t, ok, name)
	}
	assert.Equal(t, 5.5, row.Entries[0].Median())
}

func TestLatencyAt(t *testing.T) {
	l := Latency{}
	_, _, ok := l.At(99)
	assert.False(t, ok)
	for i := range experiment.Percentiles {
		l.Service, l.Response = append(l.Service, int64(i)), append(l.Response, int64(10*i))
	}
	service, response, ok := l.At(100)
	assert.True(t, ok)
	assert.Equal(t, len(experiment.Percentiles)-1, int(service))
	assert.Equal(t, 10*service, response)
	_, _, ok = l.At(42)
	assert.False(t, ok, "no such percentile is kept")
}
