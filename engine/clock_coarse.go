package engine

import "time"

const (
	// coarseTick is how often the word of a coarse clock is renewed.
	coarseTick = time.Millisecond
	// coarseDoubt is how late the word may be, at the outside, before a refusal
	// that rests on it is wrong: refusals with a longer wait stand at once. With
	// every processor busy the word was seen 40ms late.
	coarseDoubt = 100 * time.Millisecond
)

// renew reads the exact clock and publishes it, unless the word is younger than
// age: refusals by the thousand then write it once. It returns the later of the
// two.
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
