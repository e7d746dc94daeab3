package redislimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// Charge takes n tokens from the key whether they are available or not, for a cost that has already arisen, such as the
// bytes of an answer. The key may then owe more than its limit, up to [MaxDebt]. Its requests are refused until enough
// tokens have come back. Charge returns the decision that a request for one token would get after the charge.
//
// In both modes, Charge waits for the store as [Limiter.Take] of a strict limiter does. It does not take the tokens
// that nodes have in hand.
//
// If the store is lost, [FailShare] charges the node's share at once, and the store later. With another
// [FailurePolicy], the error is [ErrStore] with its cause. After ErrStore or the context's error, it is unknown whether
// the tokens were charged. If only an answer is lost, the tokens may be charged twice.
func (l *Limiter) Charge(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	return l.ownQuota.Charge(ctx, key, n)
}

func (l *Limiter) charge(ctx context.Context, q *Quota, key string, n uint64) (engine.Decision, error) {
	n = min(n, l.limit.MaxDebt(q.policy.Limit()))
	defer l.refusals.drop(key) // the key's RetryAfter is longer now
	d, err := l.peek(ctx, q, key, 1, n)
	if !errors.Is(err, ErrStore) || l.share == nil {
		return d, err
	}
	l.fallbacks.Add(1)
	d, _ = l.share.charge(key, q, n)
	l.outlive()
	d.Limit = q.policy.Limit()
	return d, nil
}

// MaxDebt bounds what a key may owe, in multiples of its limit. A key owes tokens because of [Limiter.Charge], of
// [ChargeRefusals], and of requests that shares admitted. The default is 3, or 2 for a sliding log. The default is also
// the minimum, because a share may make a key owe that much. All nodes must use the same value.
//
// If the debt would take more than 30 years to come back, or is too large for the scripts, [New] returns an error. The
// error contains the largest possible MaxDebt.
func MaxDebt(limits uint64) Option {
	return func(c *config) error {
		if limits < 1 {
			return fmt.Errorf("redislimit: MaxDebt(%d): want 1 limit at least", limits)
		}
		c.limit.MaxDebt = limits
		return nil
	}
}

// ChargeRefusals makes refused requests cost tokens, even requests above the limit. As with [engine.ChargeRefusals],
// they cost the available tokens or, up to [MaxDebt], all tokens that they asked for. The limiter is then strict and
// asks the store about every request, without [TrustRefusals]. A refusal by the node's share is charged only to the
// share.
func ChargeRefusals(charge engine.RefusalCharge) Option {
	return func(c *config) error {
		if charge > engine.ChargePenalty {
			return fmt.Errorf("redislimit: ChargeRefusals(%d): want engine.ChargeNothing, ChargeTheRest or ChargePenalty", charge)
		}
		c.limit.Refusals = charge
		return nil
	}
}

// A debtID identifies a debt to the store: the debt of one key under one quota.
type debtID struct {
	key     string
	numbers script.Quota
}

// chargeDebt charges the store with the tokens that the key owes under a quota. If the answer is lost, the debt stays
// and is charged again later. So a debt may be charged twice, but it is never dropped.
func (l *Limiter) chargeDebt(id debtID) {
	owed := l.debts.Begin(id)
	if owed == 0 {
		return
	}
	queue, item := l.route(id.key, script.Ask{Debt: owed, Quota: id.numbers})
	err := queue.putOne(item, nil, func(_ script.Answer, err error) { l.debts.End(id, err == nil) })
	if err != nil {
		l.debts.End(id, false)
	}
}
