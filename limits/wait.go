package limits

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/engine"
)

// waiting is how long a request has waited for limits that are asked again, and when to ask next; 0 for not at all.
type waiting struct{ waited, again time.Duration }

// enforce takes from the limits that are not in shadow mode, waits where it may, and reports whether all of them admit
// the request.
func (res *Result[R]) enforce(ctx context.Context) bool {
	var w waiting
	for !res.attempt(ctx, &w) {
		if w.again == 0 {
			return false
		}
		if err := res.set.options.Pause(ctx, w.again); err != nil {
			res.verdict, res.err = Ended, err
			return false
		}
		w.waited, w.again = w.waited+w.again, 0
		res.verdict = Admitted
		for i := range res.n {
			c := res.at(i)
			c.Outcome, c.answered = NotTaken, false
		}
	}
	return !res.queued || res.wait(ctx)
}

// mayWait reports whether the request may wait for the check's key: it has a place among those that do, or takes one,
// and the key has not its share of them already.
func (res *Result[R]) mayWait(c *Check[R]) bool {
	if !res.queued {
		if res.queued = res.set.waiting.Add(1) <= int64(res.set.options.MaxWaiting); !res.queued {
			res.set.waiting.Add(-1)
		}
	}
	if res.queued && !c.waits {
		c.waits = res.set.waiters.add(waiter{c.limit.index, c.key})
	}
	return c.waits
}

// leave gives the place up.
func (res *Result[R]) leave() {
	if !res.queued {
		return
	}
	res.queued = false
	res.set.waiting.Add(-1)
	for i := range res.n {
		if c := res.at(i); c.waits {
			c.waits = false
			res.set.waiters.remove(waiter{c.limit.index, c.key})
		}
	}
}

// reserve takes tokens that the limiter has refused ahead of their time, if that is soon enough and the request may
// wait. Of an algorithm that takes nothing ahead it notes when to ask again. A limit in shadow mode does not wait.
func (res *Result[R]) reserve(ctx context.Context, c *Check[R], w *waiting) {
	l, longest := c.limit, c.limit.MaxWait
	if w != nil {
		longest -= w.waited
	}
	if deadline, ok := ctx.Deadline(); ok {
		longest = min(longest, time.Until(deadline))
	}
	if c.Decision.RetryAfter > longest || c.Never() || !l.Shadow && !res.mayWait(c) {
		return
	}
	turn, err := l.Limiter.QueueKey(c.key, c.N, longest)
	switch {
	case errors.Is(err, engine.ErrNotTokenBucket):
		if w != nil {
			w.again = c.Decision.RetryAfter
		}
		return
	case err != nil:
		return // another request was faster, and the tokens are too far away now
	}
	c.turn = turn
	delay := turn.Delay()
	if delay == 0 || l.Shadow { // they have come meanwhile, or are not waited for
		c.come()
	}
	c.Decision.Allowed, c.Decision.RetryAfter, c.Decision.ResetAfter = true, 0, c.Decision.ResetAfter+delay
}

// wait waits until all limits have their tokens. If the request ends before, it is refused and gives back what it can.
func (res *Result[R]) wait(ctx context.Context) bool {
	for {
		moved, wake := context.WithCancel(ctx)
		delay, last := res.lastTurn(wake)
		if last < 0 {
			wake()
			return true
		}
		err := res.set.options.Pause(moved, delay)
		again := moved.Err() != nil && ctx.Err() == nil
		wake()
		switch {
		case err == nil:
			for i := range res.n {
				if c := res.at(i); c.turn != nil {
					c.come()
				}
			}
			return true
		case again:
			continue
		}
		c := res.at(last)
		left := c.turn.Until(nil)
		c.giveBack()
		c.Decision.Allowed, c.Decision.RetryAfter, c.Outcome = false, max(left, 1), Refused
		res.verdict, res.err = Ended, err
		res.undo(ctx, last)
		return false
	}
}

// lastTurn returns the last turn of those that the request waits for: the time until then, and its check; -1 if it
// waits for none. wake is called when a turn has moved.
func (res *Result[R]) lastTurn(wake context.CancelFunc) (delay time.Duration, last int) {
	last = -1
	for i := range res.n {
		c := res.at(i)
		if c.turn == nil {
			continue
		}
		if d := c.turn.Until(wake); last < 0 || d > delay {
			delay, last = d, i
		}
	}
	return delay, last
}

// come ends the turn of tokens whose time has come: there is a receipt for them now.
func (c *Check[R]) come() {
	c.receipt, c.turn = c.turn.Come(), nil
}
