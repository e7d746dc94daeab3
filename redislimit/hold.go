package redislimit

import (
	"context"
	"fmt"
	"math"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// A Hold contains the tokens that were taken for a request whose cost is known only at its end: see [Limiter.Hold]. Its
// methods may be called from any goroutine and do not wait. Only the first call of Settle or Release has an effect. The
// zero Hold, and the hold of a refused request, have no tokens.
type Hold struct {
	claim  lease.Claim
	quota  Quota
	key    string
	taken  uint64
	origin origin
	window int64 // the window in the store's answer
	end    int64 // when the tokens of a lease are no longer owed, by this node's clock
}

var _ limits.Held = (*Hold)(nil)

type origin uint8

const (
	fromNowhere origin = iota // not counted anywhere
	fromStore
	fromLease
	fromShare
)

type receipt struct {
	origin origin
	window int64 // the window in the store's answer
}

// setOrigin notes where the tokens were taken. On a nil receipt, it does nothing.
func (r *receipt) setOrigin(o origin) {
	if r != nil {
		r.origin = o
	}
}

// Hold takes an estimate of tokens from the key, for a request whose cost is known only later: see
// [engine.Limiter.Hold]. It takes all or none. An estimate above the limit counts as the limit. The decision and the
// error are those of [Limiter.Take].
//
// When the cost is known, call [Hold.Settle]. A hold that is never settled costs its estimate. The returned hold is
// never nil. A limiter of requests in flight has no holds.
func (l *Limiter) Hold(ctx context.Context, key string, estimate uint64) (*Hold, engine.Decision, error) {
	return l.ownQuota.Hold(ctx, key, estimate)
}

// Hold is [Limiter.Hold] under the quota.
func (q Quota) Hold(ctx context.Context, key string, estimate uint64) (*Hold, engine.Decision, error) {
	if err := q.checkNotInFlight("Hold"); err != nil {
		return new(Hold), engine.Decision{}, err
	}
	n := min(estimate, q.policy.Limit())
	var r receipt
	d, err := q.take(ctx, key, n, &r)
	h := q.newHold(key, n, d, r)
	if h == nil {
		h = new(Hold)
	}
	return h, d, err
}

func (q *Quota) checkNotInFlight(method string) error {
	if q.limiter != nil && q.limiter.flight != nil {
		return fmt.Errorf("redislimit: %s: the limiter counts requests in flight: use Enter", method)
	}
	return nil
}

func (q *Quota) take(ctx context.Context, key string, n uint64, r *receipt) (engine.Decision, error) {
	if d, ok, err := q.constantDecision(); ok {
		return d, err
	}
	return q.limiter.take(ctx, q, key, n, r)
}

// newHold returns the hold of a request, or nil if the request was refused or is not counted.
func (q *Quota) newHold(key string, n uint64, d engine.Decision, r receipt) *Hold {
	if _, isConstant, _ := q.constantDecision(); isConstant || !d.Allowed || r.origin == fromNowhere {
		return nil
	}
	h := &Hold{quota: *q, key: key, taken: n, origin: r.origin, window: r.window}
	if r.origin == fromLease {
		reset := d.ResetAfter
		if reset <= 0 { // the store has not reported this time
			reset = q.policy.Window()
		}
		h.end = q.limiter.now() + int64(reset)
	}
	return h
}

// Settle reports the cost of the request. If the cost is less than the tokens taken, the difference is given back,
// except tokens that the key no longer owes, by the store's clock. If the cost is higher, the difference is charged,
// whether it is available or not, up to [MaxDebt].
//
// Settle does not wait for the store. It gives tokens back at most once, and not while the store is lost. It charges
// tokens at least once; [Limiter.Settle] waits until they are charged. The result lost is how many tokens are not
// charged because the node already remembers the debts of [MaxKeys] keys.
func (h *Hold) Settle(actual uint64) (lost uint64) {
	if first, _ := h.claim.Settle(); !first || h.quota.limiter == nil {
		return 0
	}
	switch {
	case actual < h.taken:
		h.giveBack(h.taken - actual)
	case actual > h.taken:
		return h.Charge(actual - h.taken)
	}
	return 0
}

// Charge takes n more tokens from the key. It works as Settle does for a cost above the hold, and its result has the
// same meaning. A hold without tokens charges nothing.
func (h *Hold) Charge(n uint64) (lost uint64) {
	if n == 0 || h.quota.limiter == nil {
		return 0
	}
	return h.quota.limiter.owe(&h.quota, h.key, n)
}

// Release gives back all that was taken, as Settle(0) does, and reports whether this call settled the hold.
func (h *Hold) Release() bool {
	first, _ := h.claim.Settle()
	if first && h.quota.limiter != nil {
		h.giveBack(h.taken)
	}
	return first
}

func (h *Hold) giveBack(n uint64) {
	l, window := h.quota.limiter, h.window
	switch h.origin {
	case fromNowhere: // also for tokens of another process, or of another limit
		return
	case fromShare:
		l.share.refund(h.key, &h.quota, n)
		return
	case fromLease:
		if n = h.stillOwed(n); n == 0 || l.refundLocally(&h.quota, h.key, n) {
			return
		}
		window = script.AnyWindow
	}
	if n == 0 {
		return
	}
	l.sendRefund(h.key, script.Ask{Returned: n, Window: window, Quota: h.quota.numbers})
}

// sendRefund sends a question that gives tokens back, without waiting. It never repeats the question: if only the
// answer was lost, the tokens would be given back twice.
func (l *Limiter) sendRefund(key string, ask script.Ask) {
	queue, item := l.route(key, ask)
	_ = queue.putOne(item, nil, func(_ script.Answer, err error) {
		if err == nil {
			l.refusals.drop(key)
		}
	})
}

// putBack gives tokens back because another limit refuses the request.
func (q *Quota) putBack(key string, n uint64) {
	if n > 0 && !q.limiter.refundLocally(q, key, n) {
		q.limiter.sendRefund(key, q.refundAsk(n))
	}
}

// stillOwed returns how many of n tokens from a lease the key still owes, by the store's last answer.
func (h *Hold) stillOwed(n uint64) uint64 {
	l := h.quota.limiter
	remaining := h.end - l.now()
	if l.policy.Algorithm() != engine.AlgorithmTokenBucket {
		if remaining <= 2*int64(l.client.timeout) {
			return 0
		}
		return n
	}
	return min(n, tokensIn(l.policy.Rate(), remaining))
}

func tokensIn(r engine.Rate, nanos int64) uint64 {
	if nanos <= 0 {
		return 0
	}
	return uint64(min(r.Tokens*float64(nanos)/float64(r.Period), math.MaxInt64))
}

// owe adds n tokens to the debt of the key, with which the store is charged at least once. The result lost is how many
// tokens may never be charged, because there is no room for the debt or the client is closed.
func (l *Limiter) owe(q *Quota, key string, n uint64) (lost uint64) {
	n = min(n, l.limit.MaxDebt(q.policy.Limit()))
	id := debtID{key, q.numbers}
	added, isLost := false, l.isLost(key)
	if isLost && l.share != nil {
		_, added = l.share.charge(key, q, n)
	} else {
		l.client.limiters.registry.change(l, func([]*Limiter) { added = l.debts.Add(id, n) })
	}
	l.refusals.drop(key) // the key's RetryAfter is longer now
	if !isLost {
		l.chargeDebt(id)
	}
	if !l.outlive() || !added {
		return n
	}
	return 0
}

// Taken returns how many tokens were taken: the estimate, or the limit if that is less.
func (h *Hold) Taken() uint64 { return h.taken }
