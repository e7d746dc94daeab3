package engine_test

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
)

// A request holds the tokens that a language model's answer may cost, and is settled with the real cost afterwards.
func ExampleLimiter_Hold() {
	tokens, _ := engine.New(engine.FixedWindow(10_000, time.Minute), engine.MaxKeys(1000))
	defer tokens.Close()

	ask := func(estimate, actual uint64) {
		d, hold := tokens.Hold(tokens.Key("tenant 7"), estimate)
		if !d.Allowed {
			fmt.Println("refused, retry later")
			return
		}
		hold.Settle(actual) // in a defer, so that the hold of a failed request is settled, too
		fmt.Println(tokens.Peek(tokens.Key("tenant 7"), 0).Remaining, "left")
	}
	ask(4000, 1500)
	ask(4000, 4200)
	ask(4000, 100)
	ask(5000, 0)
	// Output:
	// 8500 left
	// 4300 left
	// 4200 left
	// refused, retry later
}

// An answer is shortened to the tokens that are left, and refused if too few are left.
func ExampleLimiter_HoldUpTo() {
	tokens, _ := engine.New(engine.FixedWindow(1000, time.Minute), engine.MaxKeys(1000))
	defer tokens.Close()

	for range 3 {
		d, hold := tokens.HoldUpTo(tokens.Key("tenant 7"), 100, 600)
		fmt.Println(d.Allowed, hold.Taken())
	}
	// Output:
	// true 600
	// true 400
	// false 0
}

// A request takes from three limits, all or nothing: requests of a tenant, tokens of a tenant, and tokens of a model.
// The receipt of each limit is settled in its unit.
func ExampleReceipt_Settle() {
	requests, _ := engine.New(engine.FixedWindow(60, time.Minute), engine.MaxKeys(1000))
	defer requests.Close()
	tokens, _ := engine.New(engine.FixedWindow(10_000, time.Minute), engine.MaxKeys(1000))
	defer tokens.Close()

	answers := make([]engine.Answer, 3)
	allowed, err := engine.TakeAll([]engine.Request{
		{Limiter: requests, Key: requests.Key("tenant 7"), N: 1},
		{Limiter: tokens, Key: tokens.Key("tenant 7"), N: 4000, Hold: true},
		{Limiter: tokens, Key: tokens.Key("model a"), N: 4000, Hold: true},
	}, answers)
	fmt.Println(allowed, err)
	if allowed {
		answers[1].Receipt.Settle(1500)
		answers[2].Receipt.Settle(1500)
	}
	fmt.Println(requests.Peek(requests.Key("tenant 7"), 0).Remaining, "requests left")
	fmt.Println(tokens.Peek(tokens.Key("tenant 7"), 0).Remaining, "tokens left, of the model", tokens.Peek(tokens.Key("model a"), 0).Remaining)
	// Output:
	// true <nil>
	// 59 requests left
	// 8500 tokens left, of the model 8500
}

// A request begins on one connection and ends on another. In between, the receipt is stored as bytes, which are sealed
// so that clients cannot forge them.
func ExampleLimiter_ParseReceipt() {
	tokens, _ := engine.New(engine.FixedWindow(10_000, time.Minute), engine.MaxKeys(1000))
	defer tokens.Close()

	key := tokens.Key("tenant 7")
	_, hold := tokens.Hold(key, 4000)
	id := hold.Append(nil)

	receipt, err := tokens.ParseReceipt(key, id)
	fmt.Println(receipt.Taken(), err)
	receipt.Settle(1500)
	fmt.Println(tokens.Peek(key, 0).Remaining, "left")
	// Output:
	// 4000 <nil>
	// 8500 left
}
