package engine_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/weir-go/weir/engine"
)

func Example() {
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(100), 200), engine.MaxKeys(1_000_000))
	if err != nil {
		panic(err)
	}
	defer limiter.Close()

	if !limiter.Allow("203.0.113.7") {
		fmt.Println("too many requests")
		return
	}
	fmt.Println("served")
	// Output: served
}

// The decision of Take has everything that an answer to the client needs.
func ExampleLimiter_Take() {
	limiter, _ := engine.New(engine.TokenBucket(engine.Per(60, time.Minute), 10), engine.MaxKeys(1000))
	defer limiter.Close()

	fmt.Println("allowed:", limiter.Take("key_live_42", 8).Allowed)
	d := limiter.Take("key_live_42", 8)
	fmt.Printf("allowed: %v, %d of %d left, retry in %v\n", d.Allowed, d.Remaining, d.Limit,
		d.RetryAfter.Round(time.Second))
	fmt.Println("never:", limiter.Take("key_live_42", 11).RetryAfter == engine.Never)
	// Output:
	// allowed: true
	// allowed: false, 2 of 10 left, retry in 6s
	// never: true
}

// KeyAddr hashes an address without a conversion to a string. The key is used twice.
func ExampleLimiter_KeyAddr() {
	perSecond, _ := engine.New(engine.TokenBucket(engine.PerSecond(1), 5), engine.MaxKeys(1000))
	perDay, _ := engine.New(engine.TokenBucket(engine.Per(1000, 24*time.Hour), 1000), engine.MaxKeys(1000))
	defer perSecond.Close()
	defer perDay.Close()

	key := perSecond.KeyAddr(netip.MustParseAddr("2001:db8::1"))
	fmt.Println(perSecond.AllowKey(key) && perDay.AllowKey(key))
	// Output: true
}

// The times come from a log that is replayed.
func ExampleLimiter_TakeAt() {
	start := time.Date(2015, 5, 17, 10, 5, 3, 0, time.UTC)
	limiter, _ := engine.New(engine.TokenBucket(engine.PerSecond(1), 2), engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return start }))
	defer limiter.Close()

	key := limiter.Key("83.149.9.216")
	for _, after := range []time.Duration{0, 0, 0, time.Second, time.Second} {
		fmt.Println(after, limiter.TakeAt(key, 1, start.Add(after)).Allowed)
	}
	// Output:
	// 0s true
	// 0s true
	// 0s false
	// 1s true
	// 1s false
}

// One limiter has a limit for paying users and another for free users.
func ExampleTiers() {
	limiter, _ := engine.New(engine.FixedWindow(3, time.Hour), engine.Tiers(engine.FixedWindow(100, time.Hour)))
	defer limiter.Close()

	free, paying := limiter.Key("anna"), limiter.Key("berta").Tier(1)
	for _, key := range []engine.Key{free, paying} {
		d := limiter.TakeKey(key, 2)
		fmt.Printf("%d of %d left\n", d.Remaining, d.Limit)
	}
	fmt.Println("anna buys the plan:", limiter.TakeKey(free.Tier(1), 50).Remaining, "left")
	// Output:
	// 1 of 3 left
	// 98 of 100 left
	// anna buys the plan: 48 left
}

// Owed also returns tokens above the limit, which a decision does not show.
func ExampleLimiter_Owed() {
	limiter, _ := engine.New(engine.FixedWindow(10, time.Hour))
	defer limiter.Close()

	key := limiter.Key("anna")
	limiter.TakeKey(key, 8)
	_ = limiter.SetPolicy(engine.FixedWindow(3, time.Hour))
	fmt.Println(limiter.Peek(key, 0).Remaining)
	tokens, _ := limiter.Owed(key)
	fmt.Println(tokens)
	// Output:
	// 0
	// 8
}

