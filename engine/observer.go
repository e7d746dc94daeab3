package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

type observer struct {
	refused func(k Key, n uint64)
	every   uint32
}

// Observe makes the limiter call a function for refused requests, with the key and the number of tokens requested. The
// argument every is a number from 1 to 2^30: the function is called for one of that many refusals on average, chosen at
// random. So a program can find the keys that are refused most. An admitted request costs the same as without this
// option.
//
// The function runs in the goroutine of the request. It must be quick and safe for concurrent use, and may call the
// limiter. A Key is a hash, so a program that needs the text must keep it itself.
func Observe(refused func(k Key, n uint64), every int) Option {
	return func(c *config) error {
		if refused == nil {
			return errors.New("engine: Observe(nil): want a function")
		}
		if every < 1 || every > 1<<30 {
			return fmt.Errorf("engine: Observe of one in %d: want 1 to %d", every, 1<<30)
		}
		c.observer = &observer{refused, uint32(every)}
		return nil
	}
}

func (o *observer) observe(k Key, n uint64) {
	if o.every == 1 || rand.Uint32N(o.every) == 0 {
		o.refused(k, n)
	}
}
