package engine

import (
	"fmt"
	"math/rand/v2"
)

// An Observer is told of refusals: see [Observe].
type Observer interface {
	// Refused is called in the goroutine of the request, so it should be quick. It is
	// safe to call the limiter from it.
	Refused(Refusal)
}

// A Refusal is a request that was refused.
type Refusal struct {
	Key Key    // of the request
	N   uint64 // tokens asked for
}

type observer struct {
	Observer
	every uint32
}

// Observe reports refusals to o: one in every, chosen at random, so that the keys that are
// refused most can be found without counting them all. every is 1 to 2^30; 1 reports all
// refusals. An admitted request costs the same with this option as without it.
//
// A Key is a hash: a program that wants to know the text keeps a map of the keys that it cares for, or
// counts where the text is at hand.
func Observe(o Observer, every int) Option {
	return func(c *config) error {
		if o == nil || every < 1 || every > 1<<30 {
			return fmt.Errorf("engine: Observe(%v, %d): want an observer and 1 to %d", o, every, 1<<30)
		}
		c.observer = &observer{o, uint32(every)}
		return nil
	}
}

func (o *observer) refused(k Key, n uint64) {
	if o.every == 1 || rand.Uint32N(o.every) == 0 {
		o.Refused(Refusal{k, n})
	}
}
