package limits

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// TestATurnThatMovesUpBeforeItsRequestLooks: the request waits for the turn that it has then.
func TestATurnThatMovesUpBeforeItsRequestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(1), engine.ClockFunc(time.Now))
		require.NoError(t, err)
		defer limiter.Close()
		var l lines
		key := limiter.KeyUint64(0)
		limiter.TakeKey(key, 1)
		first, _, err := l.join(limiter, key, 1, time.Minute, false)
		require.NoError(t, err)
		second, delay, err := l.join(limiter, key, 1, time.Minute, false)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, delay)
		l.leave(key, first)
		assert.Equal(t, time.Second, l.when(second, func() {}))
		l.leave(key, second)
		assert.Empty(t, l.of)
	})
}
