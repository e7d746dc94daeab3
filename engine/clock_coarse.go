package engine

import "time"

const (
	// coarseTick is how often the word of a coarse clock is renewed.
	coarseTick = time.Millisecond
	// coarseDoubt is how late the word is assumed to be at most. A refusal whose wait is longer stands at once. Other
	// refusals are checked with the exact clock. With every processor busy the word was seen 40ms late.
	coarseDoubt = 100 * time.Millisecond
)

// renew reads the exact clock and publishes the reading, unless the word is younger than age. So thousands of refusals
// write the word once. It returns the later of the two times.
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

// runCoarse renews the word until stop is closed, and leaves it at 0 so that
// later calls get the exact clock.
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
