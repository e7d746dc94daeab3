package reference

import (
	"math"
	"time"
)

// A Concurrency has the tokens that one key has in flight. Tokens that enter in one period of the clock are forgotten
// at the end of the next period. A Concurrency is a plain value, so equal states compare equal.
type Concurrency struct {
	limit  uint64
	length int64
	period int64  // number, since 1970, of the period in which tokens entered last
	older  uint64 // tokens that entered in the period with the number period-1 and have not left
	newer  uint64 // tokens that entered in the period with the number period and have not left
}

// NewConcurrency returns a Concurrency with nothing in flight.
func NewConcurrency(limit uint64, length time.Duration) *Concurrency {
	return &Concurrency{limit: limit, length: int64(length)}
}

// stateAt returns the state at an instant. If c's period begins after the instant, it returns the state at the
// beginning of this period.
func (c *Concurrency) stateAt(nanos int64) Concurrency {
	state := *c
	for state.period < nanos/c.length && state.older+state.newer > 0 {
		state.period, state.older, state.newer = state.period+1, state.newer, 0
	}
	state.period = max(state.period, nanos/c.length)
	return state
}

// InFlight returns how many tokens are in flight.
func (c *Concurrency) InFlight(nanos int64) uint64 {
	state := c.stateAt(nanos)
	return state.older + state.newer
}

// Take lets n tokens enter if the limit allows it.
func (c *Concurrency) Take(nanos int64, n uint64) bool {
	inFlight := c.InFlight(nanos)
	if inFlight > c.limit || n > c.limit-inFlight {
		return false
	}
	c.enter(nanos, n)
	return true
}

func (c *Concurrency) enter(nanos int64, n uint64) {
	*c = c.stateAt(nanos)
	c.newer += n
}

// Period returns the number of the period in which tokens entered last.
func (c *Concurrency) Period() int64 { return c.period }

// Leave removes n tokens that entered in the given period.
func (c *Concurrency) Leave(period int64, n uint64) {
	switch period {
	case c.period:
		c.newer -= min(n, c.newer)
	case c.period - 1:
		c.older -= min(n, c.older)
	}
}

// Remaining returns how many tokens may enter.
func (c *Concurrency) Remaining(nanos int64) uint64 {
	return c.limit - min(c.InFlight(nanos), c.limit)
}

// RetryAfter returns how long it takes until n tokens may enter, if no token leaves.
func (c *Concurrency) RetryAfter(nanos int64, n uint64) int64 {
	if n > c.limit {
		return math.MaxInt64
	}
	return c.waitFor(nanos, c.limit-n)
}

// ResetAfter returns how long it takes until everything in flight is forgotten, if no token leaves.
func (c *Concurrency) ResetAfter(nanos int64) int64 { return c.waitFor(nanos, 0) }

// waitFor returns how long it takes until at most maxTokens tokens are in flight, if no token leaves. The wait is 0, or
// it ends when a period ends.
func (c *Concurrency) waitFor(nanos int64, maxTokens uint64) int64 {
	for at := nanos; ; at = (at/c.length + 1) * c.length {
		if c.InFlight(at) <= maxTokens {
			return at - nanos
		}
	}
}

// Refund removes n tokens, first those that will be forgotten first.
func (c *Concurrency) Refund(nanos int64, n uint64) {
	switch passed := nanos/c.length - c.period; {
	case passed > 1: // older and newer are forgotten
	case passed == 1: // older is forgotten
		c.newer -= min(n, c.newer)
	default:
		older := min(n, c.older)
		c.older, c.newer = c.older-older, c.newer-min(n-older, c.newer)
	}
}

// Reset removes everything in flight.
func (c *Concurrency) Reset() { *c = Concurrency{limit: c.limit, length: c.length} }

// Idle reports whether nothing is in flight.
func (c *Concurrency) Idle(nanos int64) bool { return c.InFlight(nanos) == 0 }

// Change returns the same state under another limit.
func (c *Concurrency) Change(limit uint64) *Concurrency {
	to := *c
	to.limit = limit
	return &to
}

// Charge lets up to n tokens enter, even above the limit, as long as the number of tokens in flight is at most bound.
func (c *Concurrency) Charge(nanos int64, n, bound uint64) uint64 {
	charged := maxCharge(n, c.InFlight(nanos), bound)
	if charged > 0 {
		c.enter(nanos, charged)
	}
	return charged
}
