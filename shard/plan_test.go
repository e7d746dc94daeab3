package shard

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
)

// TestARefusalThatALateClockMayCause: a refusal is doubtful exactly if a clock that is late by no more than the given
// lateness could have caused it.
func TestARefusalThatALateClockMayCause(t *testing.T) {
	bucket := perSecond(t, 1, 5)
	batch, err := atomicbucket.NewBatchBucket(3, 10*time.Second, 5)
	require.NoError(t, err)
	fixed, err := atomicbucket.NewFixedWindow(5, 5, 5*time.Second, false)
	require.NoError(t, err)
	sliding, err := atomicbucket.NewSlidingWindow(5, 5, 5*time.Second)
	require.NoError(t, err)
	log, err := atomicbucket.NewSlidingLog(5, 5, 5*time.Second)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		algorithm atomicbucket.Algorithm
		lateness  time.Duration
		doubt     uint64
		doubtful  int64 // a refusal is doubtful from this many nanoseconds before the request is admitted
	}{
		"bucket":            {&bucket, time.Millisecond, 1_000_002, 1_000_001},
		"bucket, on time":   {&bucket, 0, 0, 0},
		"bucket, a little":  {&bucket, 1, 3, 2},
		"batch":             {&batch, time.Millisecond, 0 + 2 + 2*2, 10 * second},
		"batch, on time":    {&batch, 0, 0, 0},
		"fixed":             {&fixed, time.Millisecond, 1_000_002, 1_000_001},
		"fixed, on time":    {&fixed, 0, 0, 0},
		"sliding":           {&sliding, time.Millisecond, 1_000_002, 1_000_001},
		"sliding, on time":  {&sliding, 0, 0, 0},
		"log":               {&log, time.Millisecond, 1_000_002, 1_000_001},
		"log, on time":      {&log, 0, 0, 0},
		"fixed, negatively": {&fixed, -time.Second, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := NewPlan(c.algorithm, c.lateness)
			require.NoError(t, err)
			assert.Equal(t, c.doubt, plan.lateTicks)
			at := start / (30 * second) * 30 * second // the beginning of a window, for all algorithms
			table := newTable(t, 4, 4, func(cfg *Config) { cfg.Plan, cfg.Start = plan, at })
			require.Equal(t, Admitted, take(table, 1, at, 5))
			record, _, _ := table.record(table.Find(1))
			wait := int64(c.algorithm.Wait(at, c.algorithm.Shortfall(record, c.algorithm.Ticks(at), c.algorithm.Quota().Demand(1))))
			quota := plan.NewQuota(c.algorithm.Quota())
			refused := func(want Verdict, at int64) {
				assert.Equal(t, want, take(table, 1, at, 1))
				assert.Equal(t, want, table.TakeAt(table.Find(1), at, at, 1, quota, nil).Verdict)
			}
			if c.doubtful > 0 {
				refused(Doubtful, at+wait-1)
				refused(Doubtful, at+wait-min(c.doubtful, wait))
			}
			if c.doubtful < wait {
				refused(Refused, at+wait-c.doubtful-1)
			}
			assert.Equal(t, Admitted, take(table, 1, at+wait, 1))
		})
	}
}

// TestTiers: a plan may have up to fourteen tiers in addition to the first. A tier that was not given grants nothing.
func TestTiers(t *testing.T) {
	bucket := perSecond(t, 1, 5)
	tiers := make([]atomicbucket.Quota, 16)
	for i := range tiers {
		tiers[i] = atomicbucket.Quota{Token: 1, Tokens: uint64(100 + i)}
	}
	_, err := NewPlan(&bucket, 0, tiers...)
	assert.EqualError(t, err, "shard: 17 tiers: want at most 15")
	plan, err := NewPlan(&bucket, 0, tiers[:14]...)
	require.NoError(t, err)
	assert.Equal(t, bucket.Quota(), plan.Quota(0))
	for i := range uint8(14) {
		assert.Equal(t, tiers[i], plan.Quota(i+1))
	}
	plan, err = NewPlan(&bucket, 0, tiers[:2]...)
	require.NoError(t, err)
	assert.Equal(t, tiers[1], plan.Quota(2))
	assert.Equal(t, atomicbucket.Quota{Token: bucket.Quota().Token}, plan.Quota(3))
	assert.Equal(t, atomicbucket.Quota{Token: bucket.Quota().Token}, plan.Quota(15))
	assert.Equal(t, bucket.Quota(), plan.Quota(16), "tiers go round")
}

