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

// Observe makes the limiter call the function refused for refused requests. The arguments of this function are the key
// of the request and the number of tokens that it requested. The parameter every is 1 to 2^30. On average, the limiter
// calls the function for one of that many refusals, which it chooses at random. If the parameter every is 1, it calls
// the function for each refusal. So a program can find the keys that are refused most without counting all refusals.
// The option does not change the cost of an admitted request.
//
// The function refused runs in the goroutine of the request, so it should be quick. It must be safe for concurrent use,
// and may call the limiter. A Key is a hash. A program that needs the text of a key can keep a map of the keys that it
// cares about, or count refusals in the code that has the text.
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
