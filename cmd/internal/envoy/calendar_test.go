package envoy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestPeriodsOfTheCalendarInAStore: replicas share the counters of a limit per calendar month in a time zone.
func TestPeriodsOfTheCalendarInAStore(t *testing.T) {
	redis := startRedis(t)
	const file = "domain: d\ndescriptors:\n" +
		"  - {key: month, rate_limit: {unit: month, zone: Europe/Berlin, requests_per_unit: 1000}}\n"
	a := storedService(t, file, Options{Store: redis.connect(t, 10*time.Second)})
	b := storedService(t, file, Options{Store: redis.connect(t, 10*time.Second)})
	assert.Equal(t, []int{400}, left(ask1(t, a, "d: month=a +600")))
	assert.Equal(t, []int{0}, left(ask1(t, b, "d: month=a +400")))
	assert.Equal(t, []int{-1}, left(ask1(t, a, "d: month=a")))
	assert.Equal(t, []int{999}, left(ask1(t, b, "d: month=b")))
}
