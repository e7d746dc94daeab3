package debounce

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestChangesThatDoNotEnd: a file is read when it has not changed for a time. If changes do not end, it is read after
// Longest.
func TestChangesThatDoNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := New()
		defer timer.Stop()
		begin := time.Now()
		fires := func(every time.Duration) time.Duration {
			timer.Fired()
			begin = time.Now()
			timer.Changed()
			more := time.NewTicker(every)
			defer more.Stop()
			for {
				select {
				case <-timer.C:
					return time.Since(begin)
				case <-more.C:
					timer.Changed()
				}
			}
		}
		assert.Equal(t, Quiet, fires(time.Hour), "one change")
		assert.Equal(t, Longest, fires(Quiet/2), "changes without end")
		assert.Equal(t, Longest, fires(Quiet/2), "and again")
		assert.Equal(t, Quiet, fires(Quiet+1), "changes with pauses")
		time.Sleep(2 * Longest)
		assert.Empty(t, timer.C, "nothing has changed")
	})
}