// TestWhatNothingHasTakenIsFull: in every algorithm, a key without a record has its whole limit.
func TestWhatNothingHasTakenIsFull(t *testing.T) {
	bucket := perSecond(t, 1, 5)
	fixed, err := atomicbucket.NewFixedWindow(5, 5, 5*time.Second, false)
	require.NoError(t, err)
	sliding, err := atomicbucket.NewSlidingWindow(5, 5, 5*time.Second)
	require.NoError(t, err)
	log, err := atomicbucket.NewSlidingLog(5, 5, 5*time.Second)
	require.NoError(t, err)
	for _, algorithm := range []atomicbucket.Algorithm{&bucket, &fixed, &sliding, &log} {
		plan, err := NewPlan(algorithm, 0)
		require.NoError(t, err)
		table := newTable(t, 4, 4, func(c *Config) { c.Plan = plan })
		want := atomicbucket.NewState(atomicbucket.Live, 0, algorithm.Full(algorithm.Ticks(start)))
		o, status := table.Peek(table.Find(1), start, 2, 0)
		assert.Equal(t, Outcome{State: want, Plan: plan, At: start}, o)
		assert.EqualValues(t, 5, status.Remaining)
		assert.Zero(t, status.RetryAfter)
		assert.Equal(t, Outcome{State: want, Plan: plan, At: start}, table.Refund(table.Find(1), start, 2, 0, Receipt{}))
		assert.False(t, table.Reset(table.Find(1)))
		assert.Zero(t, dumpSum(table), "nothing is written")
		_, status = table.Peek(table.Find(1), start, 6, 0)
		assert.Zero(t, status.RetryAfter, "more than the limit is asked for as none")
		require.Equal(t, Admitted, take(table, 1, start, 5))
		_, status = table.Peek(table.Find(1), start, 5, 0)
		assert.NotZero(t, status.RetryAfter)
		_, status = table.Peek(table.Find(1), start, 6, 0)
		assert.Zero(t, status.RetryAfter, "more than the limit is asked for as none")
		o = table.Take(table.Find(1), start, 6, 0)
		assert.Equal(t, Outcome{Plan: plan, At: start, Verdict: TooMuch}, o)
		o = table.Take(table.Find(2), start, 6, 0)
		assert.Equal(t, Outcome{Plan: plan, At: start, Verdict: TooMuch}, o)
	}
}

func dumpSum(t *Table) (sum uint64) {
	for _, word := range dump(t) {
		sum |= word
	}
	return sum
}

// TestHitSaysNothingOfWhatItDoesNotDecide: an undecided hit returns no state and no plan.
func TestHitSaysNothingOfWhatItDoesNotDecide(t *testing.T) {
	table := newTable(t, 4, 4, nil)
	state, plan, verdict := table.Hit(table.Find(1), start, 1, 0)
	assert.Zero(t, state)
	assert.Nil(t, plan)
	assert.Equal(t, Undecided, verdict)
	require.Equal(t, Admitted, take(table, 1, start, 1))
	_, _, verdict = table.Hit(table.Find(1), start, 5, 0)
	assert.Equal(t, Refused, verdict)
	_, _, verdict = table.Hit(table.Find(1), start, 6, 0)
	assert.Equal(t, Undecided, verdict, "more than the limit")
	_, _, verdict = table.Hit(table.Find(1), start-1, 1, 0)
	assert.Equal(t, Undecided, verdict, "late")
	skew := int64(table.Plan().skew)
	_, _, verdict = table.Hit(table.Find(1), start+skew+1, 1, 0)
	assert.Equal(t, Undecided, verdict, "far ahead")
	_, _, verdict = table.Hit(table.Find(1), start+skew, 1, 0)
	assert.Equal(t, Admitted, verdict, "as far ahead as may be")
}

