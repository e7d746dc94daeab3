package limits

import (
	"context"

	"github.com/weir-go/weir/engine"
)

// holds are what the limits with Hold have taken for a request.
type holds struct {
	names []string
	of    []*engine.Hold
	outer *holds // of sets before
}

// holdsKey is that of holds in a context.
type holdsKey struct{}

// Holds reports whether limits with Hold have taken for the request, which is allowed.
func (res *Result[R]) Holds() bool { return res.holding && res.verdict == Admitted }

// Context returns the context for what handles an allowed request, in which [HoldFrom] finds what limits with Hold have
// taken: ctx itself if there are none.
func (res *Result[R]) Context(ctx context.Context) context.Context {
	if !res.Holds() {
		return ctx
	}
	h := &holds{}
	h.outer, _ = ctx.Value(holdsKey{}).(*holds)
	for i := range res.n {
		if c := res.at(i); c.hold != nil {
			h.names, h.of = append(h.names, c.limit.Name), append(h.of, c.hold)
		}
	}
	return context.WithValue(ctx, holdsKey{}, h)
}

// HoldFrom returns what a limit with Hold has taken for the request whose handler has the context. The handler settles
// it when it knows the cost ([engine.Hold.Settle]), also after it has returned:
//
//	hold := limits.HoldFrom(ctx, "tokens")
//	answer := complete(ctx, prompt)
//	hold.Settle(answer.Tokens)
//
// It is never nil. Where the limit is not for this request, or there is no such limit, it is a hold of nothing, and to
// settle it does nothing.
func HoldFrom(ctx context.Context, limit string) *engine.Hold {
	h, _ := ctx.Value(holdsKey{}).(*holds)
	for ; h != nil; h = h.outer {
		for i, name := range h.names {
			if name == limit {
				return h.of[i]
			}
		}
	}
	return new(engine.Hold)
}
