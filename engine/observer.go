package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

type observer struct {
	onRefusal func(k Key, n uint64)
	oneIn     uint32
}

// Observe makes the limiter call the function onRefusal for refused requests, with the key and the number of tokens
// requested. It is called for one in oneIn refusals on average, chosen at random; oneIn is 1 to 2^30. So a program can
// find the keys that are refused most. An admitted request costs the same as without this option.
//
// The function runs in the goroutine of the request. It must be quick and safe for concurrent use, and may call the
// limiter. A Key is a hash, so a program that needs the text must keep it itself.
func Observe(onRefusal func(k Key, n uint64), oneIn int) Option {
	return func(c *config) error {
		if onRefusal == nil {
			return errors.New("engine: Observe(nil): want a function")
		}
		if oneIn < 1 || oneIn > 1<<30 {
			return fmt.Errorf("engine: Observe of one in %d: want 1 to %d", oneIn, 1<<30)
		}
		c.observer = &observer{onRefusal, uint32(oneIn)}
		return nil
	}
}

func (o *observer) observe(k Key, n uint64) {
	if o.oneIn == 1 || rand.Uint32N(o.oneIn) == 0 {
		o.onRefusal(k, n)
	}
}
