package engine

import (
	"fmt"
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// Charge takes n tokens from the key whether they are there or not: for what has happened already, such as the bytes of
// an answer or the tokens of a language model. The key may then owe more than its limit, and passes again when enough
// of that is back. It does not allocate.
//
// The decision is about a request for one token, after the charge: Allowed says whether it would pass, RetryAfter when;
// Remaining is never below 0. A charge of 0 takes nothing.
//
// What a key owes is bounded ([MaxDebt]), so that no charge, however wrong its number, locks a key out for ever. lost
// is how many of the n tokens were not charged:
//
//   - It is 0 if all were charged, and for a key under [Unlimited], of which nothing is counted.
//   - It is n for a key under [Blocked], and for a new key without room for a record under [Refuse] or [Admit].
//
// How the key gets rid of the debt depends on the algorithm:
//
//   - A token bucket comes back from its debt at its rate.
//   - The next fixed window forgets it: what is above the limit matters to refunds only.
//   - A sliding window counter counts the present window's tokens in the next one, too.
//   - A sliding window log cannot hold more than its ring, so it charges what fits.
func (l *Limiter) Charge(k Key, n uint64) (d Decision, lost uint64) {
	if n == 0 {
		return l.Peek(k, 1), 0
	}
	place := l.table.Find(k.hash)
	place.Touch()
	nanos := l.clock.surely()
	s, plan, v := l.table.HitCharge(place, nanos, n, k.quota)
	runtime.KeepAlive(l)
	if v == shard.Admitted {
		status := plan.StatusOf(s, nanos, 1, k.quota)
		answer(&d, 0, plan.Granted(k.quota).Tokens, status, status.RetryAfter == 0)
		return d, 0
	}
	return l.chargeSlowly(place, k, n, nanos)
}

// chargeSlowly is the rest of Charge when its hit was undecided.
func (l *Limiter) chargeSlowly(place shard.Place, k Key, n uint64, nanos int64) (d Decision, lost uint64) {
	var status atomicbucket.Status
	o, charged := l.table.Charge(place, nanos, nanos, n, k.quota, &status)
	runtime.KeepAlive(l)
	switch o.Verdict {
	case shard.UnlimitedQuota:
		return everything, 0
	case shard.TooMuch:
		return Decision{RetryAfter: Never}, n
	case shard.NoRoom:
		l.decide(&d, k, o, status, nanos, 1)
		return d, n
	}
	answer(&d, o.At-nanos, limitOf(o.Plan, k), status, status.RetryAfter == 0)
	return d, n - charged
}

// MaxDebt bounds what a key may owe by [Limiter.Charge], and by refusals that cost something ([ChargeRefusals]). The
// bound is limits times the key's limit. Without this option it is 10 limits for buckets ([TokenBucket],
// [BatchRefill]). That is enough for requests whose cost is known only afterwards, if none costs more than several
// limits. A key that was charged wrongly then passes again after nine times the time in which its bucket fills. It is 1
// limit for the others, which forget.
//
// A window or a log whose keys may owe more has to be able to count it. That leaves less of the record's word for the
// time, and makes the log's ring longer by the factor limits. [New] refuses what does not fit, such as a debt of more
// than the 2^51 ticks of a bucket. Where the debt of a [Quota] would not fit, the bound is what fits. limits is 1 to
// 2^32.
func MaxDebt(limits uint64) Option {
	return func(c *config) error {
		if limits < 1 || limits > 1<<32 {
			return fmt.Errorf("engine: MaxDebt(%d): want 1 to %d limits", limits, uint64(1<<32))
		}
		c.terms.maxDebt = limits
		return nil
	}
}

// A RefusalCharge says what a refused request costs: see [ChargeRefusals].
type RefusalCharge = shard.RefusalCharge

const (
	// ChargeNothing: a refused request takes nothing. This is the default.
	ChargeNothing = shard.Nothing
	// ChargeTheRest: a refused request takes what there is, as far as it asked for it. A request for 5 of 3 tokens that
	// are left takes them, and one for 1 is refused then, too.
	ChargeTheRest = shard.TheRest
	// ChargePenalty: a refused request is charged as by [Limiter.Charge], up to [MaxDebt]. A client that goes on asking
	// waits longer.
	ChargePenalty = shard.Penalty
)

// ChargeRefusals makes refused requests cost something. A refusal and its charge are one step: a request that would
// have passed is never charged so. RetryAfter takes the charge into account. Requests for more than the limit are
// charged, too. [Limiter.Reserve] and [Limiter.Wait] on a token bucket are not, since they ask for a place in the
// queue.
//
// Refusals then write to the key's record, as requests that pass do: a client that is refused costs as much as one that
// is not.
func ChargeRefusals(charge RefusalCharge) Option {
	return func(c *config) error {
		if charge > ChargePenalty {
			return fmt.Errorf("engine: ChargeRefusals(%d): want engine.ChargeNothing, ChargeTheRest or ChargePenalty", charge)
		}
		c.terms.refusals = charge
		return nil
	}
}

// apply makes a plan charge by the terms.
func (t terms) apply(plan *shard.Plan, ps policies) error {
	switch {
	case t.refusals != ChargeNothing && plan.InFlight():
		return fmt.Errorf("engine: %v: ChargeRefusals: what a refusal would take could not be given back", ps.base)
	case t.maxDebt > 0:
		plan.SetCharges(t.maxDebt, t.refusals)
		for tier, p := range ps.all {
			if q := plan.Quota(uint8(tier)); !plan.HoldsDebt(q) {
				return fmt.Errorf("engine: %v: MaxDebt(%d): a record has room for %d limits", p, t.maxDebt, atomicbucket.Most(plan.Algorithm())/(q.Token*q.Tokens))
			}
		}
	case t.refusals != ChargeNothing:
		plan.SetCharges(plan.MaxDebt(), t.refusals)
	}
	return nil
}

// chargeable returns the time for a call that may be refused at a cost: by a clock that is not late.
func (l *Limiter) chargeable(nanos int64) int64 {
	if l.terms.refusals != ChargeNothing && l.terms.lateness > 0 {
		return l.clock.renew(coarseTick)
	}
	return nanos
}
