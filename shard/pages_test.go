package shard

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

func markAll(t *Table) {
	for slot := uint64(0); slot < t.slots; slot += pageSlots {
		t.memory.mark(slot)
	}
	t.memory.mark(t.slots - 1)
}

// TestMarks: a page is marked by the first record in it, and by nothing else.
func TestMarks(t *testing.T) {
	table := newTable(t, 100*pageSlots, 0, func(c *Config) { c.Shards = 4 })
	slots := func() (n int) {
		for page := range table.memory.markedPages() {
			n += len(page)
		}
		return n
	}
	assert.Zero(t, slots())
	table.Peek(table.Find(7), start, 1, 0)
	require.Equal(t, TooMuch, take(table, 7, start, 6))
	assert.Zero(t, slots(), "neither gives the key a record")

	places := []uint64{0, 1<<63 | 1, math.MaxUint64} // in the first page, in the middle and in the last
	for i, key := range places {
		require.Equal(t, Admitted, take(table, key, start, 1))
		require.Equal(t, Admitted, take(table, key, start, 1), "a record is in one page however often it is found")
		assert.EqualValues(t, i+1, table.memory.count.Load())
	}
	assert.True(t, table.Sweep(start+100*second, nil))
	assert.EqualValues(t, len(places), table.Stats().Reclaimed)
	require.Equal(t, Admitted, take(table, places[0], start+100*second, 1))
	assert.EqualValues(t, len(places), table.memory.count.Load(), "a freed slot lies in a marked page")

	markAll(table)
	assert.EqualValues(t, table.slots, slots(), "every slot is in one page")
}

// TestDense: when half of the pages of a table in mapped memory hold records, the table reports this once. Its rings
// report this separately.
func TestDense(t *testing.T) {
	log, err := atomicbucket.NewSlidingLog(3, 3, time.Second)
	require.NoError(t, err)
	plan, err := NewPlan(&log, 0)
	require.NoError(t, err)
	table := newTable(t, mapThreshold/slotBytes, 0, func(c *Config) { c.Plan = plan })
	if table.memory.mapped == 0 {
		t.Skip("this system has nothing but the Go heap")
	}
	pages := ceilDiv(table.slots, pageSlots)
	assert.Equal(t, ceilDiv(pages, 2), table.memory.dense)
	told := func() bool {
		select {
		case <-table.Dense():
			return true
		default:
			return false
		}
	}
	random, tellings := uint64(1), 0
	for range 8 * pages {
		random = random*0x5851_f42d_4c95_7f2d + 0x1405_7b7e_f767_814f
		require.Equal(t, Admitted, take(table, random, start, 1))
		if told() {
			tellings++
			assert.True(t, table.memory.count.Load() == table.memory.dense || table.rings.count.Load() == table.rings.dense)
			table.Collapse(nil)
		}
	}
	assert.Greater(t, table.memory.count.Load(), table.memory.dense)
	assert.Greater(t, table.rings.count.Load(), table.rings.dense)
	assert.Equal(t, 2, tellings)
	assert.Equal(t, Admitted, take(table, random, start, 2), "the records are what they were")
	assert.Equal(t, Refused, take(table, random, start, 1))
}

// TestDenseIsToldOnce: no second report is queued before the first is received, because its receiver checks all parts
// of the table.
func TestDenseIsToldOnce(t *testing.T) {
	log, err := atomicbucket.NewSlidingLog(3, 3, time.Second)
	require.NoError(t, err)
	plan, err := NewPlan(&log, 0)
	require.NoError(t, err)
	table := newTable(t, mapThreshold/slotBytes, 0, func(c *Config) { c.Plan = plan })
	for i := uint64(0); i < table.slots; i += pageSlots { // one slot per page, with rings in half of the ring pages
		table.markPage(&table.memory.slots[i])
	}
	if table.memory.mapped == 0 {
		t.Skip("this system has nothing but the Go heap")
	}
	assert.GreaterOrEqual(t, table.memory.count.Load(), table.memory.dense)
	assert.GreaterOrEqual(t, table.rings.count.Load(), table.rings.dense)
	assert.Len(t, table.Dense(), 1)
}

// TestThePagesOfARing: all pages of a ring are marked, not only the first and the last.
func TestThePagesOfARing(t *testing.T) {
	for _, c := range []struct{ tokens, slot, pages uint64 }{
		{1, 0, 1}, {2, 0, 1}, {3, 0, 1}, {4, 127, 1}, {6, 84, 1}, {6, 85, 2}, {512, 0, 1}, {512, 1, 1}, {514, 0, 2}, {1026, 0, 3}, {1026, 1, 3},
	} {
		log, err := atomicbucket.NewSlidingLog(c.tokens, c.tokens, time.Hour)
		require.NoError(t, err)
		plan, err := NewPlan(&log, 0)
		require.NoError(t, err)
		table := newTable(t, 256, 0, func(c *Config) { c.Plan = plan })
		table.markPage(&table.memory.slots[c.slot])
		assert.Equal(t, c.pages, table.rings.count.Load(), "%+v", c)
	}
}
