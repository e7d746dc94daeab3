package check

import (
	"fmt"
	"math"
	"time"
)

// Never is the wait of a request that a limit never admits, and any wait that does not fit into a Duration.
const Never time.Duration = math.MaxInt64

// A Limit is the limit of one key: a number of tokens (Tokens) in each time Per. A full bucket has Burst tokens. A
// window ignores Burst, and admits up to Tokens.
type Limit struct {
	Tokens uint64        // 1 or more
	Per    time.Duration // above 0
	Burst  uint64        // 1 or more; ignored for windows
}

// String returns the limit as text, such as "10 in 1s, burst 20".
func (l Limit) String() string { return fmt.Sprintf("%d in %v, burst %d", l.Tokens, l.Per, l.Burst) }

// A Promise is the rule that a limiter claims to enforce.
type Promise uint8

const (
	// Bucket: in any interval of length t, at most Burst + t * Tokens/Per tokens are admitted. Token buckets, leaky
	// buckets used as a meter, and GCRA promise this.
	Bucket Promise = iota
	// BatchRefill: a bucket that gets a number of tokens (Tokens) at once at every multiple of Per, up to Burst.
	BatchRefill
	// FixedWindow: at most Tokens are admitted in a window of length Per. A window begins with the first request after
	// the previous window has ended.
	FixedWindow
	// AlignedWindow: at most Tokens are admitted in a window of length Per. Windows begin at multiples of Per.
	AlignedWindow
	// SlidingEstimate: the count of the current aligned window, plus a share of the count of the previous window, is at
	// most Tokens. The share is the part of the previous window that is within the last Per. A limiter may round the
	// product of this share and the previous count down or up. So an admission is wrong only if there is no room with
	// rounding down, and a refusal only if there is room with rounding up.
	SlidingEstimate
	// SlidingExact: at most Tokens are admitted in any window of length Per, including its beginning but not its end.
	SlidingExact
	// LeakyQueue: admitted requests wait for their turn ([Event.Wait]). Their tokens leave one by one, at intervals of
	// Per/Tokens. At most Burst admitted tokens have not left yet, as in a Bucket.
	LeakyQueue

	promises int = iota
)

var promiseNames = [promises]string{"bucket", "batch refill", "fixed window", "aligned window", "sliding estimate",
	"sliding exact", "leaky queue"}

// String returns the name of the promise.
func (p Promise) String() string {
	if int(p) < promises {
		return promiseNames[p]
	}
	return fmt.Sprintf("Promise(%d)", uint8(p))
}

// Promises returns all promises.
func Promises() []Promise {
	list := make([]Promise, promises)
	for i := range list {
		list[i] = Promise(i)
	}
	return list
}

// bursts reports whether the promise uses Limit.Burst.
func (p Promise) usesBurst() bool { return p == Bucket || p == BatchRefill || p == LeakyQueue }

// Capacity returns how many tokens an unused key may have at once.
func (l Limit) Capacity(p Promise) uint64 {
	if p.usesBurst() {
		return l.Burst
	}
	return l.Tokens
}

// Check returns an error if a number of the limit is out of range for the promise.
func (l Limit) Check(p Promise) error {
	switch {
	case int(p) >= promises:
		return fmt.Errorf("check: promise %d: want one below %d", p, promises)
	case l.Tokens < 1:
		return fmt.Errorf("check: %d tokens: want 1 or more", l.Tokens)
	case l.Per <= 0:
		return fmt.Errorf("check: a period of %v: want one above 0", l.Per)
	case p.usesBurst() && l.Burst < 1:
		return fmt.Errorf("check: a burst of %d: want 1 or more", l.Burst)
	}
	return nil
}
