package limits

import (
	"context"
	"sync/atomic"

	"github.com/weir-go/weir/engine"
)

// A Held stands for the tokens taken for a request: an [engine.Receipt], or the receipt of a [Holder]. Its methods may
// be called concurrently, and do not wait for a store.
type Held interface {
	// Settle reports the cost of the request, and gives back or charges the difference to the tokens taken. The result
	// lost is how many tokens were not charged, as far as that is known. After the first Settle or Release, Settle does
	// nothing.
	Settle(actual uint64) (lost uint64)
	// Release gives back everything, and reports whether this call settled the request.
	Release() bool
	// Charge takes n more tokens, whether the key has them or not, even after Settle and Release. The result lost is as
	// for Settle.
	Charge(n uint64) (lost uint64)
	// Taken returns how many tokens were taken: the estimate, or the limit if that is less.
	Taken() uint64
}

// A Hold stands for the tokens that a limit with [Limit].Hold has taken for one request, until the cost is known.
// [HoldFrom] returns it. Its methods may be called concurrently, do not wait for a store, and do not allocate for a
// limit in memory.
//
// Several parts of a program may report a cost, for example after a retry. The request then costs the largest of the
// reported numbers, once. The zero Hold stands for no tokens, and its methods do nothing.
//
// docs/budgets.md states by how much a key may exceed its limit if requests cost more than was taken.
type Hold struct {
	held    Held
	receipt engine.Receipt // for a limit in memory: the field held points to this receipt
	settled atomic.Uint64  // 2*(cost+1), plus settling; 0: the cost is not known
}

// settling is a bit of Hold.settled, which is set while a call settles the first cost. That call then charges larger
// costs that were reported meanwhile, because before that the key may have no room for them.
const settling = 1

// maxCost is the largest cost that Hold.settled can store.
const maxCost = 1<<63 - 2

// Settle reports the cost of the request. The first call gives back or charges the difference to the tokens taken, as
// [engine.Receipt.Settle] does. A later call charges only the part of its cost above the largest cost so far.
//
// The result lost is how many tokens were not charged, as far as this is known. Tokens are not charged if the key
// already owes as much as [engine.MaxDebt] allows. If another call settles concurrently, that call may charge the cost
// and return the lost tokens.
func (h *Hold) Settle(actual uint64) (lost uint64) {
	cost := min(actual, maxCost)
	for h.held != nil {
		previous := h.settled.Load()
		next := (cost+1)<<1 | previous&settling
		switch {
		case previous >= next:
			return 0
		case previous == 0:
			if h.settled.CompareAndSwap(0, next|settling) {
				return actual - cost + h.held.Settle(cost) + h.chargeRest(cost)
			}
		case !h.settled.CompareAndSwap(previous, next):
		case previous&settling != 0:
			return actual - cost
		default:
			return actual - cost + h.held.Charge(cost-(previous>>1-1))
		}
	}
	return 0
}

// chargeRest ends the settling. If a cost above the settled cost was reported while the hold was being settled, it
// charges the difference.
func (h *Hold) chargeRest(cost uint64) (lost uint64) {
	for {
		settled := h.settled.Load()
		if largest := settled>>1 - 1; largest > cost {
			lost += h.held.Charge(largest - cost)
			cost = largest
		} else if h.settled.CompareAndSwap(settled, settled&^settling) {
			return lost
		}
	}
}

// Release gives back everything, for a request that costs nothing, for example because it did not reach the server. The
// result first reports whether this call settled the hold. A cost that is reported later is charged by [Hold.Settle].
// Release itself charges a cost that is reported while it runs. The result lost is how many tokens of that cost were
// not charged.
func (h *Hold) Release() (first bool, lost uint64) {
	if h.held == nil || !h.settled.CompareAndSwap(0, 1<<1|settling) {
		return false, 0
	}
	first = h.held.Release()
	return first, h.chargeRest(0)
}

// Taken returns how many tokens were taken: the estimate, or the limit if that is less; 0 for the zero Hold.
func (h *Hold) Taken() uint64 {
	if h.held == nil {
		return 0
	}
	return h.held.Taken()
}

type holds struct {
	names []string
	holds []*Hold
	outer *holds // of sets that have decided on the request before
}

type holdsKey struct{}

// Holds reports whether the handler of an allowed request needs [Result.Context].
func (res *Result[R]) Holds() bool { return res.needs&mayHold != 0 && res.verdict == Admitted }

// Context returns the context for the handler of an allowed request, so that the handler can use [HoldFrom]. If no
// limit holds tokens, it returns ctx itself.
func (res *Result[R]) Context(ctx context.Context) context.Context {
	if !res.Holds() {
		return ctx
	}
	h := &holds{}
	h.outer, _ = ctx.Value(holdsKey{}).(*holds)
	for i := range res.n {
		if c := res.at(i); c.hold != nil && c.limit.Hold {
			h.names, h.holds = append(h.names, c.limit.Name), append(h.holds, c.hold)
		}
	}
	return context.WithValue(ctx, holdsKey{}, h)
}

// HoldFrom returns the hold of a limit, from the context of the request's handler. Call [Hold.Settle] when the cost is
// known, even after the handler has returned:
//
//	hold := limits.HoldFrom(ctx, "tokens")
//	answer := complete(ctx, prompt)
//	hold.Settle(answer.Tokens)
//
// The result is never nil. If no limit of that name applies to this request, it is a zero Hold.
func HoldFrom(ctx context.Context, limit string) *Hold {
	h, _ := ctx.Value(holdsKey{}).(*holds)
	for ; h != nil; h = h.outer {
		for i, name := range h.names {
			if name == limit {
				return h.holds[i]
			}
		}
	}
	return new(Hold)
}
