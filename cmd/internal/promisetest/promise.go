// Package promisetest holds the fronts of this module against package limitertest, for their tests.
package promisetest

import (
	"maps"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/limitertest"
)

// A subject is a front as limitertest asks it.
type subject struct{ *conformance.Subject }

func (s subject) Take(key string, n int64) limitertest.Decision {
	if n < 0 { // a cost has no sign
		return limitertest.Decision{RetryAfter: -1}
	}
	admitted, retry := s.Ask(key, uint64(n))
	return limitertest.Decision{Allowed: admitted, RetryAfter: retry}
}

// Promise holds a front against package limitertest. unit is that of its waits, and skip has what it does not promise.
func Promise(unit time.Duration, skip map[string]string) conformance.PromiseFunc {
	return func(t *testing.T, of conformance.Subjects) {
		if testing.Short() {
			t.Skip("minutes under the race detector, which the tests of the packages run under")
		}
		skips := map[string]string{"Leak": "the engine's, whose own test looks at it"}
		maps.Copy(skips, skip)
		limitertest.Test(t, limitertest.Config{
			Outside: !of.InBubble, Keys: 500, RetryUnit: unit, Skip: skips,
			Limits: []limitertest.Limit{{Tokens: 10, Per: time.Second, Burst: 20}, {Tokens: 5, Per: 24 * time.Hour, Burst: 5}},
			New: func(tb testing.TB, l limitertest.Limit) limitertest.Limiter {
				asked := subject{of.Open(tb, conformance.Numbers{N: l.Tokens, Per: l.Per, Burst: l.Burst})}
				if of.InBubble || of.Stored { // time is not the subject's own
					return limitertest.TakeFunc(asked.Take)
				}
				return asked
			},
		})
	}
}