// TestHitSearchesTwoLines: Hit finds records in the first two lines of the probe window, and leaves others to Miss.
func TestHitSearchesTwoLines(t *testing.T) {
	table := newTable(t, 1, 12, nil)
	for key := range uint64(12) {
		require.Equal(t, Admitted, take(table, 1+key, start, 1))
	}
	hits := 0
	for key := range uint64(12) {
		_, _, verdict := table.Hit(table.Find(1+key), start, 1, 0)
		if verdict == Admitted {
			hits++
		}
	}
	assert.Equal(t, 8, hits)
	assert.EqualValues(t, 8, table.hitSlots)
	assert.EqualValues(t, 4, newTable(t, 1, 4, nil).hitSlots, "no more than the probe window")
}

// TestHitQuotaSaysNothingOfWhatItDoesNotDecide: an undecided HitQuota returns no state and no plan.
func TestHitQuotaSaysNothingOfWhatItDoesNotDecide(t *testing.T) {
	table := newTable(t, 4, 4, nil)
	quota := table.Plan().NewQuota(atomicbucket.Quota{Token: table.Plan().Quota(0).Token, Tokens: 9})
	undecided := func(key uint64, now int64, n uint64, q Quota, why string) {
		state, plan, verdict := table.HitQuota(table.Find(key), now, n, q)
		assert.Zero(t, state, why)
		assert.Nil(t, plan, why)
		assert.Equal(t, Undecided, verdict, why)
	}
	verdict := func(now int64, n uint64, q Quota) Verdict {
		_, _, verdict := table.HitQuota(table.Find(1), now, n, q)
		return verdict
	}
	undecided(1, start, 1, quota, "no record")
	require.Equal(t, Admitted, take(table, 1, start, 1))
	undecided(1, start, 1, quota, "the last take was under a tier")
	require.Equal(t, Admitted, table.TakeAt(table.Find(1), start, start, 1, quota, nil).Verdict)
	skew := int64(table.Plan().skew)
	undecided(1, start, 10, quota, "more than the limit")
	undecided(1, start, 1, Blocked(), "blocked")
	undecided(1, start, 1, Unlimited(), "unlimited")
	undecided(1, start, 1, planOf(t, perSecond(t, 2, 5)).NewQuota(atomicbucket.Quota{Token: 5e8, Tokens: 9}), "of another table")
	undecided(1, start-1, 1, quota, "late")
	undecided(1, start+skew+1, 1, quota, "far ahead")
	assert.Equal(t, Refused, verdict(start, 8, quota))
	assert.Equal(t, Admitted, verdict(start, 7, quota))
	assert.Equal(t, Admitted, verdict(start+skew, 1, quota), "as far ahead as may be")
}

// TestHitChargeSaysNothingOfWhatItDoesNotDecide: an undecided HitCharge returns no state and no plan.
func TestHitChargeSaysNothingOfWhatItDoesNotDecide(t *testing.T) {
	table := newTable(t, 4, 4, nil)
	quota := table.Plan().NewQuota(atomicbucket.Quota{Token: table.Plan().Quota(0).Token, Tokens: 9})
	undecided := func(now int64, n uint64, q Quota, why string) {
		state, plan, verdict := table.HitCharge(table.Find(1), now, n, q)
		assert.Zero(t, state, why)
		assert.Nil(t, plan, why)
		assert.Equal(t, Undecided, verdict, why)
	}
	admitted := func(now int64, n uint64, q Quota, left uint64, why string) {
		state, plan, verdict := table.HitCharge(table.Find(1), now, n, q)
		assert.Equal(t, Admitted, verdict, why)
		assert.Same(t, table.Plan(), plan, why)
		assert.Equal(t, left, plan.bucket.Debt(state.Record(), plan.bucket.Ticks(now))/plan.Quota(0).Token, why)
	}
	undecided(start, 1, TierQuota(0), "no record")
	require.Equal(t, Admitted, take(table, 1, start, 1))
	skew := int64(table.Plan().skew)
	undecided(start, 50, TierQuota(0), "more than a key may owe")
	undecided(start, 90, quota, "more than a key may owe under the quota")
	undecided(start, 1<<60, TierQuota(0), "more than fits into a word")
	undecided(start, math.MaxUint64/uint64(second), TierQuota(0), "more than fits into a word with what is owed")
	undecided(start, 1, Blocked(), "blocked")
	undecided(start, 1, Unlimited(), "unlimited")
	undecided(start-1, 1, TierQuota(0), "late")
	undecided(start+skew+1, 1, TierQuota(0), "far ahead")
	admitted(start, 49, TierQuota(0), 50, "all that a key may owe")
	undecided(start, 1, TierQuota(0), "one more")
	undecided(start, 39, quota, "the last charge was under a tier")
	_, charged := table.Charge(table.Find(1), start, start, 1, quota, nil)
	require.EqualValues(t, 1, charged)
	admitted(start, 39, quota, 90, "all that it may owe under the quota")
	undecided(start, 1, quota, "one more under the quota")
	admitted(start+skew, 50, quota, 50, "as far ahead as may be, and all at once")
}

