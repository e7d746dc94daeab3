//go:build unix

package redislimit_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// A burst of requests must not make a store that answers count as failed.
func TestBurstsAreNoFailures(t *testing.T) {
	server := redistest.Start(t)
	node := func(policy engine.Policy, options ...redislimit.Option) *redislimit.Limiter {
		return limiter(t, patient(t, server.URL()), policy, append(options, redislimit.OnLoss(redislimit.FailClosed))...)
	}
	var failed, admitted atomic.Int64
	ask := func(l *redislimit.Limiter, key string) {
		d, err := l.Take(t.Context(), key, 1)
		if err != nil {
			failed.Add(1)
			return
		}
		if d.Allowed {
			admitted.Add(1)
		}
	}
	burst := 10_000
	if testing.Short() {
		burst = 1000
	}
	for name, mode := range map[string]redislimit.Mode{"strict": redislimit.Strict, "leased": redislimit.Leased} {
		t.Run(name, func(t *testing.T) {
			failed.Store(0)
			admitted.Store(0)
			one := node(engine.TokenBucket(engine.PerSecond(1_000_000), 1_000_000), redislimit.InMode(mode))
			var all sync.WaitGroup
			for range burst {
				all.Go(func() { ask(one, "k") })
			}
			all.Wait()
			assert.Zero(t, failed.Load(), "at once")
			assert.EqualValues(t, burst, admitted.Load())

			for n := range 4 {
				l := node(engine.TokenBucket(engine.PerSecond(1000), 1000), redislimit.InMode(mode))
				for i := range burst {
					all.Go(func() { ask(l, fmt.Sprint(n, " ", i)) })
				}
			}
			all.Wait()
			assert.Zero(t, failed.Load(), "new keys of four nodes")
			assert.EqualValues(t, 5*burst, admitted.Load())

			for i := range 512 {
				all.Go(func() {
					for range burst / 500 {
						ask(one, fmt.Sprint(i))
					}
				})
			}
			all.Wait()
			assert.Zero(t, failed.Load(), "512 callers")
			assert.EqualValues(t, 5*burst+burst/500*512, admitted.Load())
		})
	}
}
