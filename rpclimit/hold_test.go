package rpclimit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

// budget returns a limit for all clients together. Every call takes the same estimate.
func budget(t testing.TB, name string, tokens, estimate uint64) rpclimit.Limit {
	return rpclimit.Limit{Name: name, Key: rpclimit.Everyone, Hold: true, Cost: func(rpclimit.Call) uint64 { return estimate },
		Limiter: testclock.New().Limiter(t, engine.FixedWindow(tokens, time.Hour))}
}

// TestAHandlerSettles: a handler finds the holds of its call by the names of the limits. It even finds holds of an
// earlier interceptor. It may settle a hold once, with a cost below or above the estimate. A hold that is not settled
// costs the estimate.
func TestAHandlerSettles(t *testing.T) {
	one, two, dropped := budget(t, "one", 100, 30), budget(t, "two", 100, 30), budget(t, "dropped", 100, 30)
	outer, inner := newLimits(t, []rpclimit.Limit{one}), newLimits(t, []rpclimit.Limit{two, dropped})
	first := outer.Decide(from(""))
	require.True(t, first.Allowed())
	ctx := first.Context(context.Background())
	second := inner.Decide(from(""))
	require.True(t, second.Allowed())
	ctx = second.Context(ctx)
	for range 2 {
		assert.Zero(t, limits.HoldFrom(ctx, "one").Settle(10))
		assert.Zero(t, limits.HoldFrom(ctx, "two").Settle(50))
		assert.Zero(t, limits.HoldFrom(ctx, "three").Settle(7))
		assert.Zero(t, limits.HoldFrom(context.Background(), "two").Settle(7))
	}
	assert.EqualValues(t, 90, left(one.Limiter))
	assert.EqualValues(t, 50, left(two.Limiter))
	assert.EqualValues(t, 70, left(dropped.Limiter))
}

// TestNoHoldNoContext: if no limit has Hold, Context returns the original context.
func TestNoHoldNoContext(t *testing.T) {
	res := one(t, rpclimit.Limit{Limiter: testclock.New().Burst(t, 1)}).Decide(from(""))
	ctx := context.Background()
	assert.Equal(t, ctx, res.Context(ctx))
}

// TestAnEstimateAboveTheLimit: a call with an estimate above the limit passes when all tokens of the limit are
// available. If it is refused, the answer says when this will be.
func TestAnEstimateAboveTheLimit(t *testing.T) {
	gate, l := inFlight(t, 1), budget(t, "budget", 100, 1000)
	set := newLimits(t, []rpclimit.Limit{gate, l})
	first := set.Decide(from(""))
	require.True(t, first.Allowed())
	assert.Zero(t, left(l.Limiter))
	res := set.Decide(from(""))
	assert.Equal(t, refused, res.Code())
	assert.Equal(t, time.Hour, res.RetryAfter(), "and not never")
	assert.Zero(t, limits.HoldFrom(first.Context(context.Background()), "budget").Settle(60))
	first.Finish(ok)
	res = set.Decide(from(""))
	assert.Equal(t, time.Hour, res.RetryAfter())
	assert.EqualValues(t, 40, left(l.Limiter))
	assert.EqualValues(t, 1, left(gate.Limiter))
}

// TestWhatIsHeldGoesBack: a hold is given back if a later limit refuses, or if the call's code is refunded. But if the
// handler has settled the hold, nothing is given back, and the call does not count as refunded.
func TestWhatIsHeldGoesBack(t *testing.T) {
	seen := &counts{}
	l := budget(t, "budget", 100, 30)
	l.Refund = rpclimit.RefundCodes(rpclimit.Unavailable)
	set := newLimits(t, []rpclimit.Limit{l, {Name: "rate", Key: rpclimit.Everyone, Limiter: testclock.New().Burst(t, 2)}},
		rpclimit.ObserveWith(seen))
	res := set.Decide(from(""))
	res.Finish(rpclimit.Unavailable)
	assert.EqualValues(t, 100, left(l.Limiter))
	assert.Equal(t, 1, seen.of(limits.Refunded))
	assert.Equal(t, limits.Refunded, res.Check(0).Outcome)
	res = set.Decide(from(""))
	limits.HoldFrom(res.Context(context.Background()), "budget").Settle(10)
	res.Finish(rpclimit.Unavailable)
	assert.EqualValues(t, 90, left(l.Limiter))
	assert.Equal(t, 1, seen.of(limits.Refunded), "the handler had settled")
	assert.Equal(t, limits.Allowed, res.Check(0).Outcome)
	assert.Equal(t, []rpclimit.Code{refused}, codes(set, 1, from("")))
	assert.EqualValues(t, 90, left(l.Limiter))
}

// When a handler knows the cost of its answer, it settles its hold with this cost.
func ExampleHoldFrom() {
	tokens, err := engine.New(engine.FixedWindow(1000, time.Minute), stopped)
	if err != nil {
		panic(err)
	}
	defer tokens.Close()
	set, err := rpclimit.New([]rpclimit.Limit{{Name: "tokens", Limiter: tokens, Key: rpclimit.Everyone, Hold: true,
		Cost: func(rpclimit.Call) uint64 { return 400 }}}) // the estimate
	if err != nil {
		panic(err)
	}
	complete := func(ctx context.Context, _ string) string {
		limits.HoldFrom(ctx, "tokens").Settle(150)
		return "an answer of 150 tokens"
	}
	res := set.Decide(rpclimit.Call{Method: "/models.Text/Complete"}) // as the interceptors of the fronts do
	fmt.Println(complete(res.Context(context.Background()), "a question"))
	fmt.Println(tokens.Peek(tokens.KeyUint64(0), 0).Remaining)
	// Output:
	// an answer of 150 tokens
	// 850
}
