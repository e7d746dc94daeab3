//go:build unix

package redislimit_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// A key with a value of another program gets an error, and affects no other key in the same call.
func TestAForeignKeyHindersNoOther(t *testing.T) {
	server := redistest.Start(t)
	for name, policy := range algorithms() {
		t.Run(name, func(t *testing.T) {
			server.Do("FLUSHALL")
			store := patient(t, server.URL())
			l, err := redislimit.New(store, name, policy, redislimit.OnLoss(redislimit.FailClosed))
			require.NoError(t, err)
			defer func() { assert.NoError(t, l.Close()) }()
			require.True(t, take(t, l, "foreign", 1).Allowed)
			keys := keysOf(server)
			require.Len(t, keys, 1)
			server.Do("DEL", keys[0])
			server.Do("HSET", keys[0], "field", "value")

			var all sync.WaitGroup
			for i := range 500 {
				all.Go(func() {
					d, err := l.Take(t.Context(), strconv.Itoa(i), 1)
					assert.NoError(t, err)
					assert.True(t, d.Allowed)
				})
				if i%10 == 0 {
					all.Go(func() {
						_, err := l.Take(t.Context(), "foreign", 1)
						assert.ErrorIs(t, err, redislimit.ErrStore)
						assert.ErrorContains(t, err, keys[0])
					})
				}
			}
			all.Wait()
			assert.Zero(t, store.Health().Lost)
			assert.EqualValues(t, 50, store.Health().Failures)
			assert.Equal(t, "value", server.Do("HGET", keys[0], "field"))
		})
	}
}
