package overshoot

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestExact(t *testing.T) {
	s := Scenario{Rate: 1000, Burst: 2}
	assert.EqualValues(t, 2, exact(s, []int64{0, 0, 0, 0}))
	assert.EqualValues(t, 3, exact(s, []int64{1e6, 0, 0, 0}), "in whatever order")
	assert.EqualValues(t, 4, exact(s, []int64{0, 0, 1e9, 1e9, 1e9}), "never more than the burst at once")
}
