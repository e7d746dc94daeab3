package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
)

// A worker waits, so that it does not send faster than the limit allows. If the tokens come too late, Wait returns at
// once.
func ExampleLimiter_Wait() {
	limiter, _ := engine.New(engine.TokenBucket(engine.PerSecond(1000), 1), engine.MaxKeys(1000))
	defer limiter.Close()

	begin := time.Now()
	for range 5 {
		if err := limiter.Wait(context.Background(), "mail.example", 1); err != nil {
			panic(err)
		}
	}
	fmt.Println("at least 4ms for five:", time.Since(begin) >= 4*time.Millisecond)

	slow, _ := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 1), engine.MaxKeys(1000))
	defer slow.Close()
	slow.Allow("mail.example")
	soon, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := slow.Wait(soon, "mail.example", 1)
	fmt.Println(errors.Is(err, engine.ErrTooLong), errors.Is(err, context.DeadlineExceeded))
	fmt.Println(slow.Wait(soon, "mail.example", 2))
	// Output:
	// at least 4ms for five: true
	// true true
	// engine: Wait(2): more tokens than the limit of 1
}

// The caller knows when its tokens are available, and can still give its place in the queue back.
func ExampleLimiter_Reserve() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	limiter, _ := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return now }))
	defer limiter.Close()

	for range 3 {
		_, delay, err := limiter.Reserve(limiter.Key("printer"), 1, 10*time.Second)
		fmt.Println(delay, err)
	}
	_, _, err := limiter.Reserve(limiter.Key("printer"), 1, time.Second)
	fmt.Println(err)
	// Output:
	// 0s <nil>
	// 1s <nil>
	// 2s <nil>
	// engine: Reserve(1): the wait would be too long: 3s, and 1s is the longest
}

// If the last caller in the queue releases its reservation, the next caller gets its place.
func ExampleReceipt_Release() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	limiter, _ := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return now }))
	defer limiter.Close()

	limiter.Allow("printer")
	_, first, _ := limiter.Reserve(limiter.Key("printer"), 1, engine.Never)
	place, second, _ := limiter.Reserve(limiter.Key("printer"), 1, engine.Never)
	place.Release()
	_, third, _ := limiter.Reserve(limiter.Key("printer"), 1, engine.Never)
	fmt.Println(first, second, third)
	// Output: 1s 2s 2s
}

// If a caller that waits in line leaves, the caller behind it moves up.
func ExampleLimiter_Queue() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	limiter, _ := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return now }))
	defer limiter.Close()

	key := limiter.Key("printer")
	limiter.AllowKey(key)
	first, _, _ := limiter.Queue(key, 1, time.Minute)
	second, delay, _ := limiter.Queue(key, 1, time.Minute)
	fmt.Println(delay)
	first.Leave()
	fmt.Println(second.Until(nil).Round(time.Second))
	// Output:
	// 2s
	// 1s
}
