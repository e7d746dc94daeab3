//go:build explore

package shard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// inDebt returns a table of one probe window that is full at the time now. Each record owes less than the one before
// it.
func inDebt(t *testing.T, now int64, overflow Overflow) *Table {
	tb := newTable(t, 1, 6, func(cfg *Config) { cfg.Plan, cfg.Overflow = aPlan(t, 1, 10), overflow })
	for i := range uint64(6) {
		require.Equal(t, Admitted, take(tb, 10+i, now, 9-i))
	}
	return tb
}

// TestTheFirstSearchPassesRecordsInDebt: the first search of an insert skips exactly the live records of other keys
// that follow the current plan and owe something. It returns the skipped record that owes the least.
func TestTheFirstSearchPassesRecordsInDebt(t *testing.T) {
	const now = start + 100*second
	for name, c := range map[string]struct {
		rule   string
		key    func(at uint64) uint64
		change func(sl *slot, s atomicbucket.State)
	}{
		"never used":   {"R5", nil, nil},
		"free":         {"R5", nil, func(sl *slot, s atomicbucket.State) { sl.state.Free(s) }},
		"claimed":      {"R3", nil, func(sl *slot, s atomicbucket.State) { sl.state.Claim(s, 1) }},
		"its own":      {"R5", func(at uint64) uint64 { return 10 + at }, nil},
		"idle":         {"R7", nil, func(sl *slot, s atomicbucket.State) { sl.state.Move(s, 0) }},
		"another plan": {"R9", nil, func(sl *slot, s atomicbucket.State) { sl.state.Convert(s, atomicbucket.Second, s.Payload()) }},
	} {
		for at := range uint64(6) {
			tb, key := inDebt(t, now, Refuse), uint64(1)
			sl := tb.Find(key).slot(at)
			s := sl.state.Load()
			require.Equal(t, atomicbucket.Live, s.Tag())
			if c.key != nil {
				key = c.key(at)
			}
			if c.change != nil {
				c.change(sl, s)
				require.NotEqual(t, s, sl.state.Load(), name)
			}
			n, least := tb.skipIndebted(tb.Find(key), tb.current(), now)
			if name == "never used" { // in a table that is not full
				tb = newTable(t, 1, 6, nil)
				for i := range at {
					require.Equal(t, Admitted, take(tb, 10+i, now, 1))
				}
				n, _ = tb.skipIndebted(tb.Find(key), tb.current(), now)
			}
			if n != at {
				t.Errorf("broken: %s: slot %d is passed, which is %s: %d", c.rule, at, name, n)
			}
			if at > 0 && name != "never used" {
				assert.Same(t, tb.Find(key).slot(at-1), least.slot, name)
			}
		}
	}
	tb := inDebt(t, now, Refuse)
	n, least := tb.skipIndebted(tb.Find(1), tb.current(), now)
	assert.EqualValues(t, 6, n)
	if least != (victim{tb.Find(1).slot(5), tb.Find(1).slot(5).state.Load(), tb.current(), 4e9}) {
		t.Errorf("broken: I7: the record that owes the least is another one: %v", least)
	}
}

// TestTheFirstSearchKnowsItsPlan (R9): the plan is replaced twice before any operation of the first search. The search
// skips only records that it read before the replacements.
func TestTheFirstSearchKnowsItsPlan(t *testing.T) {
	const now = start + 100*second
	injected(t, func() (call, other func(), check func(string)) {
		tb := inDebt(t, now, Refuse)
		p, plan := tb.Find(1), tb.current()
		var before [6]atomicbucket.State
		for i := range before {
			before[i] = p.slot(uint64(i)).state.Load()
		}
		var n uint64
		var least victim
		return func() { n, least = tb.skipIndebted(p, plan, now) },
			func() {
				tb.Adopt(aPlan(t, 0.5, 10), clockAt(now))
				tb.Adopt(aPlan(t, 1, 10), clockAt(now))
			},
			func(what string) {
				if n > 0 && least.state != before[n-1] {
					t.Errorf("broken: R9: %s: a record is judged by a plan that it does not follow", what)
				}
			}
	})
}

// TestAnEvictionTakesTheRecordThatOwesTheLeast: an eviction takes the record that owes the least, even if the first
// search ended in the middle of the probe window.
func TestAnEvictionTakesTheRecordThatOwesTheLeast(t *testing.T) {
	const now = start + 100*second
	for at := range uint64(6) {
		tb := newTable(t, 1, 6, func(cfg *Config) { cfg.Plan = aPlan(t, 1, 10) })
		for i := range uint64(6) {
			require.Equal(t, Admitted, take(tb, 10+i, now, 2+i))
		}
		sl := tb.Find(1).slot(at)
		_, ok := sl.state.Claim(sl.state.Load(), 1)
		require.True(t, ok)
		require.Equal(t, Admitted, take(tb, 1, now, 1))
		least := uint64(10)
		if at == 0 {
			least++
		}
		assert.Zero(t, records(tb, least), "slot %d is claimed", at)
	}
}

// TestTwoInsertsOfTheFingerprint0 (I3): fingerprint 0 equals the key word of an unused slot. No call treats an unused
// slot as a record of the key, or the key's record as an unused slot.
func TestTwoInsertsOfTheFingerprint0(t *testing.T) {
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 1, 3, nil)
		return func() { take(tb, 0, start, 1) }, func() { take(tb, 0, start, 1) }, func(what string) {
			require.Equal(t, 1, records(tb, 0), what)
			require.EqualValues(t, 2, taken(tb, 0, start), what)
		}
	})
}
