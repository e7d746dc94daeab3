package engine_test

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
)

func ExampleLimiter_Allow() {
	limiter, _ := engine.New(engine.TokenBucket(engine.Per(10, time.Minute), 3), engine.MaxKeys(1000))
	defer limiter.Close()

	for range 4 {
		fmt.Println(limiter.Allow("203.0.113.7"))
	}
	fmt.Println("another key:", limiter.Allow("198.51.100.9"))
	// Output:
	// true
	// true
	// true
	// false
	// another key: true
}

func ExampleLimiter_Peek() {
	limiter, _ := engine.New(engine.TokenBucket(engine.Per(10, time.Minute), 3), engine.MaxKeys(1000))
	defer limiter.Close()

	limiter.Take("anna", 2)
	d := limiter.Peek(limiter.Key("anna"), 1)
	fmt.Println(d.Allowed, d.Remaining, "left")
	d = limiter.Peek(limiter.Key("anna"), 2)
	fmt.Println(d.Allowed, d.Remaining, "left, wait", d.RetryAfter.Round(time.Second))
	// Output:
	// true 1 left
	// false 1 left, wait 6s
}

// A take of 0 tokens reports how many tokens a key has at another time, up to a second ahead of the clock, or in the
// past.
func ExampleLimiter_TakeAt_nothing() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	limiter, _ := engine.New(engine.TokenBucket(engine.PerSecond(10), 5), engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return now }))
	defer limiter.Close()

	key := limiter.Key("anna")
	limiter.TakeKey(key, 5)
	fmt.Println(limiter.TakeAt(key, 0, now).Remaining, "left")
	fmt.Println(limiter.TakeAt(key, 0, now.Add(300*time.Millisecond)).Remaining, "left 300ms later")
	fmt.Println("an hour ahead:", limiter.TakeAt(key, 0, now.Add(time.Hour)).Allowed)
	// Output:
	// 0 left
	// 3 left 300ms later
	// an hour ahead: false
}

// Each message of a batch takes one token. TakeBatch reads the clock once, and loads several keys at the same time.
func ExampleLimiter_TakeBatch() {
	limiter, _ := engine.New(engine.TokenBucket(engine.Per(2, time.Hour), 2), engine.MaxKeys(1000))
	defer limiter.Close()

	senders := []string{"anna", "berta", "anna", "anna"}
	keys, decisions := make([]engine.Key, len(senders)), make([]engine.Decision, len(senders))
	for i, sender := range senders {
		keys[i] = limiter.Key(sender)
	}
	if err := limiter.TakeBatch(keys, 1, decisions); err != nil {
		panic(err)
	}
	for i, sender := range senders {
		fmt.Println(sender, decisions[i].Allowed)
	}
	// Output:
	// anna true
	// berta true
	// anna true
	// anna false
}

// A request takes from two limits, all or nothing. Every limit answers, so the caller knows which one refuses.
func ExampleTakeAll() {
	perSecond, _ := engine.New(engine.TokenBucket(engine.PerSecond(5), 5), engine.MaxKeys(1000))
	perDay, _ := engine.New(engine.FixedWindow(3, 24*time.Hour), engine.MaxKeys(1000))
	defer perSecond.Close()
	defer perDay.Close()

	names, answers := []string{"per second", "per day"}, make([]engine.Answer, 2)
	for range 2 {
		allowed, err := engine.TakeAll([]engine.Request{
			{Limiter: perSecond, Key: perSecond.Key("anna"), N: 2},
			{Limiter: perDay, Key: perDay.Key("anna"), N: 2},
		}, answers)
		fmt.Println("allowed:", allowed, err)
		for i, answer := range answers {
			if !answer.Decision.Allowed {
				fmt.Println("refused by the limit", names[i], "of", answer.Decision.Limit)
			}
		}
	}
	// Output:
	// allowed: true <nil>
	// allowed: false <nil>
	// refused by the limit per day of 3
}

// A reset gives a key a full bucket, for example after a user has paid.
func ExampleLimiter_Reset() {
	limiter, _ := engine.New(engine.FixedWindow(3, time.Hour), engine.MaxKeys(1000))
	defer limiter.Close()

	limiter.Take("anna", 3)
	fmt.Println(limiter.Allow("anna"))
	limiter.Reset(limiter.Key("anna"))
	fmt.Println(limiter.Allow("anna"))
	// Output:
	// false
	// true
}

// A client may have two downloads at a time, however long they take.
func ExampleConcurrency() {
	limiter, _ := engine.New(engine.Concurrency(2, time.Hour), engine.MaxKeys(1000))
	defer limiter.Close()

	d, first := limiter.TakeReceipt(limiter.Key("anna"), 1)
	fmt.Println(d.Allowed, d.Remaining, "more")
	d, second := limiter.TakeReceipt(limiter.Key("anna"), 1)
	fmt.Println(d.Allowed, d.Remaining, "more")
	d, _ = limiter.TakeReceipt(limiter.Key("anna"), 1)
	fmt.Println(d.Allowed)

	first.Release()
	first.Release()
	fmt.Println(limiter.Peek(limiter.Key("anna"), 1).Remaining, "more")
	second.Release()
	// Output:
	// true 1 more
	// true 0 more
	// false
	// 1 more
}
