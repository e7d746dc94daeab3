package limits

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/engine"
)

// waiting says what a request waits for.
type waiting struct {
	waited time.Duration // how long the request has waited so far
	on     number        // the refusing check with the longest wait for which the request may wait
	turn   number        // the check whose turn has come, so that the request has the tokens of this check
}

// A number is the index of a check plus 1.
type number int

const none number = 0

// enforce takes from the limits that are not in shadow mode, and waits if a limit with a MaxWait refuses.
//
// While a request waits for one limit, it has no tokens of other limits. Otherwise more requests could pass at one time
// than a limit admits.
func (res *Result[R]) enforce(ctx context.Context) bool {
	var w waiting
	for !res.attempt(ctx, &w) {
		if res.verdict != Admitted || !res.wait(ctx, &w) {
			return false
		}
	}
	if w.turn != none {
		res.at(int(w.turn) - 1).come()
	}
	return true
}

// patient reports whether the request may wait for the i-th check. The check with the longest wait becomes w.on.
func (res *Result[R]) patient(ctx context.Context, i int, w *waiting) bool {
	c := res.at(i)
	if c.limit.MaxWait == 0 {
		return false
	}
	if _, ok := c.patience(ctx, w.waited); !ok {
		return false
	}
	if c.Outcome = NotTaken; w.on == none || c.Decision.RetryAfter > res.at(int(w.on)-1).Decision.RetryAfter {
		w.on = number(i + 1)
	}
	return true
}

// patience returns how much longer the request may wait for the check's tokens, or false if they come too late.
func (c *Check[R]) patience(ctx context.Context, waited time.Duration) (longest time.Duration, ok bool) {
	longest = c.limit.MaxWait - waited
	if deadline, has := ctx.Deadline(); has {
		longest = min(longest, time.Until(deadline))
	}
	return longest, c.Decision.RetryAfter <= longest && !c.Never()
}

// yield gives everything back before a wait, except places in flight.
func (res *Result[R]) yield(ctx context.Context, w *waiting) {
	w.turn = none
	res.giveBackAll(ctx, true)
	for i := range res.n {
		if c := res.at(i); c.taken == nowhere {
			c.Outcome, c.answered = NotTaken, false
		}
	}
}

// mayWait gives the request a place to wait for the check's key, and returns false if it has none.
func (res *Result[R]) mayWait(c *Check[R]) bool {
	if !res.queued {
		if res.queued = res.set.waiting.Add(1) <= int64(res.set.options.MaxWaiting); !res.queued {
			res.set.waiting.Add(-1)
		}
	}
	c.waits = res.queued && res.set.waiters.add(waiter{c.limit.index, c.key})
	return c.waits
}

// waitsNoMore ends the count that mayWait began.
func (res *Result[R]) waitsNoMore(c *Check[R]) {
	if c.waits {
		c.waits = false
		res.set.waiters.remove(waiter{c.limit.index, c.key})
	}
}

func (res *Result[R]) leave() {
	if !res.queued {
		return
	}
	res.queued = false
	res.set.waiting.Add(-1)
	for i := range res.n {
		res.waitsNoMore(res.at(i))
	}
}

// wait waits for the limit w.on. If it returns false, the request is refused.
func (res *Result[R]) wait(ctx context.Context, w *waiting) bool {
	i := int(w.on) - 1
	w.on = none
	c := res.at(i)
	longest, _ := c.patience(ctx, w.waited)
	if !res.mayWait(c) {
		return res.refuse(ctx, i, Limited)
	}
	turn, _, err := c.limit.Limiter.Queue(c.key, c.N, longest)
	switch {
	case errors.Is(err, engine.ErrNotTokenBucket):
		err = res.set.options.Pause(ctx, c.Decision.RetryAfter)
		w.waited += c.Decision.RetryAfter
	case err != nil: // another request was faster, so the tokens now come too late
		return res.refuse(ctx, i, Limited)
	default:
		c.turn, c.taken, w.turn = turn, memory, number(i+1)
		if err = res.inTurn(ctx, c, w); err != nil {
			c.Decision.RetryAfter = max(c.turn.Until(nil), 1)
			break
		}
		c.Decision = c.peek()
		c.Decision.Allowed, c.Decision.RetryAfter, c.Outcome, c.answered = true, 0, Allowed, true
	}
	res.waitsNoMore(c)
	if err != nil {
		res.err = err
		return res.refuse(ctx, i, Ended)
	}
	return true
}

func (res *Result[R]) inTurn(ctx context.Context, c *Check[R], w *waiting) error {
	for {
		moved, wake := context.WithCancel(ctx)
		began, delay := time.Now(), c.turn.Until(wake)
		if delay <= 0 {
			wake()
			return ctx.Err()
		}
		err := res.set.options.Pause(moved, delay)
		again := moved.Err() != nil && ctx.Err() == nil
		wake()
		if err == nil {
			w.waited += delay
			return nil
		}
		if w.waited += min(time.Since(began), delay); !again {
			return err
		}
	}
}

// refuse refuses the request because of the i-th check, and gives everything back. It returns false.
func (res *Result[R]) refuse(ctx context.Context, i int, v Verdict) bool {
	res.verdict = v
	c := res.at(i)
	c.Decision.Allowed, c.Outcome, c.answered = false, Refused, true
	res.undo(ctx, i)
	return false
}

func (c *Check[R]) come() {
	c.receipt, c.turn = c.turn.Come(), nil
}

// takeAhead takes tokens in advance from a limit in shadow mode, if a request could wait for them.
func (c *Check[R]) takeAhead(ctx context.Context) {
	longest, ok := c.patience(ctx, 0)
	if !ok {
		return
	}
	turn, delay, err := c.limit.Limiter.Queue(c.key, c.N, longest)
	if err != nil { // another algorithm, or another request was faster
		return
	}
	c.turn = turn
	c.come()
	c.Decision.Allowed, c.Decision.RetryAfter, c.Decision.ResetAfter = true, 0, c.Decision.ResetAfter+delay
}
