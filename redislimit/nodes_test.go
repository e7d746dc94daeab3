package redislimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// Nodes with different options share one limit.
func TestNodesThatDisagreeHoldOneLimit(t *testing.T) {
	nodes := map[string][]redislimit.Option{
		"leased of 4":         {redislimit.Nodes(4), redislimit.InMode(redislimit.Leased)},
		"leased of 5":         {redislimit.Nodes(5), redislimit.InMode(redislimit.Leased)},
		"strict":              {redislimit.InMode(redislimit.Strict)},
		"strict by its nodes": {redislimit.Nodes(1000)},
		"other overdraft":     {redislimit.Overdraft(0)},
		"closed":              {redislimit.OnLoss(redislimit.FailClosed)},
	}
	for name, policy := range map[string]engine.Policy{
		"token bucket": engine.TokenBucket(engine.PerSecond(1000), 400),
		"fixed window": engine.FixedWindow(1000, time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			server, client := mini(t)
			taker := limiter(t, client, policy, redislimit.InMode(redislimit.Strict))
			require.True(t, take(t, taker, "k", policy.Limit()-60).Allowed)
			for _, options := range nodes {
				l := limiter(t, client, policy, options...)
				assert.EqualValues(t, 60, peek(t, l, "k", 1).Remaining, "%v", options)
				assert.Equal(t, policy.Limit(), take(t, l, "k", 0).Limit)
			}
			assert.Len(t, miniKeys(server), 1)

			admitted, refusals := uint64(0), 0
			var each []*redislimit.Limiter
			for _, options := range nodes {
				each = append(each, limiter(t, client, policy, options...))
			}
			for refusals < 1000 {
				for _, l := range each {
					if l.Allow("k") {
						admitted++
						refusals = 0
					} else {
						refusals++
					}
				}
			}
			assert.LessOrEqual(t, admitted, 60+uint64(len(nodes))*8)
			assert.GreaterOrEqual(t, admitted, uint64(1))
		})
	}
}
