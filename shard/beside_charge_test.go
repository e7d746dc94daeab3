//go:build explore

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestChargesBesideATakeAtEveryStep (I2): before any operation of a call that may charge more than the key has, another
// call takes from the key. The key has then taken exactly what the two calls report, and a call that started over
// counts as a retry.
func TestChargesBesideATakeAtEveryStep(t *testing.T) {
	const now = start
	quota := func(tb *Table, tokens uint64) Quota {
		return tb.Plan().NewQuota(atomicbucket.Quota{Token: tb.Plan().Quota(0).Token, Tokens: tokens})
	}
	charge := func(n uint64, status *atomicbucket.Status) func(tb *Table) (Verdict, uint64) {
		return func(tb *Table) (Verdict, uint64) {
			o, charged := tb.Charge(tb.Find(1), now, now, n, TierQuota(0), status)
			return o.Verdict, charged
		}
	}
	refused := func(n uint64) func(tb *Table) (Verdict, uint64) {
		return func(tb *Table) (Verdict, uint64) {
			o := tb.Take(tb.Find(1), now, n, 0)
			return o.Verdict, taken(tb, 1, now)
		}
	}
	var status atomicbucket.Status
	for name, c := range map[string]struct {
		refusals RefusalCharge
		before   uint64 // tokens
		call     func(tb *Table) (verdict Verdict, charged uint64)
		check    func(tb *Table, verdict Verdict, charged uint64, other Verdict, what string)
		retries  bool
	}{
		"charge": {Nothing, 1, charge(1, nil), func(tb *Table, v Verdict, charged uint64, other Verdict, what string) {
			assert.Equal(t, []any{Admitted, uint64(1), Admitted, uint64(3)}, []any{v, charged, other, taken(tb, 1, now)}, what)
		}, true},
		"charge, and tell": {Nothing, 1, charge(2, &status), func(tb *Table, v Verdict, charged uint64, other Verdict, what string) {
			assert.Equal(t, []any{Admitted, uint64(2), Admitted, uint64(4)}, []any{v, charged, other, taken(tb, 1, now)}, what)
			assert.Contains(t, []uint64{1, 2}, status.Remaining, what)
			assert.Zero(t, status.RetryAfter, what)
		}, true},
		"charge more than fits": {Nothing, 1, charge(100, &status), func(tb *Table, v Verdict, charged uint64, other Verdict, what string) {
			assert.Equal(t, Admitted, v, what)
			assert.Equal(t, 9-uint64(btoi(other == Admitted)), charged, what)
			assert.EqualValues(t, 10, taken(tb, 1, now), what)
			assert.Zero(t, status.Remaining, what)
			assert.Positive(t, status.RetryAfter, what)
		}, true},
		"charge where there is no room": {Nothing, 0, func(tb *Table) (Verdict, uint64) {
			return charge(1, &status)(tb)
		}, func(tb *Table, v Verdict, charged uint64, other Verdict, what string) {
			assert.Equal(t, []any{Refused, uint64(0), Refused, uint64(10)}, []any{v, charged, other, taken(tb, 1, now)}, what)
			assert.Zero(t, status.Remaining, what)
			assert.Positive(t, status.RetryAfter, what)
		}, false},
		"under a quota": {Nothing, 1, func(tb *Table) (Verdict, uint64) {
			o := tb.TakeAt(tb.Find(1), now, now, 3, quota(tb, 5), &status)
			return o.Verdict, 3
		}, func(tb *Table, v Verdict, charged uint64, other Verdict, what string) {
			assert.Equal(t, []any{Admitted, Admitted, uint64(5)}, []any{v, other, taken(tb, 1, now)}, what)
			assert.Contains(t, []uint64{0, 1}, status.Remaining, what)
		}, true},
		"penalty": {Penalty, 1, refused(5), func(tb *Table, v Verdict, _ uint64, other Verdict, what string) {
			assert.Equal(t, []any{Refused, uint64(7)}, []any{v, taken(tb, 1, now)}, what)
		}, true},
		"the rest": {TheRest, 1, refused(5), func(tb *Table, v Verdict, _ uint64, other Verdict, what string) {
			assert.Equal(t, []any{Refused, uint64(5)}, []any{v, taken(tb, 1, now)}, what)
		}, true},
	} {
		for kind, algorithm := range algorithmsOfTen(t) {
			t.Run(name+", "+kind, func(t *testing.T) {
				retried := false
				inPlace := name == "under a quota" && (kind == "bucket" || kind == "batch")
				injected(t, func() (call, also func(), check func(string)) {
					plan, err := NewPlan(algorithm, 0)
					require.NoError(t, err)
					plan.SetCharges(2, c.refusals)
					tb := newTable(t, 1, 1, func(cfg *Config) { cfg.Plan = plan })
					if c.before == 0 {
						_, charged := tb.Charge(tb.Find(1), now, now, 100, TierQuota(0), nil)
						require.EqualValues(t, 10, charged)
					} else {
						require.Equal(t, Admitted, take(tb, 1, now, c.before))
					}
					if inPlace {
						labeled(tb, 1)
					}
					verdict, other, charged := Undecided, Undecided, uint64(0)
					status = atomicbucket.Status{Remaining: 99, RetryAfter: -1}
					return func() { verdict, charged = c.call(tb) },
						func() { other = take(tb, 1, now, 1) },
						func(what string) {
							c.check(tb, verdict, charged, other, what)
							retries := tb.Stats().Retries
							assert.LessOrEqual(t, retries, uint64(1), what)
							retried = retried || retries > 0
						}
				})
				assert.Equal(t, c.retries && !inPlace, retried)
			})
		}
	}
}

// algorithmsOfTen returns one algorithm of each kind, with a limit of five tokens and records with room for ten.
func algorithmsOfTen(t *testing.T) map[string]atomicbucket.Algorithm {
	all := algorithmsOfFive(t)
	fixed, err := atomicbucket.NewFixedWindow(5, 10, 5*time.Second, false)
	require.NoError(t, err)
	sliding, err := atomicbucket.NewSlidingWindow(5, 10, 5*time.Second)
	require.NoError(t, err)
	log, err := atomicbucket.NewSlidingLog(5, 10, 5*time.Second)
	require.NoError(t, err)
	all["fixed"], all["sliding"], all["log"] = &fixed, &sliding, &log
	return all
}

// TestAChargeThatHitsIsDecidedBesideATakeAtEveryStep: if the record changes during a charge, the charge is retried in
// place.
func TestAChargeThatHitsIsDecidedBesideATakeAtEveryStep(t *testing.T) {
	injected(t, func() (call, other func(), check func(string)) {
		tb := newTable(t, 1, 1, nil)
		require.Equal(t, Admitted, take(tb, 1, start, 1))
		verdict := Undecided
		return func() { _, _, verdict = tb.HitCharge(tb.Find(1), start, 3, TierQuota(0)) },
			func() { require.Equal(t, Admitted, take(tb, 1, start, 1)) },
			func(what string) {
				assert.Equal(t, Admitted, verdict, what)
				assert.EqualValues(t, 5, taken(tb, 1, start), what)
			}
	})
}
