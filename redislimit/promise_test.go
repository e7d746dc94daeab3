package redislimit_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/internal/conformance/rpcfront"
	"github.com/weir-go/weir/limitertest"
	"github.com/weir-go/weir/limitertest/fronttest"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit"
)

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

// TestLeasesKeepThePromise: two nodes get at most the limit, the overdrafts and the tokens in hand.
func TestLeasesKeepThePromise(t *testing.T) {
	const overdraft, nodes = 8, 2
	front := rpcfront.Direct("gRPC", func(env *conformance.Env, c conformance.Config, l conformance.Limit) (limits.Source, error) {
		return source(env, c, l, redislimit.InMode(redislimit.Leased), redislimit.Overdraft(overdraft), redislimit.Nodes(nodes))
	})
	limit := limitertest.Limit{Tokens: 86_400_000, Per: 24 * time.Hour, Burst: 20} // a token each millisecond
	skip := map[string]string{}
	for _, name := range []string{"Burst", "Keys", "Costs", "Linear"} {
		skip[name] = "tokens come back while it runs"
	}
	limitertest.Test(t, limitertest.Config{
		Outside: true, Keys: 500, Limits: []limitertest.Limit{limit}, Skip: skip,
		EarlyBy: func(l limitertest.Limit) time.Duration {
			return nodes * time.Duration(overdraft+l.Burst/2) * time.Millisecond
		},
		New: func(tb testing.TB, l limitertest.Limit) limitertest.Limiter {
			both := front.Nodes(tb, conformance.Numbers{N: l.Tokens, Per: l.Per, Burst: l.Burst}, nodes)
			var asked atomic.Uint64
			return limitertest.TakeFunc(func(key string, n int64) limitertest.Decision {
				return fronttest.Limiter{Front: both[asked.Add(1)%nodes]}.Take(key, n)
			})
		},
	})
}
