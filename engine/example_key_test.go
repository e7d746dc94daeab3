package engine_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/weir-go/weir/engine"
)

// A key that is used more than once needs to be hashed only once.
func ExampleLimiter_Key() {
	reads, _ := engine.New(engine.TokenBucket(engine.Per(100, time.Hour), 100), engine.MaxKeys(1000))
	writes, _ := engine.New(engine.TokenBucket(engine.Per(10, time.Hour), 10), engine.MaxKeys(1000))
	defer reads.Close()
	defer writes.Close()

	key := reads.Key("anna") // works for both limiters: see Key
	reads.TakeKey(key, 30)
	writes.TakeKey(key, 4)
	fmt.Println(reads.Peek(key, 0).Remaining, writes.Peek(key, 0).Remaining)
	// Output: 70 6
}

// KeyBytes makes a key of the bytes in a buffer, without a conversion to a string.
func ExampleLimiter_KeyBytes() {
	limiter, _ := engine.New(engine.TokenBucket(engine.Per(10, time.Hour), 10), engine.MaxKeys(1000))
	defer limiter.Close()

	packet := []byte("anna: hello")
	limiter.TakeKey(limiter.KeyBytes(packet[:4]), 1)
	fmt.Println(limiter.Peek(limiter.Key("anna"), 0).Remaining)
	// Output: 9
}

// KeyUint64 makes a key of a number. A number and a text with the same bytes are different keys.
func ExampleLimiter_KeyUint64() {
	limiter, _ := engine.New(engine.TokenBucket(engine.Per(10, time.Hour), 10), engine.MaxKeys(1000))
	defer limiter.Close()

	limiter.TakeKey(limiter.KeyUint64(42), 1)
	fmt.Println(limiter.Peek(limiter.KeyUint64(42), 0).Remaining, limiter.Peek(limiter.Key("42"), 0).Remaining)
	// Output: 9 10
}

// With the network's address as the key, a client with a whole IPv6 network counts as one client.
func ExampleLimiter_KeyAddr_network() {
	limiter, _ := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 1), engine.MaxKeys(1000))
	defer limiter.Close()

	for _, text := range []string{"2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"} {
		network, _ := netip.MustParseAddr(text).Prefix(64)
		fmt.Println(text, limiter.AllowKey(limiter.KeyAddr(network.Addr())))
	}
	// Output:
	// 2001:db8::1 true
	// 2001:db8::2 false
	// 2001:db8:0:1::1 true
}

// A Key has no text, so the program keeps its own counts, by key. If several goroutines use the map, it needs a lock.
func ExampleObserve() {
	refused := map[engine.Key]int{}
	count := func(k engine.Key, _ uint64) { refused[k]++ }
	limiter, _ := engine.New(engine.FixedWindow(2, time.Hour), engine.MaxKeys(1000), engine.Observe(count, 1))
	defer limiter.Close()

	for range 5 {
		limiter.Allow("anna")
	}
	fmt.Println(refused[limiter.Key("anna")], "refused")
	// Output: 3 refused
}
