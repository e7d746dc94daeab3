package redislimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// Charge takes n tokens from the key whether they are there or not: for what has happened already, such as the bytes of
// an answer. The key then owes more than its limit, and passes again when enough of that is back. What a key owes is
// bounded ([MaxDebt]); what does not fit is not charged.
//
// The decision is about a request for one token, after the charge. Charge asks the store whatever the mode, and waits
// as [Limiter.Take] of a strict limiter does. Tokens that nodes have in hand are not taken from them.
//
// While the store is lost the node's share is charged, and the store when it is back, if the policy is [FailShare]; if
// single answers are lost, it may be charged twice. With another policy the error is [ErrStore] with its cause: n may
// then be charged or not. The same holds for an error of the context.
func (l *Limiter) Charge(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	return l.own.Charge(ctx, key, n)
}

func (l *Limiter) charge(ctx context.Context, q *Quota, key string, n uint64) (engine.Decision, error) {
	n = min(n, l.limit.MaxDebt(q.policy.Limit()))
	defer l.known.drop(key) // its RetryAfter is longer now
	d, err := l.peek(ctx, q, key, 1, n)
	if !errors.Is(err, ErrStore) || l.share == nil {
		return d, err
	}
	l.fallbacks.Add(1)
	d = l.share.charge(key, q, n)
	d.Limit = q.policy.Limit()
	return d, nil
}

// MaxDebt bounds what a key may owe, as so many times its limit: by [Limiter.Charge], by refusals that cost something
// ([ChargeRefusals]), and by what shares admitted while the store was lost. It is 3 without this option, or 2 for a
// sliding log, and not less: what shares admit needs that. A window or a log forgets what is owed beyond its limit as
// docs/distributed.md says. More than comes back in 30 years, or than the numbers of the scripts hold, is an error of
// [New] that names the most. All nodes must have the same.
func MaxDebt(limits uint64) Option {
	return func(c *config) error {
		if limits < 1 {
			return fmt.Errorf("redislimit: MaxDebt(%d): want 1 limit at least", limits)
		}
		c.limit.MaxDebt = limits
		return nil
	}
}

// ChargeRefusals makes refused requests cost something, as [engine.ChargeRefusals] does: what there is, or what they
// asked for, up to [MaxDebt]. A refusal and its charge are one step of the store, and requests for more than the limit
// pay, too. The store is then asked about every request, whatever [BelieveRefusals] says, and the limiter is strict.
// What a node's share refuses while the store is lost is charged to the share alone.
func ChargeRefusals(charge engine.RefusalCharge) Option {
	return func(c *config) error {
		if charge > engine.ChargePenalty {
			return fmt.Errorf("redislimit: ChargeRefusals(%d): want engine.ChargeNothing, ChargeTheRest or ChargePenalty", charge)
		}
		c.limit.Refusals = charge
		return nil
	}
}

// owing names what the store has to be charged with of a key, under a quota: what the share of the node admitted, and
// what requests cost beyond their holds.
type owing struct {
	key     string
	numbers script.Quota
}

// settle has the store charged with what is owed of the key under a quota, if it is anything. It is called when the
// store has answered. If the answer to this is lost it is charged again: maybe twice, never not at all.
func (l *Limiter) settle(of owing) {
	owed := l.owed.Begin(of)
	if owed == 0 {
		return
	}
	queue, item := l.place(of.key, script.Ask{Debt: owed, Quota: of.numbers})
	err := queue.putOne(item, nil, func(_ script.Answer, err error) { l.owed.End(of, err == nil) })
	if err != nil {
		l.owed.End(of, false)
	}
}
