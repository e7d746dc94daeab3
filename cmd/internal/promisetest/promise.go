// Package promisetest runs package limitertest against the fronts of this module, for their tests.
package promisetest

import (
	"testing"
	"time"

	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/limitertest"
	"github.com/weir-go/weir/limitertest/fronttest"
)

// Promise runs package limitertest against a front. The front rounds waits to the parameter unit. The parameter skip
// has the promises that the front does not make, with the reasons.
func Promise(unit time.Duration, skip map[string]string) conformance.PromiseFunc {
	return func(t *testing.T, of conformance.Subjects) {
		fronttest.Fronts{
			InBubble: of.InBubble, OwnClock: !of.InBubble && !of.Stored, Unit: unit, Skip: skip,
			Open: func(tb testing.TB, l limitertest.Limit) fronttest.Front {
				return of.Open(tb, conformance.Numbers{N: l.Tokens, Per: l.Per, Burst: l.Burst})
			},
		}.Test(t)
	}
}
