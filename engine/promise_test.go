package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAPartOfWhatWaits (I1): a part of a reservation is given back only when its time has come. What goes by then and
// what was taken fit together into the limit.
func TestAPartOfWhatWaits(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 10))
	_, take := l.TakeReceipt(l.Key("k"), 5)
	r, err := l.Reserve("k", 10, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 5*time.Second, r.Delay())
	reserved := r.Receipt()
	reserved.Refund(5)
	take.Refund(5)
	h.advance(5 * time.Second) // five go
	assert.False(t, l.Take("k", 10).Allowed)
	assert.LessOrEqual(t, l.Peek("k", 0).Remaining, uint64(5))

	// A part of what has waited is given back, and all of what waits.
	l, h = newLimiter(t, TokenBucket(PerSecond(1), 10))
	require.True(t, l.Take("k", 10).Allowed)
	r, err = l.Reserve("k", 10, time.Minute)
	require.NoError(t, err)
	h.advance(10 * time.Second)
	reserved = r.Receipt()
	reserved.Refund(5)
	assert.EqualValues(t, 5, l.Peek("k", 0).Remaining)
	r, err = l.Reserve("k", 10, time.Minute)
	require.NoError(t, err)
	r.Cancel()
	assert.EqualValues(t, 5, l.Peek("k", 0).Remaining)
}

// TestAHoldWithoutALimit: what is held while there is no limit is settled by the limit that there is then.
func TestAHoldWithoutALimit(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 50))
	require.NoError(t, l.SetPolicy(Unlimited()))
	unlimited, d := l.Hold("a", 10)
	require.True(t, d.Allowed)
	other, _ := l.Hold("b", 10)
	assert.Zero(t, other.Settle(100), "of a key without a limit nothing is lost")
	require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(1), 50)))
	assert.Zero(t, unlimited.Settle(60))
	assert.Zero(t, l.Peek("a", 0).Remaining, "50 above the estimate are charged")
	assert.EqualValues(t, 50, l.Peek("b", 0).Remaining)
}
