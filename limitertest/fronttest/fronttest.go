// Package fronttest runs package limitertest against a limiter behind a protocol, such as a middleware or a server.
package fronttest

import (
	"maps"
	"testing"
	"time"

	"github.com/weir-go/weir/limitertest"
)

// A Front is a limiter behind a protocol, with a limit for each key.
type Front interface {
	// Ask sends a request. The result retryAfter is negative if a refusal does not say when to try again.
	Ask(key string, cost uint64) (admitted bool, retryAfter time.Duration)
	// Now and Advance read and move the clock of a front that has its own clock.
	Now() time.Time
	Advance(d time.Duration)
}

// Fronts describes the fronts to test.
type Fronts struct {
	Open     func(tb testing.TB, l limitertest.Limit) Front // starts a front, which stops when tb ends
	InBubble bool                                           // the fronts use the time of the bubble in which they start
	OwnClock bool                                           // the fronts have their own clock
	Unit     time.Duration                                  // the unit to which the fronts round waits
	Skip     map[string]string                              // subtests that the fronts need not pass, with reasons
}

// A Limiter sends requests to a front, so that package limitertest can test it.
type Limiter struct{ Front }

// Take sends a request for n tokens. If n is below 0, Take refuses without sending a request.
func (l Limiter) Take(key string, n int64) limitertest.Decision {
	if n < 0 { // costs in the protocol have no sign
		return limitertest.Decision{RetryAfter: -1}
	}
	admitted, retry := l.Ask(key, uint64(n))
	return limitertest.Decision{Allowed: admitted, RetryAfter: retry}
}

// Test runs the subtests of limitertest over two limits. With -short it skips them, because they take minutes under the
// race detector.
func (f Fronts) Test(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes under the race detector, which the tests of the packages run under")
	}
	skip := map[string]string{"Leak": "the engine's, whose own test looks at it"}
	maps.Copy(skip, f.Skip)
	limitertest.Test(t, limitertest.Config{
		Outside: !f.InBubble, Keys: 500, RetryUnit: f.Unit, Skip: skip,
		Limits: []limitertest.Limit{{Tokens: 10, Per: time.Second, Burst: 20}, {Tokens: 5, Per: 24 * time.Hour, Burst: 5}},
		New: func(tb testing.TB, l limitertest.Limit) limitertest.Limiter {
			limiter := Limiter{f.Open(tb, l)}
			if f.OwnClock {
				return limiter
			}
			return limitertest.TakeFunc(limiter.Take) // hides the methods of the clock
		},
	})
}
