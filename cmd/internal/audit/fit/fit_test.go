package fit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/limitertest/check"
)

// TestWindowsThatARequestBegins: the window after the latest one may be empty. Then the next request begins a window,
// though the latest request may be less than two periods ago.
func TestWindowsThatARequestBegins(t *testing.T) {
	at := Limit{Phase: Anchored, Limit: check.Limit{Per: 10}}.Clock()
	var times []time.Duration
	for _, d := range []time.Duration{103, 109, 121, 139, 142, 159} {
		times = append(times, at("", d))
	}
	assert.Equal(t, []time.Duration{100, 106, 118, 130, 133, 150}, times)
}
