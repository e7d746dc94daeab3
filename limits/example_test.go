package limits_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

// A Job is a job for a queue.
type Job struct {
	Tenant uint64
	Bytes  uint64
}

// A job that fails costs its tenant nothing.
func Example() {
	perTenant, _ := engine.New(engine.TokenBucket(engine.Per(10, time.Minute), 2), engine.MaxKeys(1000))
	inAll, _ := engine.New(engine.TokenBucket(engine.Per(1000, time.Minute), 5), engine.MaxKeys(1))
	defer perTenant.Close()
	defer inAll.Close()

	const failed = 1
	set, err := limits.New([]limits.Limit[Job]{
		{
			Name: "tenant", Limiter: perTenant,
			Key:    func(h limits.Hasher, j Job) (engine.Key, bool) { return h.KeyUint64(j.Tenant), true },
			Refund: func(_ Job, outcome int) bool { return outcome == failed },
		},
		{Name: "all", Limiter: inAll, Key: limits.Everyone[Job]},
	}, limits.Options[Job]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for range 3 {
		res := set.Decide(ctx, Job{Tenant: 7})
		tightest, _ := res.Tightest()
		fmt.Println(res.Allowed(), tightest.Name(), tightest.Decision.Remaining)
		if res.Allowed() {
			res.Finish(ctx, Job{Tenant: 7}, 0)
		}
	}
	fmt.Println(inAll.Peek(inAll.KeyUint64(0), 0).Remaining, "left in all")
	// Output:
	// true tenant 1
	// true tenant 0
	// false tenant 0
	// 3 left in all
}

// A request to a language model takes one request, an estimate of tokens, and a place in flight, or nothing.
func Example_tokens() {
	newLimiter := func(p engine.Policy) *engine.Limiter {
		l, err := engine.New(p, engine.MaxKeys(1000))
		if err != nil {
			panic(err)
		}
		return l
	}
	requests := newLimiter(engine.TokenBucket(engine.Per(60, time.Minute), 60))
	tokens := newLimiter(engine.TokenBucket(engine.Per(1000, time.Minute), 1000))
	inFlight := newLimiter(engine.Concurrency(2, time.Minute))
	team := func(h limits.Hasher, j Job) (engine.Key, bool) { return h.KeyUint64(j.Tenant), true }
	estimate := func(j Job) uint64 { return j.Bytes/4 + 400 } // the prompt, plus the longest answer
	set, err := limits.New([]limits.Limit[Job]{
		{Name: "requests", Limiter: requests, Key: team},
		{Name: "tokens", Limiter: tokens, Key: team, Hold: true, Cost: estimate},
		{Name: "in flight", Limiter: inFlight, Key: team},
	}, limits.Options[Job]{})
	if err != nil {
		panic(err)
	}
	left := func(l *engine.Limiter) uint64 { return l.Peek(l.KeyUint64(7), 0).Remaining }

	job := Job{Tenant: 7, Bytes: 800}
	first := set.Decide(context.Background(), job)
	hold := limits.HoldFrom(first.Context(context.Background()), "tokens")
	fmt.Println(first.Allowed(), "held", hold.Taken(), "left", left(tokens))

	second := set.Decide(context.Background(), Job{Tenant: 7, Bytes: 4000})
	fmt.Println(second.Allowed(), "left", left(requests), left(tokens), left(inFlight)) // refused: nothing is taken

	hold.Settle(150) // the usage of the answer
	fmt.Println("settled", left(tokens))
	hold.Settle(150) // the same usage is reported again
	hold.Settle(190) // a larger usage is reported
	fmt.Println("larger", left(tokens))
	first.Finish(context.Background(), job, 200)

	third := set.Decide(context.Background(), job)
	limits.HoldFrom(third.Context(context.Background()), "tokens").Release() // the model was not reached
	third.Finish(context.Background(), job, 502)
	fmt.Println("released", left(requests), left(tokens), left(inFlight))
	// Output:
	// true held 600 left 400
	// false left 59 400 1
	// settled 850
	// larger 810
	// released 58 810 2
}

// The handler of a request settles its hold with the actual cost.
func ExampleHoldFrom() {
	tokens, _ := engine.New(engine.TokenBucket(engine.Per(100, time.Minute), 100), engine.MaxKeys(1000))
	defer tokens.Close()
	set, err := limits.New([]limits.Limit[Job]{{
		Name: "tokens", Limiter: tokens, Key: limits.Everyone[Job],
		Hold: true, Cost: func(Job) uint64 { return 80 },
	}}, limits.Options[Job]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	handle := func(ctx context.Context) { limits.HoldFrom(ctx, "tokens").Settle(30) }

	res := set.Decide(context.Background(), Job{})
	handle(res.Context(context.Background()))
	fmt.Println(tokens.Peek(tokens.KeyUint64(0), 0).Remaining)
	// Output: 70
}
