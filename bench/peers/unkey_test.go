package peers

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The sliding window covers a fraction of the previous window. The same fraction of the previous window's tokens
// counts. Older tokens do not count.
func TestUnkeyWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := unkeyWindows.New(Limit{Tokens: 10, Per: time.Second, Burst: 10}, 1)
		require.NoError(t, err)
		admitted := func() (n int) {
			for range 30 {
				if l.Allow("a") {
					n++
				}
			}
			return n
		}
		assert.Equal(t, 10, admitted())
		time.Sleep(1500 * time.Millisecond) // half of the first window is covered
		assert.Equal(t, 5, admitted())
		time.Sleep(10 * time.Second)
		assert.Equal(t, 10, admitted())
	})
}
