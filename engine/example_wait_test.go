package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
)

// A worker that sends no faster than it may. It does not wait at all if its time would not come.
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

	slow, _ := engine.New(engine.TokenBucket(engine.PerHour(1), 1), engine.MaxKeys(1000))
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

// A place in the queue: the caller is told when to go, and may still go away.
func ExampleLimiter_Reserve() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	limiter, _ := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return now }))
	defer limiter.Close()

	for range 3 {
		r, err := limiter.Reserve("printer", 1, 10*time.Second)
		fmt.Println(r.Delay(), err)
	}
	_, err := limiter.Reserve("printer", 1, time.Second)
	fmt.Println(err)
	// Output:
	// 0s <nil>
	// 1s <nil>
	// 2s <nil>
	// engine: Reserve(1): the wait would be too long: 3s, and 1s is the longest
}

// The last in the queue goes away, and the next has its place.
func ExampleReservation_Cancel() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	limiter, _ := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return now }))
	defer limiter.Close()

	limiter.Allow("printer")
	first, _ := limiter.Reserve("printer", 1, engine.Never)
	second, _ := limiter.Reserve("printer", 1, engine.Never)
	second.Cancel()
	third, _ := limiter.Reserve("printer", 1, engine.Never)
	fmt.Println(first.Delay(), second.Delay(), third.Delay())
	// Output: 1s 2s 2s
}

// Places are given out by the time at which a request came in.
func ExampleLimiter_ReserveAt() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	limiter, _ := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return now }))
	defer limiter.Close()

	key := limiter.Key("printer")
	limiter.TakeAt(key, 1, now)
	r, err := limiter.ReserveAt(key, 1, now.Add(400*time.Millisecond), engine.Never)
	fmt.Println(r.Delay(), err)
	_, err = limiter.ReserveAt(key, 1, now.Add(time.Minute), engine.Never)
	fmt.Println(err)
	// Output:
	// 600ms <nil>
	// engine: ReserveAt(2026-01-01 12:01:00 +0000 UTC): that is 1m0s ahead of the limiter's clock: want at most 1s
}
