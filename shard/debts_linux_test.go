package shard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDebtsAreCarriedOver: the debts of a table are transferred exactly to another table, even above 2^32 units. What a
// key already owes there counts towards its debt, and keys without a debt are not visited.
func TestDebtsAreCarriedOver(t *testing.T) {
	from, to := newTable(t, 64, 32, nil), newTable(t, 256, 16, nil)
	owed := func(tb *Table, now int64) map[uint64]uint64 {
		all := map[uint64]uint64{}
		require.True(t, tb.Debts(now, nil, func(fingerprint, debt, _ uint64) { all[fingerprint] = debt }))
		return all
	}
	for key := range uint64(5) {
		require.Equal(t, Admitted, take(from, key<<40+1, start, key+1))
	}
	require.Equal(t, Admitted, take(from, 99, start-6*second, 1)) // at the watermark
	require.True(t, from.Reset(from.Find(99)))
	debts := owed(from, start)
	require.Len(t, debts, 5)
	require.Equal(t, Admitted, take(to, 1, start, 5)) // the key owes one token in the other table
	require.Equal(t, Admitted, take(to, 4<<40+1, start, 2))
	for range 2 {
		for key, debt := range debts {
			verdict := to.Owe(key, start, debt, 0, to.Plan()).Verdict
			require.Contains(t, []Verdict{Admitted, Refused}, verdict, "refused if it owes that much already")
		}
		after := owed(to, start)
		assert.Len(t, after, 5)
		for key := range uint64(5) {
			want := debts[key<<40+1]
			if key == 0 {
				want = 5 * want
			}
			// A debt of 2^32 units or more is rounded up, by at most one unit for each 2^32 units.
			assert.GreaterOrEqual(t, after[key<<40+1], want, "key %d", key)
			assert.Less(t, after[key<<40+1], want+1<<10, "key %d", key)
		}
	}
	assert.Len(t, owed(from, start+2*second), 3, "two are full by then")
	assert.Empty(t, owed(from, start+9*second))
}
