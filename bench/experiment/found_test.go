package experiment

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/workload"
	"github.com/weir-go/weir/internal/testrace"
)

// The test fails if an insert claims the first idle record: then only 48 % of the requests find their record.
func TestFoundAtThePlannedLoad(t *testing.T) {
	testrace.OneGoroutine(t)
	for _, name := range []string{"returning-1k", "returning-1k/zipf", "returning-1k/aged", "returning-10k"} {
		got, err := MeasureFound(FoundOf{name})
		require.NoError(t, err)
		assert.Greater(t, got.Fraction(), 0.98, name)
	}
}

// With far fewer keys than MaxKeys, all requests find their record, even in an aged table.
func TestFound(t *testing.T) {
	testrace.OneGoroutine(t)
	for _, name := range []string{"returning-1k/0.3", "returning-1k/0.3/aged"} {
		got, err := MeasureFound(FoundOf{name})
		require.NoError(t, err)
		assert.InDelta(t, 10_000, got.Requests, 2, "a thousand a second, for ten seconds")
		assert.Greater(t, got.Fraction(), 0.99, name)
	}
	_, err := MeasureFound(FoundOf{"nothing"})
	assert.ErrorContains(t, err, `row "nothing"`)
}

// A request does not find a record if its key is new, or if another key has claimed the record.
func TestCounterTellsHitsFromMisses(t *testing.T) {
	testrace.OneGoroutine(t)
	row, err := workload.Find("returning-1k")
	require.NoError(t, err)
	c, err := newCounter(&row)
	require.NoError(t, err)
	assert.False(t, c.ask("a"))
	assert.True(t, c.ask("a"))
	c.now += 1000
	assert.True(t, c.ask("a"), "idle, and still there")
	for i := range 100_000 { // idle keys, many times as many as there are slots
		c.now++
		c.ask(string(rune('b' + i)))
	}
	assert.False(t, c.ask("a"))
	assert.Zero(t, c.wrong)
	epoch := c.table.Stats().Epoch
	c.sweep(c.now + 35e9)
	assert.Equal(t, epoch+3, c.table.Stats().Epoch, "one every ten seconds")
}

// With small pages, a limiter that few keys use has only a fraction of its table in RAM.
func TestTouched(t *testing.T) {
	got, err := MeasureTouched(TouchedOf{Huge: true})
	require.NoError(t, err)
	assert.Equal(t, 10, got.Keys)
	assert.Greater(t, got.Declared, int64(26e6))
	if runtime.GOOS == "linux" {
		assert.Less(t, got.Resident, got.Declared+2<<20)
	}
}
