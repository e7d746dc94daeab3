package engine

import "time"

const (
	coarseTick = time.Millisecond
	// coarseDoubt is how late the word is assumed to be at most. In measurements with every processor busy, it was at
	// most 40ms late. A refusal with a longer wait is final. Other refusals are checked with the exact clock.
	coarseDoubt = 100 * time.Millisecond
)

// renew stores the exact time in the word, unless the word is younger than age. So thousands of concurrent refusals
// write the word only once. renew returns the exact time or the word, whichever is later.
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

// runCoarse renews the word until stop is closed. Then it sets the word to 0, so that later calls read the exact clock.
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
