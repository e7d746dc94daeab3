//go:build !explore

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// entriesIn returns the tables of processes 1 and 2, both alive, in one memory: a limit in flight with count entries,
// each forgotten after a minute.
func entriesIn(t *testing.T, limit, count uint64, window int, overflow Overflow) (one, two *Table) {
	algorithm, err := atomicbucket.NewEntries(limit, limit, time.Minute)
	require.NoError(t, err)
	build := func([]uint64) (*Plan, error) { return NewPlan(&algorithm, 0) }
	plan, err := build(nil)
	require.NoError(t, err)
	cfg := Config{Plan: plan, Slots: 1, Shards: 1, ProbeWindow: window, Start: start, Entries: count, Overflow: overflow}
	bytes, err := cfg.SharedBytes()
	require.NoError(t, err)
	memory := make([]byte, bytes)
	require.NoError(t, cfg.Begin(memory, nil))
	one, err = Map(cfg, Shared{Memory: memory, Owner: ownerOf{1, []uint64{2}}, Build: build})
	require.NoError(t, err)
	two, err = Map(cfg, Shared{Memory: memory, Owner: ownerOf{2, []uint64{1}}, Build: build})
	require.NoError(t, err)
	return one, two
}

func inFlightOf(tb *Table, key uint64) uint64 {
	o, _ := tb.Peek(tb.Find(key), start, 1, 0)
	return o.Plan.entries.Debt(o.State.Record(), 0)
}

// stopped sets the entry of a take back, as if its process had stopped between steps 3 and 4 (R26).
func stopped(tb *Table, o Outcome) *entry {
	number, _ := o.Plan.entries.Last(o.State)
	e := &tb.entries.list[number]
	e.holder.Store(uint64(atomicbucket.Entry(e.holder.Load()).As(atomicbucket.Pending)))
	return e
}

// TestWhatAStoppedProcessHasInFlightIsForgotten (R26): a request in flight is forgotten after its lifetime, even if the
// process stopped before its entry became counted. An entry whose take was not made stays pending while its process
// lives.
func TestWhatAStoppedProcessHasInFlightIsForgotten(t *testing.T) {
	one, two := entriesIn(t, 1, 4, 1, Refuse)
	o := two.Take(two.Find(1), start, 1, 0)
	require.Equal(t, Admitted, o.Verdict)
	e := stopped(two, o)
	r := request{now: start, entryRef: two.entries.take(2, start)}
	one.Sweep(start+int64(time.Minute)-1, nil)
	require.EqualValues(t, 1, inFlightOf(one, 1))
	one.Sweep(start+int64(time.Minute), nil)
	assert.Zero(t, inFlightOf(one, 1))
	assert.Equal(t, atomicbucket.NoEntry, atomicbucket.Entry(e.holder.Load()).What())
	assert.EqualValues(t, r.holder, one.entries.list[r.number-1].holder.Load())
	assert.EqualValues(t, 1, one.Stats().Forgotten)
}

// TestAResetIsOfAllEntries (R26): a reset forgets everything that a key has in flight, including tokens without an
// entry and an entry that never became counted.
func TestAResetIsOfAllEntries(t *testing.T) {
	for name, c := range map[string]struct{ first, last func(e *entry) }{
		"all is well":          {},
		"a process is stopped": {last: func(*entry) {}},
		"an entry is lost":     {first: func(e *entry) { e.holder.Store(0) }},
		"all are lost":         {func(e *entry) { e.holder.Store(0) }, func(e *entry) { e.holder.Store(0) }},
	} {
		one, two := entriesIn(t, 5, 4, 1, Refuse)
		for i, harm := range []func(e *entry){c.first, c.last} {
			o := two.Take(two.Find(1), start, uint64(i)+1, 0)
			require.Equal(t, Admitted, o.Verdict, name)
			if harm != nil {
				harm(stopped(two, o))
			}
		}
		require.EqualValues(t, 3, inFlightOf(one, 1), name)
		assert.True(t, one.Reset(one.Find(1)), name)
		assert.Zero(t, inFlightOf(one, 1), name)
		require.Equal(t, Admitted, two.Take(two.Find(1), start, 5, 0).Verdict, name)
		assert.EqualValues(t, 5, inFlightOf(one, 1), name)
		assert.False(t, one.Reset(one.Find(2)), name)
	}
}

