package metering

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/engine"
)

// TestWatch: the page follows the key with the smallest part of its limit left. It shows when this part will be used up
// at the current rate.
func TestWatch(t *testing.T) {
	l, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1000), engine.MaxKeys(10))
	assert.NoError(t, err)
	defer l.Close()
	blue, red := watchedKey{key: l.Key("blue")}, watchedKey{text: "red"}
	now := time.Unix(1_000_000_000, 0)
	var w watch
	left := func(n uint64) engine.Decision { return engine.Decision{Allowed: true, Limit: 1000, Remaining: n} }
	assert.Nil(t, w.budget(now))
	assert.Equal(t, -1, w.note(blue, left(900), 100, now))
	assert.Equal(t, &admin.Budget{Left: 900, Limit: 1000}, w.budget(now), "no pace yet")
	now = now.Add(10 * time.Second)
	assert.Equal(t, 0, w.note(blue, left(500), 400, now), "half is used")
	assert.Equal(t, &admin.Budget{Left: 500, Limit: 1000, Ends: 12.5}, w.budget(now), "400 in 10 s")
	assert.Equal(t, -1, w.note(red, left(600), 400, now))
	assert.Equal(t, uint64(500), w.budget(now).Left, "red has more")
	assert.Equal(t, 2, w.note(red, left(20), 580, now), "past 80 and 95 %")
	assert.Equal(t, &admin.Budget{Left: 20, Limit: 1000}, w.budget(now))
	assert.Equal(t, -1, w.note(red, left(10), 10, now))
	now = now.Add(maxIdle)
	assert.Nil(t, w.budget(now), "nothing was seen lately")
	w.note(blue, left(700), 1, now)
	assert.Equal(t, uint64(700), w.budget(now).Left)
	assert.Equal(t, -1, w.note(red, engine.Decision{}, 1, now), "without a limit")
}

func TestQuantile(t *testing.T) {
	var h histogram
	assert.Zero(t, h.quantile(0.5))
	for range 90 {
		h.observe(0.3)
	}
	for range 10 {
		h.observe(1.2)
	}
	assert.Equal(t, 0.5, h.quantile(0.5))
	assert.Equal(t, 1.5, h.quantile(0.95))
	h.observe(1000)
	assert.Equal(t, 5.0, h.quantile(1), "the last bound, or more")
}
