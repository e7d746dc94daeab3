package redislimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestLostTime: the time in which several parts are lost counts once, and a current outage counts up to now.
func TestLostTime(t *testing.T) {
	at := time.Unix(1e9, 0)
	now := func() time.Time { return at }
	var o outage
	after := func(d time.Duration) time.Duration { at = at.Add(d); return o.totalTime(now) }
	assert.Zero(t, after(time.Hour))

	assert.True(t, o.begin("timeout", now))
	assert.Equal(t, time.Second, after(time.Second))
	assert.False(t, o.begin("timeout", now), "a second part")
	assert.Equal(t, 2, o.lostParts())
	assert.Equal(t, 3*time.Second, after(2*time.Second))
	assert.False(t, o.end(now), "the other is still lost")
	assert.Equal(t, 4*time.Second, after(time.Second))
	assert.True(t, o.end(now))
	assert.Equal(t, 4*time.Second, after(time.Hour))

	assert.True(t, o.begin("timeout", now))
	assert.True(t, o.end(now))
	assert.True(t, o.begin("timeout", now))
	assert.Equal(t, 9*time.Second, after(5*time.Second), "outages add up")
}

// TestABreakerThatClosesBeforeItsOpeningIsNoted: the return of a part may be noted before its loss.
func TestABreakerThatClosesBeforeItsOpeningIsNoted(t *testing.T) {
	at := time.Unix(1e9, 0)
	now := func() time.Time { return at }
	var o outage
	assert.False(t, o.end(now))
	assert.False(t, o.begin("timeout", now))
	at = at.Add(time.Hour)
	assert.Zero(t, o.totalTime(now))
	assert.Zero(t, o.lostParts())
}

// TestAnotherReasonIsToldOnce: while a store stays lost, each kind of failure is logged once.
func TestAnotherReasonIsToldOnce(t *testing.T) {
	var o outage
	assert.False(t, o.addKind("certificate"), "it is not lost")
	o.begin("connection", time.Now)
	assert.False(t, o.addKind("connection"))
	assert.True(t, o.addKind("certificate"))
	assert.False(t, o.addKind("certificate"))
	o.begin("timeout", time.Now)
	assert.True(t, o.addKind("timeout"))
	o.end(time.Now)
	assert.False(t, o.addKind("certificate"))
	o.end(time.Now)
	o.begin("timeout", time.Now)
	assert.True(t, o.addKind("certificate"), "another outage")
}
