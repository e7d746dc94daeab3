package engine_test

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
)

// Only failed logins count: when a login succeeds, its token is given back.
func ExampleLimiter_TakeReceipt() {
	logins, _ := engine.New(engine.SlidingLog(3, 15*time.Minute), engine.MaxKeys(1000))
	defer logins.Close()

	key := logins.Key("anna")
	for _, password := range []string{"wrong", "right", "wrong", "wrong", "right"} {
		d, receipt := logins.TakeReceipt(key, 1)
		if !d.Allowed {
			fmt.Println("too many failures")
			continue
		}
		if password == "right" {
			receipt.Refund(1)
		}
		fmt.Println(password, logins.Peek(key, 0).Remaining, "left")
	}
	// Output:
	// wrong 2 left
	// right 2 left
	// wrong 1 left
	// wrong 0 left
	// too many failures
}

// A request takes the most that it may cost, and later gives back what it did not use.
func ExampleReceipt_Refund() {
	limiter, _ := engine.New(engine.FixedWindow(1000, time.Hour), engine.MaxKeys(1000))
	defer limiter.Close()

	key := limiter.Key("tenant 7")
	_, receipt := limiter.TakeReceipt(key, 400)
	receipt.Refund(250)
	fmt.Println(limiter.Peek(key, 0).Remaining, "left")
	receipt.Refund(250) // never more than was taken
	fmt.Println(limiter.Peek(key, 0).Remaining, "left")
	// Output:
	// 850 left
	// 1000 left
}

// A refund without a receipt is for cases in which it does not matter which request took the tokens.
func ExampleLimiter_Refund() {
	limiter, _ := engine.New(engine.FixedWindow(10, time.Hour), engine.MaxKeys(1000))
	defer limiter.Close()

	limiter.Take("anna", 5)
	limiter.Refund(limiter.Key("anna"), 2)
	limiter.Refund(limiter.Key("berta"), 2)
	fmt.Println(limiter.Peek(limiter.Key("anna"), 0).Remaining, limiter.Peek(limiter.Key("berta"), 0).Remaining)
	// Output: 7 10
}
