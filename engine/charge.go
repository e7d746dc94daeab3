package engine

import (
	"fmt"
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// Charge takes n tokens from the key whether the key has them or not. It is for a cost that has already arisen, such as
// the bytes of an answer or the tokens of a language model. The key may then owe more than its limit. Its requests are
// admitted again when enough of the debt has come back. Charge does not allocate.
//
// The decision describes a request for one token after the charge: Allowed says whether that request would be admitted
// now, and RetryAfter is the time after which it would be admitted. Remaining is never below 0. A charge of 0 takes
// nothing.
//
// The debt of a key is bounded ([MaxDebt]), so that no charge with a wrong number locks a key out forever. The result
// lost is how many of the n tokens were not charged:
//
//   - It is 0 if all n tokens were charged. It is also 0 for a key under [Unlimited], because the tokens of such a key
//     are not counted.
//   - It is n for a key under [Blocked], and for a new key if the table has no room for a record and [Overflow] is
//     [Refuse] or [Admit].
//
// How a debt goes away depends on the algorithm:
//
//   - In a token bucket, the debt goes away at the bucket's rate.
//   - A fixed window loses its debt when it ends: the next window starts without a debt. Tokens that were charged above
//     the limit matter only for refunds.
//   - A sliding window counter counts the tokens of the current window also in the next window.
//   - A sliding window log cannot record more tokens than its ring has entries, so it charges only the tokens that fit.
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

// chargeSlowly does what Charge does, for charges that its fast path cannot make.
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
	case shard.Unrecorded: // nothing was charged
		return l.Peek(k, 1), n
	}
	answer(&d, o.At-nanos, limitOf(o.Plan, k), status, status.RetryAfter == 0)
	return d, n - charged
}

// MaxDebt bounds the debt that a key may have from [Limiter.Charge] and from refusals that cost something
// ([ChargeRefusals]). The parameter limits sets this bound, as a multiple of the key's limit. Without this option the
// bound is 10 times the limit for buckets ([TokenBucket], [BatchRefill]). That is enough for requests whose cost is
// known only afterwards, if no request costs more than several times the limit. Even if a key was charged far too much,
// it then owes no more than its limit after nine times the time in which its bucket fills, and its requests are
// admitted again as further tokens come back. For the other algorithms, which forget debts, the bound without this
// option is the limit itself.
//
// The record of a window or a log must be able to count the whole debt. For a window, a higher bound leaves fewer bits
// of the record's word for the time. For a log, the length of the ring is multiplied by the parameter limits. [New]
// refuses a bound that does not fit, such as a debt of more than the 2^51 ticks of a bucket. If the debt of a [Quota]
// would not fit, the bound for this quota is the largest debt that fits. The parameter limits is 1 to 2^32.
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
	// ChargeNothing means that a refused request takes nothing. This is the default.
	ChargeNothing = shard.Nothing
	// ChargeTheRest means that a refused request takes the tokens that are left, up to the number that it requested.
	// For example, if 3 tokens are left, a request for 5 is refused and takes the 3. So a request for 1 that follows is
	// refused, too.
	ChargeTheRest = shard.TheRest
	// ChargePenalty means that the tokens of a refused request are charged as by [Limiter.Charge], up to [MaxDebt]. So
	// a client that keeps sending requests must wait longer.
	ChargePenalty = shard.Penalty
)

// ChargeRefusals makes refused requests cost something. A refusal and its charge are one atomic step, so a request that
// could be admitted is never charged as a refusal. RetryAfter includes the charge. Requests for more than the limit are
// charged, too. Refusals of [Limiter.Reserve], and of [Limiter.Wait] on a token bucket, cost nothing, because those
// calls ask for a place in the queue.
//
// With this option, refused requests write to the key's record, as admitted requests do. So a refused request then
// costs the limiter as much work as an admitted one.
func ChargeRefusals(charge RefusalCharge) Option {
	return func(c *config) error {
		if charge > ChargePenalty {
			return fmt.Errorf("engine: ChargeRefusals(%d): want engine.ChargeNothing, ChargeTheRest or ChargePenalty", charge)
		}
		c.terms.refusals = charge
		return nil
	}
}

// apply sets the debt bound and the refusal charge of a plan.
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

// chargeable returns the time for a call whose refusal may cost tokens. If refusals cost tokens, it reads a clock that
// is never late.
func (l *Limiter) chargeable(nanos int64) int64 {
	if l.terms.refusals != ChargeNothing && l.terms.lateness > 0 {
		return l.clock.renew(coarseTick)
	}
	return nanos
}
