package engine_test

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
)

// Stats reports how many keys are not idle, and whether the table was ever too small. Sweep brings the count up to
// date.
func ExampleLimiter_Stats() {
	limiter, _ := engine.New(engine.TokenBucket(engine.Per(10, time.Hour), 10), engine.MaxKeys(1000))
	defer limiter.Close()

	for i := range uint64(300) {
		limiter.AllowKey(limiter.KeyUint64(i))
	}
	limiter.Sweep()
	s := limiter.Stats()
	fmt.Println(s.Keys, "keys,", s.Evictions, "forgotten before their time,", s.Sweeps, "sweep")
	// Output: 300 keys, 0 forgotten before their time, 1 sweep
}

// Keys whose bucket is full are forgotten. That changes no decision.
func ExampleLimiter_Sweep() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	limiter, _ := engine.New(engine.TokenBucket(engine.PerSecond(1), 10), engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return now }))
	defer limiter.Close()

	limiter.Take("anna", 1)
	limiter.Take("berta", 10)
	limiter.Sweep()
	fmt.Println(limiter.Stats().Keys)
	now = now.Add(time.Second)
	limiter.Sweep()
	fmt.Println(limiter.Stats().Keys)
	// Output:
	// 2
	// 1
}

func ExampleLimiter_Policy() {
	limiter, _ := engine.New(engine.FixedWindow(10, time.Hour), engine.Tiers(engine.FixedWindow(100, time.Hour)),
		engine.MaxKeys(1000))
	defer limiter.Close()

	fmt.Println(limiter.Policy(0), "and", limiter.Policy(1).Limit())
	// Output: fixed window 10/1h0m0s and 100
}

// A program can check a configuration before it makes a limiter with it.
func ExamplePolicy_Check() {
	fmt.Println(engine.TokenBucket(engine.PerSecond(100), 200).Check())
	fmt.Println(engine.SlidingLog(100_000, time.Minute).Check())
	// Output:
	// <nil>
	// engine: sliding log 100000/1m0s: limit of 100000 tokens every 1m0s: want 1 to 4096 tokens
}

// Bytes reports how much memory a limiter would take.
func ExampleBytes() {
	for _, policy := range []engine.Policy{engine.TokenBucket(engine.PerSecond(1), 5),
		engine.SlidingLog(10, time.Minute)} {
		bytes, err := engine.Bytes(policy, engine.MaxKeys(1_000_000))
		fmt.Printf("%v: some %d MB, %v\n", policy.Algorithm(), (bytes+5_000_000)/10_000_000*10, err)
	}
	// Output:
	// token bucket: some 30 MB, <nil>
	// sliding log: some 160 MB, <nil>
}

// If a log's window is long and its limit is high, a request may leave the window late.
func ExamplePolicy_Precision() {
	for _, policy := range []engine.Policy{
		engine.SlidingLog(5, time.Hour), engine.SlidingLog(5, 24*time.Hour), engine.SlidingLog(4096, time.Hour),
	} {
		late, err := policy.Precision()
		fmt.Println(policy, late, err)
	}
	// Output:
	// sliding log 5/1h0m0s 0s <nil>
	// sliding log 5/24h0m0s 8ns <nil>
	// sliding log 4096/1h0m0s 483.328µs <nil>
}

// CheckChange reports whether a reload of a configuration can change a limiter in place.
func ExampleCheckChange() {
	from := []engine.Policy{engine.SlidingLog(10, time.Minute)}
	fmt.Println(engine.CheckChange(from, []engine.Policy{engine.SlidingLog(5, time.Minute)}))
	fmt.Println(engine.CheckChange(from, []engine.Policy{engine.FixedWindow(5, time.Minute)}))
	// Output:
	// <nil>
	// engine: SetPolicy(fixed window 5/1m0s): the limiter is a sliding log 10/1m0s, and stays of that kind
}

// For each algorithm, the example prints how long a client must wait. The client takes ten tokens at once, and wants an
// eleventh two seconds later.
func Example_algorithms() {
	now := time.Date(2026, 1, 1, 12, 0, 3, 0, time.UTC)
	for _, policy := range []engine.Policy{
		engine.TokenBucket(engine.PerSecond(1), 10),
		engine.BatchRefill(5, 5*time.Second, 10),
		engine.FixedWindow(10, 10*time.Second),
		engine.FixedWindow(10, 10*time.Second).Aligned(),
		engine.SlidingWindow(10, 10*time.Second),
		engine.SlidingLog(10, 10*time.Second),
	} {
		at := now
		limiter, _ := engine.New(policy, engine.MaxKeys(1000), engine.ClockFunc(func() time.Time { return at }))
		limiter.Take("anna", 10)
		at = at.Add(500 * time.Millisecond)
		fmt.Println(policy, "in", limiter.Take("anna", 1).RetryAfter)
		limiter.Close()
	}
	// Output:
	// token bucket 1/s burst 10 in 500ms
	// batch refill 5/5s burst 10 in 1.5s
	// fixed window 10/10s in 9.5s
	// fixed window 10/10s, aligned in 6.5s
	// sliding window 10/10s in 6.500000001s
	// sliding log 10/10s in 9.5s
}

// While a limiter is unlimited, Algorithm returns the algorithm of its last limit.
func ExampleLimiter_Algorithm() {
	limiter, _ := engine.New(engine.Concurrency(10, time.Hour), engine.MaxKeys(1000))
	defer limiter.Close()

	_ = limiter.SetPolicy(engine.Unlimited())
	fmt.Println(limiter.Policy(0), limiter.Algorithm())
	// Output: unlimited concurrency
}
