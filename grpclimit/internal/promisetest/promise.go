// Package promisetest runs package limitertest against the fronts of this module. The tests of the fronts use it.
package promisetest

import (
	"testing"
	"time"

	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/limitertest"
	"github.com/weir-go/weir/limitertest/fronttest"
)

// Promise returns a function that runs package limitertest against a front. The front rounds waits to the duration
// unit. The map skip has the subtests that the front need not pass, each with the reason.
func Promise(unit time.Duration, skip map[string]string) conformance.PromiseFunc {
	return func(t *testing.T, subjects conformance.Subjects) {
		fronttest.Fronts{
			InBubble: subjects.InBubble, OwnClock: !subjects.InBubble && !subjects.Stored, Unit: unit, Skip: skip,
			Open: func(tb testing.TB, l limitertest.Limit) fronttest.Front {
				return subjects.Open(tb, conformance.Numbers{N: l.Tokens, Per: l.Per, Burst: l.Burst})
			},
		}.Test(t)
	}
}