// Limits may come with the requests, for example from a database, a token or an argument.
func ExampleLimiter_Quota() {
	limiter, _ := engine.New(engine.TokenBuckets(24 * time.Hour)) // for buckets that fill within a day
	defer limiter.Close()

	quota, _ := limiter.Quota(engine.TokenBucket(engine.Per(10, time.Hour), 10))
	d := limiter.TakeKey(limiter.Key("anna").With(quota), 4)
	fmt.Println("anna", d.Allowed, d.Remaining, "of", d.Limit)

	unlimited, _ := limiter.Quota(engine.Unlimited())
	fmt.Println("berta", limiter.AllowKey(limiter.Key("berta").With(unlimited)))
	fmt.Println("without a quota", limiter.Allow("anna"))

	_, err := limiter.Quota(engine.TokenBucket(engine.Per(1, 24*time.Hour), 30))
	fmt.Println("a month does not fit:", err != nil)
	// Output:
	// anna true 6 of 10
	// berta true
	// without a quota false
	// a month does not fit: true
}

// A program may make a quota once and keep it for many requests of a user.
func ExampleKey_With() {
	limiter, _ := engine.New(engine.FixedWindow(5, time.Hour), engine.MaxQuota(100))
	defer limiter.Close()

	large, _ := limiter.Quota(engine.FixedWindow(100, time.Hour))
	fmt.Println(limiter.TakeKey(limiter.Key("anna").With(large), 30).Remaining)
	fmt.Println("by the limiter's own policy:", limiter.Take("anna", 1).Allowed)
	// Output:
	// 70
	// by the limiter's own policy: false
}

// A ban is a quota like any other, and so is an unlimited key.
func ExampleBlocked() {
	limiter, _ := engine.New(engine.TokenBucket(engine.PerSecond(1), 1))
	defer limiter.Close()

	banned, _ := limiter.Quota(engine.Blocked())
	unlimited, _ := limiter.Quota(engine.Unlimited())
	fmt.Println(limiter.AllowKey(limiter.Key("mallory").With(banned)), limiter.AllowKey(limiter.Key("anna").With(unlimited)))
	// Output:
	// false true
}

// The cost of an answer is known only after the answer. The key may then owe more than its limit, and is refused until
// enough of this debt has come back.
func ExampleLimiter_Charge() {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	limiter, _ := engine.New(engine.TokenBucket(engine.Per(600, time.Minute), 600),
		engine.ClockFunc(func() time.Time { return now }))
	defer limiter.Close()

	if limiter.Allow("anna") {
		d, lost := limiter.Charge(limiter.Key("anna"), 1499) // tokens of a language model
		fmt.Println(d.Allowed, d.Remaining, lost)
		fmt.Println("again after", d.RetryAfter)
	}
	// Output:
	// false 0 0
	// again after 1m30.1s
}

// The numbers change while the limiter is in use. The tokens that a key has taken still count.
func ExampleLimiter_SetPolicy() {
	limiter, _ := engine.New(engine.FixedWindow(10, time.Hour), engine.MaxKeys(1000))
	defer limiter.Close()

	limiter.Take("anna", 5)
	if err := limiter.SetPolicy(engine.FixedWindow(100, time.Hour)); err != nil {
		panic(err)
	}
	fmt.Println(limiter.Peek(limiter.Key("anna"), 0).Remaining, "left")
	fmt.Println(limiter.SetPolicy(engine.SlidingWindow(100, time.Hour)))
	// Output:
	// 95 left
	// engine: SetPolicy(sliding window 100/1h0m0s): the limiter is a fixed window 100/1h0m0s, and stays of that kind
}

func ExampleParseRate() {
	for _, s := range []string{"100/s", "10/1500ms", "10/fortnight"} {
		rate, err := engine.ParseRate(s)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(rate)
	}
	// Output:
	// 100/s
	// 10/1.5s
	// engine: rate "10/fortnight": "fortnight" is not a period: want ms, s, m, h, d or a duration such as 1500ms
}
