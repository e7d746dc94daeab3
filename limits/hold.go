package limits

import (
	"context"
	"sync/atomic"

	"github.com/weir-go/weir/engine"
)

// A Held is what a source or a limiter has taken for a request: an [engine.Receipt], or that of a [Holder]. Its methods
// may be called from any goroutine and concurrently, and do not wait for a store.
type Held interface {
	// Settle says what the request has cost: the difference is given back or charged. lost is how much was not charged,
	// as far as that is known at once. After the first Settle or Release it does nothing.
	Settle(actual uint64) (lost uint64)
	// Release gives back all that was taken, and reports whether it was this call that settled.
	Release() bool
	// Charge takes n tokens more, whether they are there or not, also after Settle and Release. lost is as that of
	// Settle.
	Charge(n uint64) (lost uint64)
	// Taken returns how many tokens were taken: the estimate, or the limit if that is less.
	Taken() uint64
}

// A Hold is what a limit with Hold ([Limit]) has taken for one request, which costs that much until its cost is known.
// [HoldFrom] returns it. Its methods may be called from any goroutine and concurrently, do not wait for a store, and do
// not allocate for a limit in memory.
//
// Several parts of a program may report what the request has cost: an answer that is retried, a stream whose usage
// comes twice. The request costs the largest of them, once. The zero Hold is of nothing, and its methods do nothing.
//
// docs/budgets.md states how far a key may exceed its limit by what requests turn out to cost.
type Hold struct {
	of      Held
	receipt engine.Receipt // of, where the limit is in memory
	settled atomic.Uint64  // twice one more than the cost, and settling; 0: it is not known
}

// settling in Hold.settled says that the first cost is being settled. Larger ones that come meanwhile are charged by
// the call that does it: before the hold is given back there may be no room for them.
const settling = 1

// mostCost is the largest cost that a Hold tells from smaller ones.
const mostCost = 1<<63 - 2

// Settle says what the request has cost. The first time, the difference from what was taken is given back or charged
// ([engine.Receipt.Settle]). Later, only what exceeds the largest cost so far is charged: a cost that is not larger
// changes nothing. lost is how much was not charged, because the key owes as much as it may ([engine.MaxDebt]), as far
// as that is known at once. Of a cost that comes while another call settles, that call returns it.
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

// rest charges what the request has cost more, as other calls have said while this one settled a cost.
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

// Release gives back all that was taken, for a request that costs nothing: it did not reach the server behind the
// limit, say. It reports whether it was this call that settled the hold. A cost that becomes known later is charged by
// [Hold.Settle], and one that becomes known meanwhile by Release: lost is that of Settle.
func (h *Hold) Release() (first bool, lost uint64) {
	if h.of == nil || !h.settled.CompareAndSwap(0, 1<<1|settling) {
		return false, 0
	}
	first = h.of.Release()
	return first, h.rest(0)
}

// Taken returns how many tokens were taken: the estimate, or the limit if that is less; 0 for a hold of nothing.
func (h *Hold) Taken() uint64 {
	if h.of == nil {
		return 0
	}
	return h.of.Taken()
}

// holds are what the limits with Hold have taken for a request.
type holds struct {
	names []string
	of    []*Hold
	outer *holds // of sets before
}

// holdsKey is that of holds in a context.
type holdsKey struct{}

// Holds reports whether limits with Hold have taken for the request, which is allowed.
func (res *Result[R]) Holds() bool { return res.needs&mayHold != 0 && res.verdict == Admitted }

// Context returns the context for what handles an allowed request, in which [HoldFrom] finds what limits with Hold have
// taken: ctx itself if there are none.
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

// HoldFrom returns what a limit with Hold has taken for the request whose handler has the context. The handler settles
// it when it knows the cost ([Hold.Settle]), also after it has returned:
//
//	hold := limits.HoldFrom(ctx, "tokens")
//	answer := complete(ctx, prompt)
//	hold.Settle(answer.Tokens)
//
// It is never nil. Where the limit is not for this request, or there is no such limit, it is a hold of nothing, and to
// settle it does nothing.
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
