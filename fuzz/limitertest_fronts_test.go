package fuzz

import (
	"testing"
	"time"

	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/internal/conformance/httpfront"
	"github.com/weir-go/weir/internal/conformance/rpcfront"
	"github.com/weir-go/weir/limitertest"
	"github.com/weir-go/weir/limitertest/fronttest"
)

// promise returns a function that tests a front with package limitertest.
func promise(unit time.Duration, skip map[string]string) conformance.PromiseFunc {
	return func(t *testing.T, of conformance.Subjects) {
		fronttest.Fronts{
			InBubble: of.InBubble, OwnClock: !of.InBubble && !of.Stored, Unit: unit, Skip: skip,
			Open: func(tb testing.TB, l limitertest.Limit) fronttest.Front {
				return of.Open(tb, conformance.Numbers{N: l.Tokens, Per: l.Per, Burst: l.Burst})
			},
		}.Test(t)
	}
}

// TestFrontsKeepTheirPromises runs the promise cases for the fronts whose modules do not require limitertest.
func TestFrontsKeepTheirPromises(t *testing.T) {
	for unit, front := range map[time.Duration]conformance.Front{
		time.Second: httpfront.Front(nil), 1: rpcfront.Direct("gRPC", nil),
	} {
		front.Promise, front.Runs = promise(unit, nil), func(k *conformance.Case) bool { return k.Promise && !k.Stored }
		t.Run(front.Name, func(t *testing.T) { conformance.Run(t, front) })
	}
}
