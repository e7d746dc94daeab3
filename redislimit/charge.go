package redislimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// Charge takes n tokens from the key whether they are available or not. It is for a cost that has already arisen, such
// as the bytes of an answer. The key may then owe more than its limit, and its requests are refused until enough tokens
// have come back with time. [MaxDebt] bounds what a key owes; tokens above that bound are not charged.
//
// The decision is the one that a request for one token would get after the charge. In both modes, Charge asks the store
// and waits in the same way as [Limiter.Take] of a strict limiter. It does not take the tokens that nodes have in hand.
//
// While the store is lost, the [FailurePolicy] matters. With [FailShare], Charge charges the node's share at once. It
// charges the store when the store is back. If only the answer of the store is lost, the tokens may be charged twice.
// With another policy, Charge returns [ErrStore] with its cause. If Charge returns ErrStore or the context's error, it
// is unknown whether the n tokens were charged.
func (l *Limiter) Charge(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	return l.own.Charge(ctx, key, n)
}

func (l *Limiter) charge(ctx context.Context, q *Quota, key string, n uint64) (engine.Decision, error) {
	n = min(n, l.limit.MaxDebt(q.policy.Limit()))
	defer l.known.drop(key) // the key's RetryAfter is longer now
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

// MaxDebt bounds what a key may owe, in multiples of its limit. Three things add to what a key owes: [Limiter.Charge],
// refusals that cost something ([ChargeRefusals]), and tokens that shares admitted while the store was lost. The
// default is 3, or 2 for a sliding log. The default is also the minimum, because shares need it. docs/distributed.md
// says when a window or a log forgets what is owed beyond its limit. [New] returns an error if a key's largest debt
// would take more than 30 years to come back, or if that debt is too large for the numbers of the scripts. The error
// names the largest possible MaxDebt. All nodes must use the same value.
func MaxDebt(limits uint64) Option {
	return func(c *config) error {
		if limits < 1 {
			return fmt.Errorf("redislimit: MaxDebt(%d): want 1 limit at least", limits)
		}
		c.limit.MaxDebt = limits
		return nil
	}
}

// ChargeRefusals makes refused requests cost something, as [engine.ChargeRefusals] does. They cost either the available
// tokens, or all tokens that the request asked for, up to [MaxDebt]. The store refuses and charges in one step.
// Requests for more than the limit are charged too. With this option the limiter is strict and asks the store about
// every request, even if [TrustRefusals] is set. While the store is lost, refusals by the node's share are charged only
// to the share.
func ChargeRefusals(charge engine.RefusalCharge) Option {
	return func(c *config) error {
		if charge > engine.ChargePenalty {
			return fmt.Errorf("redislimit: ChargeRefusals(%d): want engine.ChargeNothing, ChargeTheRest or ChargePenalty", charge)
		}
		c.limit.Refusals = charge
		return nil
	}
}

// owing identifies a debt to the store: the debt of one key under one quota. The debt consists of the tokens that the
// node's share admitted, and of the costs of requests beyond their holds.
type owing struct {
	key     string
	numbers script.Quota
}

// settle charges the store with the tokens that the key owes under a quota, if it owes any. It is called when the store
// has answered a call. If the answer to this charge is lost, it is sent again, so a debt may be charged twice but is
// never dropped.
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
