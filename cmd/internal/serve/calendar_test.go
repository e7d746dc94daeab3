package serve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestALimitOfTheCalendar: header fields show the end of the period. Tokens that were used still count after a reload,
// even if the algorithm or the period changes. A Retry-After of weeks is valid (pitfall 38 of docs/budgets.md).
func TestALimitOfTheCalendar(t *testing.T) {
	const monthly = "rules: [{name: a, rate: 5/month, algorithm: fixed-window, zone: Europe/Berlin, max_keys: 100}]\n"
	s := start(t, monthly)                                  // 1 January 2026, 01:00 in Berlin
	s.clock.advance(10*24*time.Hour - 500*time.Millisecond) // 20 days and 23 hours before February
	_, h := s.ask("/")
	assert.Equal(t, `"a";r=4;t=1810801`, h.Get("RateLimit"), "rounded up")
	assert.Equal(t, `"a";q=5;w=2678400`, h.Get("RateLimit-Policy"))
	assert.Equal(t, "200 200 200 200 429", s.statuses(5))
	a, h := s.ask("/")
	assert.Equal(t, 429, a.status)
	assert.Equal(t, "1810801", h.Get("Retry-After"))

	s.change("rules: [{name: a, rate: 7/month, algorithm: fixed-window, zone: Asia/Tokyo, max_keys: 100}]\n")
	assert.Equal(t, "200 200 429", s.statuses(3))
	assert.Contains(t, s.log.String(), "fixed window 7/month of Asia/Tokyo, was fixed window 5/month of Europe/Berlin; the tokens that a key has used still count")
	s.change("rules: [{name: a, rate: 8/day, algorithm: fixed-window, max_keys: 100}]\n")
	assert.Equal(t, "200 429", s.statuses(2))
	s.change("rules: [{name: a, rate: 9/h, max_keys: 100}]\n")
	assert.Equal(t, "200 429", s.statuses(2), "another algorithm: it has another limiter, which is charged")
	s.change(monthly)
	assert.Equal(t, "429", s.statuses(1))
	s.clock.advance(20*24*time.Hour + 23*time.Hour)
	assert.Equal(t, "429", s.statuses(1), "half a second before the 1st")
	s.clock.advance(500 * time.Millisecond)
	assert.Equal(t, "200 200 200 200 200 429", s.statuses(6))
}
