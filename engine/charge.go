package engine

import (
	"fmt"
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// Charge takes n tokens from the key whether the key has them or not. It is for a cost that has already arisen, such as
// the bytes of an answer. The key may then owe more than its limit, and is admitted again when enough of this debt has
// come back. A fixed window forgets its debt when it ends. Charge does not allocate.
//
// The result d is the decision about a request for one token after the charge. If the key is in debt, Remaining is 0. A
// charge of 0 takes nothing. The result lost is the number of tokens that were not charged:
//
//   - the tokens above [MaxDebt], and the tokens that do not fit into the list of times of a [SlidingLog];
//   - all tokens of a key under [Blocked], and of a new key without room under [Refuse] or [Admit].
//
// Under [Unlimited], tokens are not counted, and lost is 0.
func (l *Limiter) Charge(k Key, n uint64) (d Decision, lost uint64) {
	if n == 0 {
		return l.Peek(k, 1), 0
	}
	place := l.table.Find(k.hash)
	place.Touch()
	nanos := l.clock.exactNanos()
	s, plan, v := l.table.HitCharge(place, nanos, n, k.quota)
	runtime.KeepAlive(l)
	if v == shard.Admitted {
		status := plan.StatusOf(s, nanos, 1, k.quota)
		fillDecision(&d, 0, plan.Granted(k.quota).Tokens, status, status.RetryAfter == 0)
		return d, 0
	}
	return l.chargeSlowly(place, k, n, nanos)
}

func (l *Limiter) chargeSlowly(place shard.Place, k Key, n uint64, nanos int64) (d Decision, lost uint64) {
	var status atomicbucket.Status
	o, charged := l.table.Charge(place, nanos, nanos, n, k.quota, &status)
	runtime.KeepAlive(l)
	switch o.Verdict {
	case shard.UnlimitedQuota:
		return unlimitedDecision, 0
	case shard.TooMuch:
		return Decision{RetryAfter: Never}, n
	case shard.NoRoom:
		l.decide(&d, k, o, status, nanos, 1)
		return d, n
	case shard.Unrecorded: // nothing was charged
		return l.Peek(k, 1), n
	}
	fillDecision(&d, o.At-nanos, limitOf(o.Plan, k), status, status.RetryAfter == 0)
	return d, n - charged
}

// MaxDebt bounds the debt that a key may have from [Limiter.Charge] and [ChargeRefusals], as a multiple of the key's
// limit. The multiple is 1 to 2^32. By default it is 10 for [TokenBucket] and [BatchRefill]. So even a key that was
// charged far too much is admitted again after little more than nine times its bucket's fill time. For the other
// algorithms, which forget debts, the default is 1.
//
// A higher bound needs more room, because a record must have room for the largest debt. A window then has fewer bits
// for the time, and a log is longer by the same factor. [New] refuses a bound that does not fit. A [Quota] whose debt
// would not fit has a lower bound.
func MaxDebt(limits uint64) Option {
	return func(c *config) error {
		if limits < 1 || limits > 1<<32 {
			return fmt.Errorf("engine: MaxDebt(%d): want 1 to %d limits", limits, uint64(1<<32))
		}
		c.terms.maxDebt = limits
		return nil
	}
}

// A RefusalCharge is what a refused request costs. [ChargeRefusals] sets it.
type RefusalCharge = shard.RefusalCharge

const (
	// ChargeNothing means that a refused request takes nothing. This is the default.
	ChargeNothing = shard.Nothing
	// ChargeTheRest means that a refused request takes the tokens that are left. For example, if 3 tokens are left, a
	// request for 5 is refused and takes the 3, so a following request for 1 is refused, too.
	ChargeTheRest = shard.TheRest
	// ChargePenalty means that a refused request is charged as by [Limiter.Charge], up to [MaxDebt]. So a client that
	// keeps sending requests must wait longer.
	ChargePenalty = shard.Penalty
)

// ChargeRefusals makes refused requests cost tokens, including requests for more than the limit. A refusal and its
// charge are one atomic step, so a request that can be admitted is never charged as a refusal. RetryAfter includes the
// charge. A refused request then costs the limiter as much work as an admitted request, because it writes to the key's
// record. Refusals of [Limiter.Reserve] cost nothing. With a token bucket, refusals of [Limiter.Wait] cost nothing
// either.
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
func (t terms) apply(plan *shard.Plan, policies policySet) error {
	switch {
	case t.refusals != ChargeNothing && plan.InFlight():
		return fmt.Errorf("engine: %v: ChargeRefusals: what a refusal would take could not be given back", policies.base)
	case t.maxDebt > 0:
		plan.SetCharges(t.maxDebt, t.refusals)
		for tier, p := range policies.byTier {
			if q := plan.Quota(uint8(tier)); !plan.HoldsDebt(q) {
				return fmt.Errorf("engine: %v: MaxDebt(%d): a record has room for %d limits", p, t.maxDebt, atomicbucket.Most(plan.Algorithm())/(q.Token*q.Tokens))
			}
		}
	case t.refusals != ChargeNothing:
		plan.SetCharges(plan.MaxDebt(), t.refusals)
	}
	return nil
}

// chargeable returns the time for a call that may be refused, never a late time if refusals cost tokens.
func (l *Limiter) chargeable(nanos int64) int64 {
	if l.terms.refusals != ChargeNothing && l.terms.lateness > 0 {
		return l.clock.renew(coarseTick)
	}
	return nanos
}
