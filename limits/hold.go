package limits

import (
	"context"

	"github.com/weir-go/weir/engine"
)

// A Held is what a limit has taken for a request until it is settled: an [engine.Receipt], or that of a [Holder]. Its
// methods may be called from any goroutine, do not wait for a store, and do nothing but the first time.
type Held interface {
	// Settle says what the request has cost: the difference is given back or charged. lost is how much was not charged,
	// as far as that is known at once.
	Settle(actual uint64) (lost uint64)
	// Release gives back all that was taken, and reports whether it was this call that settled.
	Release() bool
}

// holds are what the limits with Hold have taken for a request.
type holds struct {
	names []string
	of    []Held
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
// it when it knows the cost ([Held].Settle), also after it has returned:
//
//	hold := limits.HoldFrom(ctx, "tokens")
//	answer := complete(ctx, prompt)
//	hold.Settle(answer.Tokens)
//
// It is never nil. Where the limit is not for this request, or there is no such limit, it is a hold of nothing, and to
// settle it does nothing.
func HoldFrom(ctx context.Context, limit string) Held {
	h, _ := ctx.Value(holdsKey{}).(*holds)
	for ; h != nil; h = h.outer {
		for i, name := range h.names {
			if name == limit {
				return h.of[i]
			}
		}
	}
	return new(engine.Receipt)
}