// TestTheBoundOfADebt: the bound of a debt is a multiple of the limit, but at most the debt for which a record has
// room, however large the numbers are.
func TestTheBoundOfADebt(t *testing.T) {
	plan := planOf(t, perSecond(t, 1, 5))
	for _, c := range []struct {
		limit, maxDebt, want uint64
		holds                bool
	}{
		{5, 10, 50, true}, {1 << 51, 1, 1 << 51, true}, {1 << 50, 2, 1 << 51, true}, {1 << 50, 3, 1 << 51, false},
		{1 << 50, 1 << 14, 1 << 51, false}, {1 << 50, 1<<14 + 1, 1 << 51, false}, {1 << 50, 1 << 15, 1 << 51, false},
	} {
		plan.SetCharges(c.maxDebt, Nothing)
		assert.Equal(t, c.want, plan.bound(quota{1, c.limit, c.limit}, modeCharge), "%v", c)
		assert.Equal(t, c.limit, plan.bound(quota{1, c.limit, c.limit}, modeDrain), "%v", c)
		assert.Equal(t, c.holds, plan.HoldsDebt(atomicbucket.Quota{Token: 1, Tokens: c.limit}), "%v", c)
	}
}

// TestAChargeThatFitsIntoNoWord: charges whose cost in ticks overflows a word are limited by the bound of the key's
// debt.
func TestAChargeThatFitsIntoNoWord(t *testing.T) {
	table := newTable(t, 4, 4, func(c *Config) { c.Plan = planOf(t, perSecond(t, 97, 5)) })
	require.Equal(t, Admitted, take(table, 1, start, 1))
	want := []uint64{48, 0} // the key may still owe 49 tokens, minus one because of rounding
	for i, twice := range []uint64{1, 2} {
		n := (1 << 63 / table.Plan().Quota(0).Token) * 2 * twice
		_, _, verdict := table.HitCharge(table.Find(1), start, n, TierQuota(0))
		assert.Equal(t, Undecided, verdict)
		_, charged := table.Charge(table.Find(1), start, start, n, TierQuota(0), nil)
		assert.EqualValues(t, want[i], charged)
	}
}

// TestDebtsUnlessSet: without SetCharges, a bucket may owe ten times its limit, and any other record its limit.
func TestDebtsUnlessSet(t *testing.T) {
	for kind, want := range map[string]uint64{"bucket": 10, "batch": 10, "fixed": 1, "sliding": 1, "log": 1} {
		plan, err := NewPlan(algorithmsOfFive(t)[kind], 0)
		require.NoError(t, err)
		assert.Equal(t, want, plan.MaxDebt(), kind)
	}
}

// TestAChargeUnderALimitOfNothingAndOfOne: a key has a record. It is charged under three quotas: one that admits
// nothing, an unlimited one, and one of one token.
func TestAChargeUnderALimitOfNothingAndOfOne(t *testing.T) {
	table := newTable(t, 4, 4, nil)
	require.Equal(t, Admitted, take(table, 1, start, 1))
	charge := func(q Quota) (Verdict, uint64) {
		o, charged := table.Charge(table.Find(1), start, start, 2, q, nil)
		return o.Verdict, charged
	}
	for _, c := range []struct {
		quota   Quota
		verdict Verdict
		charged uint64
	}{
		{Blocked(), TooMuch, 0}, {Unlimited(), UnlimitedQuota, 0},
		{table.Plan().NewQuota(atomicbucket.Quota{Token: table.Plan().Quota(0).Token, Tokens: 1}), Admitted, 2},
	} {
		verdict, charged := charge(c.quota)
		assert.Equal(t, c.verdict, verdict)
		assert.Equal(t, c.charged, charged)
	}
}

