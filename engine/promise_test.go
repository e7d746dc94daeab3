package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAPartOfWhatWaits (I1): after a refund of a part of a waiting reservation, all taken tokens still fit the limit.
func TestAPartOfWhatWaits(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 10))
	_, take := l.TakeReceipt(l.Key("k"), 5)
	r, err := l.ahead(l.Key("k"), 10, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 5*time.Second, r.delay)
	r.Refund(5)
	take.Refund(5)
	h.advance(5 * time.Second)
	assert.False(t, l.Take("k", 10).Allowed)
	assert.LessOrEqual(t, l.Peek(l.Key("k"), 0).Remaining, uint64(5))

	// A part of a due reservation can be given back, and so can all of a waiting reservation.
	l, h = newLimiter(t, TokenBucket(PerSecond(1), 10))
	require.True(t, l.Take("k", 10).Allowed)
	r, err = l.ahead(l.Key("k"), 10, time.Minute)
	require.NoError(t, err)
	h.advance(10 * time.Second)
	r.Refund(5)
	assert.EqualValues(t, 5, l.Peek(l.Key("k"), 0).Remaining)
	r, err = l.ahead(l.Key("k"), 10, time.Minute)
	require.NoError(t, err)
	r.Release()
	assert.EqualValues(t, 5, l.Peek(l.Key("k"), 0).Remaining)
}

// TestAHoldWithoutALimit: a hold that was made without a limit is settled under the limit at the time of the
// settlement.
func TestAHoldWithoutALimit(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 50))
	require.NoError(t, l.SetPolicy(Unlimited()))
	d, unlimited := l.Hold(l.Key("a"), 10)
	require.True(t, d.Allowed)
	_, other := l.Hold(l.Key("b"), 10)
	assert.Zero(t, other.Settle(100), "of a key without a limit nothing is lost")
	require.NoError(t, l.SetPolicy(TokenBucket(PerSecond(1), 50)))
	assert.Zero(t, unlimited.Settle(60))
	assert.Zero(t, l.Peek(l.Key("a"), 0).Remaining, "50 above the estimate are charged")
	assert.EqualValues(t, 50, l.Peek(l.Key("b"), 0).Remaining)
}

// TestWhatComesBackWhileOthersWait (I1): a refund gives back only tokens that no later reservation needs.
func TestWhatComesBackWhileOthersWait(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 10))
	d, hold := l.Hold(l.Key("k"), 5)
	require.True(t, d.Allowed)
	require.True(t, l.Take("k", 5).Allowed)
	r, err := l.ahead(l.Key("k"), 1, time.Minute)
	require.NoError(t, err)
	require.Equal(t, time.Second, r.delay)
	hold.Settle(1)
	require.EqualValues(t, 3, l.Peek(l.Key("k"), 0).Remaining, "with the one that goes in a second, four")
	require.True(t, l.Take("k", 3).Allowed)
	h.advance(time.Second)
	assert.EqualValues(t, 1, l.Peek(l.Key("k"), 0).Remaining, "1 + 5 + 3 + 1 went, and one has come back")
	assert.EqualValues(t, 10+1, 1+5+3+1+l.Peek(l.Key("k"), 0).Remaining)
}

// TestARefundUnderAHigherLimit (I1): a refund of a take under a higher limit gives back no tokens that a reservation
// needs.
func TestARefundUnderAHigherLimit(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 10), Tiers(TokenBucket(PerSecond(1), 100)))
	k := l.Key("k")
	d, high := l.TakeReceipt(k.Tier(1), 15)
	require.True(t, d.Allowed)
	r, err := l.ahead(k, 5, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, r.delay)
	high.Refund(15)
	h.advance(10 * time.Second)
	assert.LessOrEqual(t, l.Peek(k, 0).Remaining, uint64(5), "five go now")
}

// TestAPartOfWhatWaitsComesBackAtOnce: a part of the last reservation in line is given back at once.
func TestAPartOfWhatWaitsComesBackAtOnce(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 10))
	require.True(t, l.Take("k", 10).Allowed)
	r, err := l.ahead(l.Key("k"), 10, time.Minute)
	require.NoError(t, err)
	r.Refund(4)
	assert.Equal(t, 16*time.Second, l.Peek(l.Key("k"), 0).ResetAfter)
}

// TestTheFirstInLineGoesAway (I1): if the first reservation in line is released, its token does not come back.
// Otherwise a new caller would be due at the same time as the last caller in line.
func TestTheFirstInLineGoesAway(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 1))
	require.True(t, l.Allow("k"))
	var line []*reserved
	for range 8 {
		r, err := l.ahead(l.Key("k"), 1, time.Minute)
		require.NoError(t, err)
		line = append(line, r)
	}
	line[0].Release()
	next, err := l.ahead(l.Key("k"), 1, time.Minute)
	require.NoError(t, err)
	assert.Greater(t, next.delay, line[7].delay)
}
