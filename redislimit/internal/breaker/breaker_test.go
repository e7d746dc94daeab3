package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	ms    = int64(time.Millisecond)
	after = 200 * time.Millisecond
)

// Calls that fail at the same moment must not open the breaker, because they show only one short delay.
func TestAHiccupDoesNotOpenIt(t *testing.T) {
	var b Breaker
	b.Succeeded(1000 * ms)
	for range 8 {
		b.Failed(1001*ms, 1046*ms, after)
	}
	assert.False(t, b.IsOpen())
	b.Succeeded(1047 * ms)
	for range 8 {
		b.Failed(1150*ms, 1200*ms, after)
	}
	assert.False(t, b.IsOpen(), "there was a success between them")
}

func TestSilenceOpensIt(t *testing.T) {
	var b Breaker
	b.Failed(1000*ms, 1050*ms, after)
	b.Failed(1050*ms, 1100*ms, after)
	b.Failed(1100*ms, 1199*ms, after)
	assert.False(t, b.IsOpen())
	assert.True(t, b.Allows(1199*ms))
	b.Failed(1150*ms, 1200*ms, after)
	assert.True(t, b.IsOpen())
	assert.False(t, b.Allows(1449*ms))
	assert.True(t, b.Allows(1450*ms), "a probe")
	assert.False(t, b.Allows(1450*ms), "and only one")
	b.Failed(1450*ms, 1500*ms, after)
	assert.True(t, b.IsOpen())
	b.Succeeded(1700 * ms)
	assert.False(t, b.IsOpen())
	assert.True(t, b.Allows(1700*ms))
}

// The failure of a call does not count for the time before another call got an answer.
func TestAnOldFailureCountsFromTheLastSuccess(t *testing.T) {
	var b Breaker
	b.Succeeded(2000 * ms)
	b.Failed(1500*ms, 2100*ms, after)
	assert.False(t, b.IsOpen())
	b.Failed(2100*ms, 2200*ms, after)
	assert.True(t, b.IsOpen())
}

// A loss begins when the breaker opens, and not when the first failed call was sent.
func TestALossBeginsWhenItOpens(t *testing.T) {
	var b Breaker
	b.Failed(1000*ms, 1050*ms, after)
	_, lost := b.LostSince()
	assert.False(t, lost, "one call was late")
	b.Failed(9000*ms, 9050*ms, after)
	b.Failed(9000*ms, 9090*ms, after)
	since, lost := b.LostSince()
	assert.True(t, lost)
	assert.Equal(t, 9050*ms, since)
	b.Succeeded(9500 * ms)
	_, lost = b.LostSince()
	assert.False(t, lost)
	b.Failed(9500*ms, 9800*ms, after)
	since, _ = b.LostSince()
	assert.Equal(t, 9800*ms, since)
}

// A store whose answers come too late is alive, so the breaker waits longer than for a store without answers.
func TestLateAnswersKeepABreakerClosedForAWhile(t *testing.T) {
	var b Breaker
	const after = 200 * time.Millisecond
	ms := int64(time.Millisecond)
	b.Succeeded(1000 * ms)
	assert.False(t, b.Failed(1001*ms, 1050*ms, after))
	assert.False(t, b.IsFailing(1050*ms, 50*time.Millisecond))
	assert.True(t, b.IsFailing(1051*ms, 50*time.Millisecond))
	b.Late(1100 * ms)
	assert.False(t, b.Failed(1210*ms, 1260*ms, after))
	assert.True(t, b.Failed(1210*ms, 1300*ms, after), "200 ms after the late answer")
	b.Succeeded(2000 * ms)
	for now := 2010 * ms; now < 3001*ms; now += 10 * ms {
		b.Late(now)
		require.False(t, b.Failed(2001*ms, now, after), now/ms)
	}
	b.Late(3001 * ms)
	assert.True(t, b.Failed(2990*ms, 3001*ms, after), "a second without an answer in time")
}
