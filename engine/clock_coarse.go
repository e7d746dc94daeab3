package engine

import "time"

const (
	// coarseTick is the time after which the word of a coarse clock is renewed.
	coarseTick = time.Millisecond
	// coarseDoubt is the largest delay that the word of a coarse clock is assumed to have. A refusal whose wait is
	// longer than this is final. Other refusals are checked with the exact clock. The largest delay that was measured,
	// with every processor busy, was 40ms.
	coarseDoubt = 100 * time.Millisecond
)

// renew reads the exact clock and stores the reading in the word, unless the word is younger than the duration in the
// parameter age. So thousands of concurrent refusals write the word only once. renew returns the reading or the word,
// whichever is later.
func (c *clock) renew(age time.Duration) int64 {
	now := c.exact()
	for {
		word := c.coarse.Load()
		if word == 0 || now-word < int64(age) {
			return max(now, word)
		}
		if c.coarse.CompareAndSwap(word, now) {
			return now
		}
	}
}

// runCoarse renews the word until stop is closed. It then sets the word to 0, so that later calls read the exact clock.
func (c *clock) runCoarse(stop <-chan struct{}) {
	ticker := time.NewTicker(coarseTick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.renew(0)
		case <-stop:
			c.coarse.Store(0)
			return
		}
	}
}
