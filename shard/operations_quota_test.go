//go:build explore

package shard

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/atomicbucket"
)

// TestTheOperationsUnderQuotasAndOfCharges checks the same as TestTheOperationsOfEachCall, for quotas with their own
// numbers, and for charges.
func TestTheOperationsUnderQuotasAndOfCharges(t *testing.T) {
	const now = start + 20*second
	var status atomicbucket.Status
	algorithms := algorithmsOfFive(t)
	own := func(tb *Table, tokens uint64) Quota {
		return tb.Plan().NewQuota(atomicbucket.Quota{Token: tb.Plan().Quota(0).Token, Tokens: tokens})
	}
	under := func(key uint64, at int64, n, tokens uint64) func(tb *Table) {
		return func(tb *Table) { tb.TakeAt(tb.Find(key), at, at, n, own(tb, tokens), nil) }
	}
	charge := func(key uint64, at int64, n uint64) func(tb *Table) {
		return func(tb *Table) {
			p := tb.Find(key)
			if _, _, v := tb.HitCharge(p, at, n, TierQuota(0)); v == Undecided {
				tb.Charge(p, at, at, n, TierQuota(0), nil)
			}
		}
	}
	costing := func(refusals RefusalCharge, call func(tb *Table)) func(tb *Table) {
		return func(tb *Table) {
			tb.Plan().SetCharges(2, refusals)
			call(tb)
		}
	}
	tentative := func(call func(tb *Table)) func(tb *Table) {
		return func(tb *Table) {
			sl := tb.Find(1).slot(3)
			claimed, _ := sl.state.Claim(0, 0)
			sl.key.Store(100)
			sl.state.Publish(claimed)
			call(tb)
		}
	}
	adopted := func(call func(tb *Table)) func(tb *Table) {
		return func(tb *Table) {
			anotherPlan.takeOver(tb.plan.Load(), clockAt(now))
			tb.plan.Store(anotherPlan)
			call(tb)
		}
	}
	ahead := func(tb *Table, more int64) int64 { return start + int64(tb.Plan().skew) + more }
	for _, c := range []struct {
		name        string
		kind        string
		live, freed int // slots with a live record; how many of these were freed
		call        func(tb *Table)
		want        string
	}{
		{"quota, found at once", "bucket", 3, 0, under(1, now, 1, 9), "p p s0 k0 p w s0?"},
		{"quota, found in the second line", "bucket", 7, 0, under(7, now, 1, 9), "p p s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 p w s6?"},
		{"quota, found in the third line", "bucket", 10, 0, under(10, now, 1, 9), "p p s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p p s0 p w s1 p w s2 p w s3 p w s0 p k0 s1 p k1 s2 p k2 s3 p k3 s4 p k4 s5 p k5 s6 p k6 s7 p k7 s8 p k8 s9 p k9 s9 p k9 s0 k0 s1 k1 h0 s2 k2 h0 s3 k3 h0 s4 k4 h0 s5 k5 h0 s6 k6 h0 s7 k7 h0 s8 k8 h0 s9 k9 p w k9 s9?"},
		{"quota, behind a free slot", "bucket", 3, 1, under(2, now, 1, 9), "p p s0 k0 s1 k1 p w s1?"},
		{"quota, all of it", "bucket", 3, 0, under(1, now, 8, 9), "p p s0 k0 p w s0?"},
		{"quota, refused", "bucket", 3, 0, under(1, now, 9, 9), "p p s0 k0 p w s0"},
		{"quota, refused by a lower one", "bucket", 3, 0, under(1, now, 1, 1), "p p s0 k0 p w s0"},
		{"quota, too much", "bucket", 3, 0, under(1, now, 10, 9), "p p w p p"},
		{"quota, the first", "bucket", 0, 0, under(100, now, 9, 9), "p p s0 k0 w p p s0 p k0 w p m m? s0? k0= s0= k1 s1 p w k0 s0?"},
		{"quota, new, behind live ones", "bucket", 3, 0, under(100, now, 9, 9), "p p s0 k0 s1 k1 s2 k2 s3 k3 w p p s0 p w s1 p w s2 p w s3 p k0 k1 h0 k2 h0 k3 w p m s3? k3= s3= l h0 k0 k1 h0 k2 h0 p w k3 s3?"},
		{"quota, a tentative record", "bucket", 3, 0, tentative(under(100, now, 1, 9)), "s3? k3= s3= p p s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 w p p s0 p w s1 p w s2 p w s3 p s0 p k0 s1 p k1 s2 p k2 s3 p s3 p k3 l h0 k0 k1 h0 k2 h0 p w k3 k3? s3?"},
		{"quota, meets another plan", "bucket", 2, 0, adopted(under(2, now, 1, 20)), "p p= p p s0 k0 s1 k1 p w p p s0 p s0 p s0 p p k0 w largest leading promised s0? s0 k0 s1 k1 p p k1 w largest leading promised s1? s1 k1 p w k1 s1?"},
		{"quota, late", "bucket", 3, 0, under(1, start-1, 1, 9), "p p s0 k0 p w w p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w s0"},
		{"quota, as far ahead as may be", "bucket", 3, 0, func(tb *Table) { under(1, ahead(tb, 0), 1, 9)(tb) }, "p p p s0 k0 p w s0?"},
		{"quota, far ahead", "bucket", 3, 0, func(tb *Table) { under(1, ahead(tb, 1), 1, 9)(tb) }, "p p p s0 k0 p w w p moving+ pace swept w? moving+ w p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w k0 s0?"},
		{"quota, blocked", "bucket", 3, 0, func(tb *Table) { tb.TakeAt(tb.Find(1), now, now, 1, Blocked(), nil) }, "w p p"},
		{"quota, unlimited", "bucket", 3, 0, func(tb *Table) { tb.TakeAt(tb.Find(1), now, now, 1, Unlimited(), nil) }, "w p p"},
		{"quota, of another table", "bucket", 3, 0, func(tb *Table) { tb.TakeAt(tb.Find(1), now, now, 1, anotherPlan.NewQuota(anotherPlan.Quota(0)), nil) }, "s0 k0 p w p p"},
		{"quota, of a window", "fixed", 3, 0, under(2, now, 1, 9), "p p s0 k0 s1 k1 p w k1 s1?"},
		{"quota, of a log", "log", 3, 0, under(2, now, 1, 5), "p p s0 k0 s1 k1 p w r1.2 r1.1 s1 r1.1? k1 s1?"},
		{"of a tier before, found at once", "bucket", 3, 0, under(1, now, 1, 9), "p p s0 k0 s1 k1 s2 k2 s3 k3 w p p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w k0 k0? s0?"},
		{"of a tier before, found at once by the second take", "bucket", 3, 0, func(tb *Table) { under(1, now, 1, 9)(tb); under(1, now, 1, 9)(tb) }, "p p s0 k0 s1 k1 s2 k2 s3 k3 w p p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w k0 k0? s0? p p s0 k0 p w s0?"},
		{"of a tier before, behind a free slot", "bucket", 3, 1, under(2, now, 1, 9), "p p s0 k0 s1 k1 s2 k2 s3 k3 w p p s0 p k0 k1 s1 p k1 s0 s1 k1 p w k1 k1? s1?"},
		{"of a tier before, refused", "bucket", 3, 0, under(1, now, 9, 9), "p p s0 k0 s1 k1 s2 k2 s3 k3 w p p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w s0"},
		{"of a tier before, charged", "bucket", 3, 0, func(tb *Table) { tb.HitCharge(tb.Find(1), now, 89, own(tb, 9)) }, "p p s0 k0 s1 k1 s2 k2 s3 k3"},
		{"charge, found at once", "bucket", 3, 0, charge(1, now, 6), "s0 k0 p w s0?"},
		{"charge, found in the second line", "bucket", 7, 0, charge(7, now, 1), "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 p w s6?"},
		{"charge, found in the third line", "bucket", 10, 0, charge(10, now, 1), "s0 k0 s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 s0 k0 s1 k1 h0 s2 k2 h0 s3 k3 h0 s4 k4 h0 s5 k5 h0 s6 k6 h0 s7 k7 h0 s8 k8 h0 s9 k9 p w k9 s9?"},
		{"charge, behind a free slot", "bucket", 3, 1, charge(2, now, 1), "s0 k0 s1 k1 p w s1?"},
		{"charge, all that fits", "bucket", 3, 0, charge(1, now, 49), "s0 k0 p w s0?"},
		{"charge, more than fits", "bucket", 3, 0, charge(1, now, 50), "s0 k0 p w s0 k0 p w k0 s0?"},
		{"charge, more than a record holds", "bucket", 3, 0, charge(1, now, math.MaxUint64), "s0 k0 p s0 k0 p w k0 s0?"},
		{"charge, all is owed", "bucket", 3, 0, func(tb *Table) { charge(1, now, 49)(tb); charge(1, now, 1)(tb) }, "s0 k0 p w s0? s0 k0 p w s0 k0 p w s0"},
		{"charge, the first", "bucket", 0, 0, charge(100, now, 60), "s0 k0 s0 p w p p s0 p k0 w p m m? s0? k0= s0= k1 s1 p w k0 s0?"},
		{"charge, new, behind live ones", "bucket", 3, 0, charge(100, now, 1), "s0 k0 s1 k1 s2 k2 s3 k3 s0 k0 s1 k1 h0 s2 k2 h0 s3 p w p p s0 p w s1 p w s2 p w s3 p k0 k1 h0 k2 h0 k3 w p m s3? k3= s3= l h0 k0 k1 h0 k2 h0 p w k3 s3?"},
		{"charge, a tentative record", "bucket", 3, 0, tentative(charge(100, now, 1)), "s3? k3= s3= s0 k0 s1 k1 s2 k2 s3 k3 p s4 k4 s0 k0 s1 k1 h0 s2 k2 h0 s3 h0 p w p p s0 p w s1 p w s2 p w s3 p s0 p k0 s1 p k1 s2 p k2 s3 p s3 p k3 l h0 k0 k1 h0 k2 h0 p w k3 s3?"},
		{"charge, meets another plan", "bucket", 2, 0, adopted(charge(2, now, 1)), "p p= s0 k0 s1 k1 p s0 k0 s1 k1 p p k1 w largest leading promised s1? s1 k1 p w k1 s1?"},
		{"charge, late", "bucket", 3, 0, charge(1, start-1, 1), "s0 k0 p w s0 k0 p w w p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w k0 s0?"},
		{"charge, as far ahead as may be", "bucket", 3, 0, func(tb *Table) { charge(1, ahead(tb, 0), 1)(tb) }, "p s0 k0 p w s0?"},
		{"charge, far ahead", "bucket", 3, 0, func(tb *Table) { charge(1, ahead(tb, 1), 1)(tb) }, "p s0 k0 p w s0 k0 p w w p moving+ pace swept w? moving+ w p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w k0 s0?"},
		{"charge, blocked", "bucket", 3, 0, func(tb *Table) { tb.HitCharge(tb.Find(1), now, 1, Blocked()) }, "s0 k0 p"},
		{"charge, under a quota", "bucket", 3, 0, func(tb *Table) { tb.HitCharge(tb.Find(1), now, 89, own(tb, 9)) }, "p p s0 k0 p w s0?"},
		{"charge, more than fits under a quota", "bucket", 3, 0, func(tb *Table) { tb.HitCharge(tb.Find(1), now, 90, own(tb, 9)) }, "p p s0 k0 p w"},
		{"charge, and tell the status", "bucket", 3, 0, func(tb *Table) { tb.Charge(tb.Find(1), now, now, 1, TierQuota(0), &status) }, "s0 k0 p w k0 s0?"},
		{"charge, of a window", "fixed", 3, 0, charge(2, now, 1), "s0 k0 s1 k1 p w k1 s1?"},
		{"charge, of a log", "log", 3, 0, charge(2, now, 1), "s0 k0 s1 k1 p w r1.4 r1.0 r1.2 r1.1 s1 r1.1? k1 s1?"},
		{"charge, of a log that has no room", "log", 3, 0, func(tb *Table) { charge(2, now, 4)(tb); charge(2, now, 1)(tb) }, "s0 k0 s1 k1 p w r1.4 r1.0 r1.0 r1.1 s1 r1.1? k1 s1? s0 k0 s1 k1 p w r1.1 r1.1 s1"},
		{"penalty", "bucket", 3, 0, costing(Penalty, func(tb *Table) { take(tb, 1, now, 5) }), "p s0 k0 p w s0 w p p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w k0 s0?"},
		{"penalty, of more than the limit", "bucket", 3, 0, costing(Penalty, func(tb *Table) { take(tb, 1, now, 6) }), "p s0 k0 p w p p p w p p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w k0 s0?"},
		{"penalty, admitted", "bucket", 3, 0, costing(Penalty, func(tb *Table) { take(tb, 1, now, 4) }), "p s0 k0 p w s0?"},
		{"the rest", "bucket", 3, 0, costing(TheRest, func(tb *Table) { take(tb, 1, now, 5) }), "p s0 k0 p w s0 w p p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w k0 s0?"},
		{"the rest, none is left", "bucket", 3, 0, costing(TheRest, func(tb *Table) { take(tb, 1, now, 4); take(tb, 1, now, 5) }), "p s0 k0 p w s0? s0 k0 p w s0 w p p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w s0"},
		{"the rest, of more than the limit", "bucket", 3, 0, costing(TheRest, func(tb *Table) { take(tb, 1, now, 6) }), "p s0 k0 p w p p p w p p s0 p w s1 p w s2 p w s3 p k0 s0 p k0 s0 k0 p w k0 s0?"},
		{"the rest, of a log", "log", 3, 0, costing(TheRest, func(tb *Table) { take(tb, 1, now, 5) }), "p s0 k0 p w r0.4 r0.0 r0.4 r0.0 r0.0 r0.1 s0 r0.1? k0 s0?"},
		{"refund by the clock", "bucket", 3, 0, func(tb *Table) { tb.RefundBy(tb.Find(2), func() int64 { return now }, 1, 0, Receipt{}) }, "s0 k0 s1 k1 p w leading promised s1?"},
		{"refund by the clock, no record", "bucket", 3, 0, func(tb *Table) { tb.RefundBy(tb.Find(100), func() int64 { return now }, 1, 0, Receipt{}) }, "s0 k0 s1 k1 h0 s2 k2 h0 s3 p w p s0 k0 s1 k1 h0 s2 k2 h0 s3 p w"},
		{"refund by the clock, blocked", "bucket", 3, 0, func(tb *Table) {
			var none Receipt
			none.EnterNone(1, Blocked())
			tb.RefundOf(tb.Find(2), func() int64 { return now }, 1, &none)
		}, "s0 k0 s1 k1 p w"},
		{"refund, blocked", "bucket", 3, 0, func(tb *Table) { tb.RefundAt(tb.Find(2), now, now, 1, Blocked(), Receipt{}) }, "w p s0 k0 s1 k1 p w"},
		{"refund, of a log", "log", 3, 0, func(tb *Table) { tb.Refund(tb.Find(2), now, 1, 0, Receipt{}) }, "w p s0 k0 s1 k1 p w leading promised r1.4 r1.0 r1.1 s1 r1.1? s1? r1.1 r1.0 r1.1 s1 r1.1?"},
		{"reserve, refused, under a quota", "bucket", 3, 0, func(tb *Table) { tb.ReserveAt(tb.Find(1), now, now, 3, own(tb, 3), 0) }, "p p s0 k0 p w s0 s0 k0 p w s0"},
		{"reserve, refused, as far ahead as may be", "bucket", 3, 0, func(tb *Table) {
			at := ahead(tb, 0)
			charge(1, at, 5)(tb)
			tb.ReserveAt(tb.Find(1), at, at, 5, TierQuota(0), 0)
		}, "p s0 k0 p w s0? s0 k0 p w s0 s0 k0 p w s0"},
		{"quota, a freed slot of the key before two lines", "bucket", 9, 1, func(tb *Table) {
			tb.Find(1).slot(0).key.Poke(9 | tierMask)
			under(9, now, 1, 9)(tb)
		}, "p p s0 k0 p s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p p s0 p k0 s0 p k0 k1 h0 k2 h0 k3 h0 k4 h0 k5 h0 k6 h0 k7 h0 k8 s8 p k8 s0 s1 k1 h0 s2 k2 h0 s3 k3 h0 s4 k4 h0 s5 k5 h0 s6 k6 h0 s7 k7 h0 s8 k8 p w k8 s8?"},
		{"charge, a freed slot of the key before two lines", "bucket", 9, 1, func(tb *Table) {
			tb.Find(1).slot(0).key.Poke(9)
			charge(9, now, 1)(tb)
		}, "s0 k0 p s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 s0 s1 k1 h0 s2 k2 h0 s3 k3 h0 s4 k4 h0 s5 k5 h0 s6 k6 h0 s7 k7 h0 s8 k8 p w k8 s8?"},
		{"take, a freed slot of the key before two lines", "bucket", 9, 1, func(tb *Table) {
			tb.Find(1).slot(0).key.Poke(9)
			take(tb, 9, now, 1)
		}, "s0 k0 p s1 k1 s2 k2 s3 k3 s4 k4 s5 k5 s6 k6 s7 k7 w p p s0 p k0 s0 p k0 k1 h0 k2 h0 k3 h0 k4 h0 k5 h0 k6 h0 k7 h0 k8 s8 p k8 s0 s1 k1 h0 s2 k2 h0 s3 k3 h0 s4 k4 h0 s5 k5 h0 s6 k6 h0 s7 k7 h0 s8 k8 p w k8 s8?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := tableOf(t, algorithms[c.kind], 0, c.live, c.freed, Refuse)
			if strings.Contains(c.name, "quota") || c.name == "charge, blocked" {
				labeled(tb, c.live)
			}
			assert.Equal(t, c.want, operations(tb, func() { c.call(tb) }))
		})
	}
}
