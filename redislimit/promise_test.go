package redislimit_test

import (
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/internal/conformance/rpcfront"
	"github.com/weir-go/weir/limitertest"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit"
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

// promise holds the front against package limitertest.
func promise(unit time.Duration, skip map[string]string) conformance.PromiseFunc {
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

// TestLeasesKeepThePromise: many goroutines that ask a limit of which tokens are leased, for two nodes that both ask,
// get no more than the limit and what nodes may admit before the store has charged it. The other subtests want a limit
// that gives nothing back meanwhile, which no lease suits.
func TestLeasesKeepThePromise(t *testing.T) {
	const overdraft, nodes = 8, 2
	front := rpcfront.Direct("gRPC", func(env *conformance.Env, c conformance.Config, l conformance.Limit) (limits.Source, error) {
		return source(env, c, l, redislimit.InMode(redislimit.Leased), redislimit.Overdraft(overdraft), redislimit.Nodes(nodes))
	})
	limit := limitertest.Limit{Tokens: 86_400_000, Per: 24 * time.Hour, Burst: 100}
	skip := map[string]string{}
	for _, name := range []string{"Burst", "Keys", "Costs", "Linear"} {
		skip[name] = "tokens come back while it runs"
	}
	limitertest.Test(t, limitertest.Config{
		Outside: true, Keys: 500, Limits: []limitertest.Limit{limit}, Skip: skip,
		EarlyBy: func(limitertest.Limit) time.Duration { return overdraft * nodes * time.Millisecond },
		New: func(tb testing.TB, l limitertest.Limit) limitertest.Limiter {
			both := front.Nodes(tb, conformance.Numbers{N: l.Tokens, Per: l.Per, Burst: l.Burst}, nodes)
			var asked atomic.Uint64
			return limitertest.TakeFunc(func(key string, n int64) limitertest.Decision {
				return subject{both[asked.Add(1)%nodes]}.Take(key, n)
			})
		},
	})
}