// TestWhatMoreThanTheLimitCosts: a request for more than the limit is refused and charged. The mode Penalty charges the
// tokens that the request asked for, as far as the key may owe them. The mode TheRest charges the tokens that are left.
func TestWhatMoreThanTheLimitCosts(t *testing.T) {
	for refusals, want := range map[RefusalCharge]uint64{Nothing: 0, TheRest: 5, Penalty: 7} {
		plan := planOf(t, perSecond(t, 1, 5))
		plan.SetCharges(2, refusals)
		table := newTable(t, 4, 4, func(c *Config) { c.Plan = plan })
		require.Equal(t, TooMuch, take(table, 1, start, 7))
		o, _ := table.Peek(table.Find(1), start, 0, 0)
		assert.Equal(t, want, plan.algorithm.Tokens(plan.algorithm.Debt(o.State.Record(), plan.algorithm.Ticks(start))))
	}
}

// TestWhatQuotasGrant: quotas without numbers grant everything or nothing. Quotas with numbers grant these as long as
// their unit stays the same.
func TestWhatQuotasGrant(t *testing.T) {
	assert.True(t, Unlimited().IsUnlimited())
	assert.False(t, Blocked().IsUnlimited())
	assert.False(t, TierQuota(0).IsUnlimited())
	plan := planOf(t, perSecond(t, 1, 5))
	plan.SetTier(1, Unlimited())
	plan.SetTier(2, Blocked())
	table := newTable(t, 1, 1, func(c *Config) { c.Plan = plan })
	p := table.Find(1)
	for q, want := range map[Quota]Verdict{
		Unlimited(): UnlimitedQuota, TierQuota(1): UnlimitedQuota, Blocked(): TooMuch, TierQuota(2): TooMuch, TierQuota(0): Admitted,
	} {
		assert.Equal(t, want == UnlimitedQuota, plan.IsUnlimited(q))
		assert.Equal(t, want, table.TakeAt(p, start, start, 1, q, nil).Verdict)
		if want != Admitted {
			o, status := table.PeekAt(p, start, start, 1, q)
			assert.Equal(t, TooMuch, o.Verdict, "of which there is nothing to tell")
			assert.Zero(t, status)
		}
	}
	own := plan.NewQuota(atomicbucket.Quota{Token: plan.Quota(0).Token, Tokens: 4})
	table.Adopt(planOf(t, perSecond(t, 1, 9)), clockAt(start))
	assert.EqualValues(t, 4, table.Plan().Granted(own).Tokens, "of the same ticks")
	table.Adopt(planOf(t, perSecond(t, 0.8e9, 9)), clockAt(start))
	assert.Zero(t, table.Plan().Granted(own).Tokens, "of other ticks")
}

// TestADebtOfATierThatIsNotTheLabels (R27): if calls under two tiers race, a record may have the price of one tier and
// the label of the other. If the next plan has no room for the time that the record owes, the record owes the same
// number of tokens of the tier whose price it has.
func TestADebtOfATierThatIsNotTheLabels(t *testing.T) {
	planOf := func(perNano float64, tokens ...time.Duration) *Plan {
		bucket, err := atomicbucket.NewTokenBucket(perNano, 1000*time.Nanosecond, 1)
		require.NoError(t, err)
		var tiers []atomicbucket.Quota
		for _, every := range tokens {
			q, err := bucket.Share(1, every, 500)
			require.NoError(t, err)
			tiers = append(tiers, q)
		}
		plan, err := NewPlan(bucket.Priced(), 0, tiers...)
		require.NoError(t, err)
		return plan
	}
	table, err := New(Config{Plan: planOf(1, time.Millisecond, time.Hour), Slots: 16, Shards: 1, ProbeWindow: 16, Start: start})
	require.NoError(t, err)
	p := table.Find(1)
	require.Equal(t, Admitted, table.TakeAt(p, start, start, 500, TierQuota(2), nil).Verdict)
	_, _, sl := table.record(p)
	table.relabel(p, sl, TierQuota(1))
	table.Adopt(planOf(16, time.Millisecond, time.Minute), clockAt(start)) // a record has room for 39 hours
	for tier := range uint8(2) {
		assert.Equal(t, Refused, table.TakeAt(p, start, start, 1, TierQuota(tier+1), nil).Verdict, tier+1)
	}
}
