//go:build unix

package redislimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// A hold that was sent as text is settled like the original.
func TestAHoldAsText(t *testing.T) {
	server := redistest.Start(t)
	for name, policy := range slowly(100) {
		t.Run(name, func(t *testing.T) {
			make := func() *redislimit.Limiter {
				l, err := redislimit.New(patient(t, server.URL()), "texts", policy, redislimit.InMode(redislimit.Strict), redislimit.TrustRefusals(0))
				require.NoError(t, err)
				t.Cleanup(func() { _ = l.Close() })
				return l
			}
			a, b := make(), make()
			send := func(h *redislimit.Hold, key string) *redislimit.Hold {
				got, err := b.ParseHold(key, h.Append(nil))
				require.NoError(t, err)
				require.Equal(t, h.Taken(), got.Taken())
				return got
			}
			send(hold(t, a, "k", 40), "k").Settle(10)
			becomes(t, b, "k", 10)
			send(hold(t, a, "k", 40), "k").Settle(45)
			becomes(t, a, "k", 55)
			require.True(t, send(hold(t, a, "k", 40), "k").Release())
			becomes(t, a, "k", 55)

			require.NotNil(t, hold(t, a, "other", 60))
			send(hold(t, a, "k", 10), "other").Settle(0)
			send(hold(t, a, "k", 10), "other").Settle(15)
			becomes(t, a, "other", 65)
			require.EqualValues(t, 75, usedOf(t, a, "k"), "another key frees nothing")
			_, err := b.ParseHold("k", []byte("short"))
			require.ErrorContains(t, err, "a text of 5 bytes: want 41")
			smaller, err := b.Quota(under(policy, 90))
			require.NoError(t, err)
			other, err := smaller.ParseHold("k", hold(t, a, "k", 5).Append(nil))
			require.NoError(t, err)
			other.Settle(0)
			becomes(t, a, "k", 80)
		})
	}
}

func under(p engine.Policy, limit uint64) engine.Policy {
	for _, q := range slowly(limit) {
		if q.Algorithm() == p.Algorithm() {
			return q
		}
	}
	return engine.TokenBucket(engine.Per(1, time.Hour), limit)
}
