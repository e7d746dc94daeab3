package limits

import (
	"context"
	"sync/atomic"

	"github.com/weir-go/weir/engine"
)

// A Held stands for the tokens that a source or a limiter has taken for a request: an [engine.Receipt], or the receipt
// of a [Holder]. Its methods may be called from any goroutine and concurrently, and do not wait for a store.
type Held interface {
	// Settle reports the cost of the request. Settle gives back or charges the difference between the tokens taken and
	// the cost. The result lost is how many tokens were not charged, as far as that is known when Settle returns. A
	// Settle after the first Settle or Release does nothing.
	Settle(actual uint64) (lost uint64)
	// Release gives back everything that was taken, and reports whether this call settled the request.
	Release() bool
	// Charge takes n more tokens, whether the key has them or not. It may be called after Settle and Release. The
	// result lost has the same meaning as for Settle.
	Charge(n uint64) (lost uint64)
	// Taken returns how many tokens were taken: the estimate, or the limit if that is less.
	Taken() uint64
}

// A Hold stands for the tokens that a limit with Hold ([Limit]) has taken for one request. The request costs that many
// tokens until its cost is known. [HoldFrom] returns the Hold. Its methods may be called from any goroutine and
// concurrently, do not wait for a store, and do not allocate for a limit in memory.
//
// Several parts of a program may report a cost, for example if an answer is retried or a stream reports its usage
// twice. The request then costs the largest of these numbers, once. The zero Hold stands for no tokens, and its methods
// do nothing.
//
// docs/budgets.md states by how much a key may exceed its limit if requests cost more than was taken.
type Hold struct {
	of      Held
	receipt engine.Receipt // if the limit is in memory, the field of points to it
	settled atomic.Uint64  // 2*(cost+1), plus settling; 0: the cost is not known
}

// settling is a bit of Hold.settled. It is set while a call is settling the first cost. That call also charges larger
// costs that are reported meanwhile, because the key may have no room for them until the hold is given back.
const settling = 1

// mostCost is the largest cost that a Hold distinguishes from smaller costs.
const mostCost = 1<<63 - 2

// Settle reports the cost of the request. The first call gives back or charges the difference from what was taken
// ([engine.Receipt.Settle]). A later call charges only the part of its cost that exceeds the largest cost so far, so a
// cost that is not larger changes nothing. The result lost is how many tokens were not charged because the key already
// owes as much as it may ([engine.MaxDebt]), as far as this is known when Settle returns. If another call is settling
// at the same time, that other call also charges the cost of this call. The tokens that could not be charged are then
// in the result of the other call.
func (h *Hold) Settle(actual uint64) (lost uint64) {
	cost := min(actual, mostCost)
	for h.of != nil {
		before := h.settled.Load()
		next := (cost+1)<<1 | before&settling
		switch {
		case before >= next:
			return 0
		case before == 0:
			if h.settled.CompareAndSwap(0, next|settling) {
				return actual - cost + h.of.Settle(cost) + h.rest(cost)
			}
		case !h.settled.CompareAndSwap(before, next):
		case before&settling != 0:
			return actual - cost
		default:
			return actual - cost + h.of.Charge(cost-(before>>1-1))
		}
	}
	return 0
}

// rest is called after this call has settled cost. If other calls have reported larger costs meanwhile, rest charges
// the part that exceeds cost.
func (h *Hold) rest(cost uint64) (lost uint64) {
	for {
		now := h.settled.Load()
		if largest := now>>1 - 1; largest > cost {
			lost += h.of.Charge(largest - cost)
			cost = largest
		} else if h.settled.CompareAndSwap(now, now&^settling) {
			return lost
		}
	}
}

// Release gives back everything that was taken. Call it for a request that costs nothing, for example because it did
// not reach the server behind the limit. The result first reports whether this call settled the hold. If a cost is
// reported later, [Hold.Settle] charges it. If a cost is reported during Release, Release charges it. The result lost
// then has the same meaning as for Settle.
func (h *Hold) Release() (first bool, lost uint64) {
	if h.of == nil || !h.settled.CompareAndSwap(0, 1<<1|settling) {
		return false, 0
	}
	first = h.of.Release()
	return first, h.rest(0)
}

// Taken returns how many tokens were taken: the estimate, or the limit if that is less; 0 for the zero Hold.
func (h *Hold) Taken() uint64 {
	if h.of == nil {
		return 0
	}
	return h.of.Taken()
}

// holds is a list of the holds that limits have taken for a request.
type holds struct {
	names []string
	of    []*Hold
	outer *holds // of sets that have decided on the request before
}

// holdsKey is the key of holds in a context.
type holdsKey struct{}

// Holds reports whether the request is allowed and limits with Hold apply to it, so that its handler needs
// [Result.Context].
func (res *Result[R]) Holds() bool { return res.needs&mayHold != 0 && res.verdict == Admitted }

// Context returns the context for the handler of an allowed request. In this context, [HoldFrom] finds the holds that
// limits with Hold have taken for the request. If there are no holds, Context returns ctx itself.
func (res *Result[R]) Context(ctx context.Context) context.Context {
	if !res.Holds() {
		return ctx
	}
	h := &holds{}
	h.outer, _ = ctx.Value(holdsKey{}).(*holds)
	for i := range res.n {
		if c := res.at(i); c.hold != nil && c.limit.Hold {
			h.names, h.of = append(h.names, c.limit.Name), append(h.of, c.hold)
		}
	}
	return context.WithValue(ctx, holdsKey{}, h)
}

// HoldFrom returns the hold that a limit has taken for a request. The parameter ctx is the context of the request's
// handler. The hold is settled ([Hold.Settle]) when the cost is known. This may be after the handler has returned:
//
//	hold := limits.HoldFrom(ctx, "tokens")
//	answer := complete(ctx, prompt)
//	hold.Settle(answer.Tokens)
//
// The result is never nil. If the limit does not apply to this request, or there is no such limit, it is a zero Hold,
// and settling it does nothing.
func HoldFrom(ctx context.Context, limit string) *Hold {
	h, _ := ctx.Value(holdsKey{}).(*holds)
	for ; h != nil; h = h.outer {
		for i, name := range h.names {
			if name == limit {
				return h.of[i]
			}
		}
	}
	return new(Hold)
}
