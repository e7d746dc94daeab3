package engine

import "time"

const (
	coarseTick = time.Millisecond
	// coarseDoubt is how late a coarse clock is assumed to be at most. In measurements with every processor busy, it
	// was at most 40ms late.
	coarseDoubt = 100 * time.Millisecond
)

// renew sets a coarse clock that is older than age to the exact time, and returns the later of both times. So thousands
// of concurrent refusals write the clock's word only once.
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

// runCoarse renews the coarse clock until stop is closed. Then it stores 0, so that later calls read the exact clock.
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
