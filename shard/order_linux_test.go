//go:build !explore

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// anOrder returns a function from the number of a key to the key's place. All these keys have the same home and the
// same search order.
func anOrder(t *Table, order uint64) func(i uint64) Place {
	step := ^uint64(0)/(t.homes*lineSlots) + 1
	return func(i uint64) Place { return t.Find((order*step+step/2)&^(1<<30-1) + i<<25) }
}

// TestEveryOrder: hits of every kind find the records of one home in the first lines, in every order. A miss that meets
// a record in a shared table leaves the record unchanged (R20).
func TestEveryOrder(t *testing.T) {
	own := func(tb *Table) Quota { return tb.Plan().NewQuota(tb.Plan().Quota(0)) }
	of := func(*Table) Quota { return TierQuota(0) }
	for name, verb := range map[string]struct {
		quota  func(*Table) Quota
		priced bool
		call   func(tb *Table, p Place, q Quota) (atomicbucket.State, *Plan, Verdict)
	}{
		"hit": {of, false, func(tb *Table, p Place, q Quota) (atomicbucket.State, *Plan, Verdict) {
			return tb.Hit(p, start, 1, q.Tier())
		}},
		"charge": {of, false, func(tb *Table, p Place, q Quota) (atomicbucket.State, *Plan, Verdict) {
			return tb.HitCharge(p, start, 1, q)
		}},
		"quota": {own, false, func(tb *Table, p Place, q Quota) (atomicbucket.State, *Plan, Verdict) {
			return tb.HitQuota(p, start, 1, q)
		}},
		"tier": {func(*Table) Quota { return TierQuota(1) }, true, func(tb *Table, p Place, q Quota) (atomicbucket.State, *Plan, Verdict) {
			return tb.HitTier(p, start, 1, q)
		}},
		"miss": {of, false, func(tb *Table, p Place, q Quota) (atomicbucket.State, *Plan, Verdict) {
			before, _, _ := tb.record(p)
			o := tb.MissQuota(p, start, 1, q, nil)
			assert.Equal(t, before.State.Version(), o.State.Version(), "another record")
			assert.Greater(t, o.State.Payload(), before.State.Payload(), "a fresh bucket")
			return o.State, o.Plan, o.Verdict
		}},
	} {
		for order := range uint64(lineSlots) {
			for n := range uint64(2 * lineSlots) {
				cfg := sharedConfig(planOf(t, perSecond(t, 1, 5)), Refuse)
				cfg.Entries = 0
				tb := mapped(t, cfg, sharedMemory(t, cfg), ownerOf{claimant: 1})
				if verb.priced {
					tb, _, _ = priced(t, time.Second)
				}
				key, q := anOrder(tb, order), verb.quota(tb)
				for i := range n + 1 {
					require.Equal(t, Admitted, tb.TakeAt(key(i), start, start, 1, q, nil).Verdict)
				}
				p := key(n)
				require.Equal(t, order, p.order())
				_, _, sl := tb.record(p)
				require.Equal(t, n, p.index(sl))
				_, _, v := verb.call(tb, p, q)
				assert.Equal(t, Admitted, v, "%s: %d, %d", name, order, n)
			}
		}
	}
}