// TestAReceiptIsOfOneUseOfItsEntry (R26): a receipt of a forgotten entry gives back no tokens of later takes that use
// the entry, whatever its generation is.
func TestAReceiptIsOfOneUseOfItsEntry(t *testing.T) {
	one, _ := entriesIn(t, 1, 1, 1, Refuse)
	p, now := one.Find(1), int64(start)
	take := func() Receipt {
		now++
		o := one.Take(p, now, 1, 0)
		require.Equal(t, Admitted, o.Verdict)
		return o.Receipt(1, 0, one.Ends(p))
	}
	old := take()
	one.Reset(p)
	for range 1 << 10 {
		r := take()
		require.Equal(t, Refused, one.Refund(p, now, 1, 0, old).Verdict)
		require.EqualValues(t, 1, inFlightOf(one, 1))
		require.Equal(t, Admitted, one.Refund(p, now, 1, 0, r).Verdict)
	}
}

// TestWithoutAnEntryAKeyIsAdmittedAsOthers: if no entry is free and the policy is Admit, the request gets the status
// that a key with a record would have.
func TestWithoutAnEntryAKeyIsAdmittedAsOthers(t *testing.T) {
	one, _ := entriesIn(t, 5, 1, 8, Admit)
	require.Equal(t, Admitted, one.Take(one.Find(1), start, 1, 0).Verdict)
	for key := range uint64(2) { // without a record, and with one
		status := atomicbucket.Status{}
		o := one.TakeAt(one.Find(key), start, start, 2, TierQuota(0), &status)
		assert.Equal(t, Unrecorded, o.Verdict)
		assert.Equal(t, 3-key, status.Remaining, "key %d", key)
		assert.Equal(t, time.Minute, status.ResetAfter)
	}
	assert.EqualValues(t, 1, inFlightOf(one, 1))
	assert.Zero(t, one.Occupancy().Tentative)
}

// TestASweepRestsAmongEntries: a sweep calls rest while it visits entries, too, and stops if rest returns false.
func TestASweepRestsAmongEntries(t *testing.T) {
	algorithm, err := atomicbucket.NewEntries(5, 5, time.Minute)
	require.NoError(t, err)
	plan, err := NewPlan(&algorithm, 0)
	require.NoError(t, err)
	cfg := Config{Plan: plan, Slots: 24, Shards: 1, ProbeWindow: 8, Start: start, Entries: 40}
	bytes, err := cfg.SharedBytes()
	require.NoError(t, err)
	memory := make([]byte, bytes)
	require.NoError(t, cfg.Begin(memory, nil))
	table, err := Map(cfg, Shared{Memory: memory, Owner: ownerOf{1, nil}, Build: func([]uint64) (*Plan, error) { return plan, nil }})
	require.NoError(t, err)
	table.entries.next.Store(20) // behind the first rest
	require.Equal(t, Admitted, table.Take(table.Find(1), start, 2, 0).Verdict)
	table.chunk = 8
	rests := 0
	assert.True(t, table.Sweep(start, func() bool { rests++; return true }))
	assert.Equal(t, 40/8+1, rests, "and one among slots")
	assert.False(t, table.Sweep(start+int64(time.Minute), func() bool { return false }))
	assert.Zero(t, table.Stats().Forgotten)
	assert.True(t, table.Sweep(start+int64(time.Minute), nil))
	assert.EqualValues(t, 2, table.Stats().Forgotten)
	assert.Zero(t, table.Occupancy().Live)
}
