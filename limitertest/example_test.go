package limitertest_test

import (
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/limitertest"
)

// This is a limiter in ten lines. For each key, it stores when the bucket is full again.
type limiter struct {
	sync.Mutex
	token, burst time.Duration
	full         map[string]time.Time
}

func (l *limiter) wait(key string, n int64) time.Duration {
	l.Lock()
	defer l.Unlock()
	now := time.Now()
	if l.full[key].Before(now) {
		l.full[key] = now
	}
	full := l.full[key].Add(time.Duration(n) * l.token)
	if wait := full.Sub(now) - l.burst; wait > 0 {
		return wait
	}
	l.full[key] = full
	return 0
}

// An adapter has the method that Test calls.
type adapter struct{ *limiter }

func (a adapter) Take(key string, n int64) limitertest.Decision {
	wait := a.wait(key, n)
	return limitertest.Decision{Allowed: wait == 0, RetryAfter: wait}
}

func Example() {
	var t *testing.T // of func TestLimiter(t *testing.T)
	testLimiter(t)
}

func testLimiter(t *testing.T) {
	limitertest.Test(t, limitertest.Config{
		Promise: limitertest.Bucket,
		New: func(_ testing.TB, l limitertest.Limit) limitertest.Limiter {
			tokens := time.Duration(l.Tokens)
			token := (l.Per + tokens - 1) / tokens
			return adapter{&limiter{token: token, burst: time.Duration(l.Burst) * token, full: map[string]time.Time{}}}
		},
		// The limiter rounds the time of a token up to nanoseconds. So after some hundred tokens, a token may come a
		// little late.
		LateBy: func(limitertest.Limit) time.Duration { return time.Microsecond },
		// The first run reported this fault.
		Skip: map[string]string{
			"Costs": "negative and huge costs are the caller's fault",
			"Leak":  "it never forgets a key",
		},
	})
}

// TestTenLines: the test runs the code that the example shows.
func TestTenLines(t *testing.T) { testLimiter(t) }
