package leakcheck

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waiting runs in the leaked goroutine of TestAwait.
func waiting(started, stop chan struct{}) {
	close(started)
	<-stop
}

func TestAwait(t *testing.T) {
	require.Empty(t, await(patience), "nothing is left of other tests")
	started, stop := make(chan struct{}), make(chan struct{})
	go waiting(started, stop)
	<-started
	left := await(time.Millisecond)
	require.Len(t, left, 1)
	assert.Contains(t, left[0], "leakcheck.waiting(")
	time.AfterFunc(10*time.Millisecond, func() { close(stop) })
	assert.Empty(t, await(patience), "a goroutine that ends in time is no leak")
}
