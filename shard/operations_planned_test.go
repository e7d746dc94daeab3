//go:build explore

package shard

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheOperationsThatReadWhichPlanIsPresent (R21): calls read the number of a shared table's current plan, n, after
// the state. If they read it before the state, two replacements in between would bring back the old plan's tag, and the
// call would decide by the old plan.
func TestTheOperationsThatReadWhichPlanIsPresent(t *testing.T) {
	const now = start
	var quota Quota
	for _, c := range []struct {
		name string
		call func(tb *Table)
		want string
	}{
		{"hit", func(tb *Table) { tb.Hit(tb.Find(1), now, 1, 0) }, "s0 k0 p w n s0?"},
		{"hit, refused", func(tb *Table) { tb.Hit(tb.Find(1), now, 5, 0) }, "s0 k0 p w n s0"},
		{"hit, the next slot", func(tb *Table) { tb.Hit(tb.Find(2), now, 1, 0) }, "s0 k0 s1 k1 p w n s1?"},
		{"hit, under a quota", func(tb *Table) { tb.HitQuota(tb.Find(1), now, 1, quota) }, "s0 k0 p w n s0?"},
		{"hit, under a quota, the next slot", func(tb *Table) { tb.HitQuota(tb.Find(2), now, 1, quota) }, "s0 k0 s1 k1 p w n s1?"},
		{"charge", func(tb *Table) { tb.HitCharge(tb.Find(1), now, 1, TierQuota(0)) }, "s0 k0 p w n s0?"},
		{"charge, the next slot", func(tb *Table) { tb.HitCharge(tb.Find(2), now, 1, TierQuota(0)) }, "s0 k0 s1 k1 p w n s1?"},
		{"insert, past what is in debt", func(tb *Table) { tb.skipIndebted(tb.Find(100), tb.Known(), now) }, "p s0 p n k0 s1 p n k1 s2 p n k2 s3 p"},
		{"insert, at home", func(tb *Table) { tb.homeCandidate(tb.Find(100)) }, "s0 p n w s1 p n w s2 p n w s3 p"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := Config{Plan: aPlan(t, 1, 5), Slots: 4, Shards: 1, ProbeWindow: 4, Start: start}
			bytes, err := cfg.SharedBytes()
			require.NoError(t, err)
			memory := make([]byte, bytes)
			require.NoError(t, cfg.Begin(memory, numbersOf(5)))
			build := func([]uint64) (*Plan, error) { return aPlan(t, 1, 5), nil }
			tb, err := Map(cfg, Shared{memory, process{1, new(bool)}, build, nil, nil})
			require.NoError(t, err)
			for key := range uint64(3) {
				require.Equal(t, Admitted, take(tb, 1+key, now, 1))
			}
			if strings.Contains(c.name, "quota") {
				labeled(tb, 3)
			}
			quota = tb.Plan().NewQuota(tb.Plan().Quota(0))
			assert.Equal(t, c.want, operations(tb, func() { c.call(tb) }))
		})
	}
}
