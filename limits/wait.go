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
	check  checkNumber   // the refusing check with the longest wait for which the request may wait
	turn   checkNumber   // the check whose turn has come, so that the request has the tokens of this check
}

// A checkNumber is the index of a check plus 1.
type checkNumber int

const noCheck checkNumber = 0

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
	if w.turn != noCheck {
		res.at(int(w.turn) - 1).endTurn()
	}
	return true
}

// mayWaitFor reports whether the request may wait for the i-th check. The check with the longest wait becomes w.check.
func (res *Result[R]) mayWaitFor(ctx context.Context, i int, w *waiting) bool {
	c := res.at(i)
	if c.limit.MaxWait == 0 {
		return false
	}
	if _, ok := c.remainingWait(ctx, w.waited); !ok {
		return false
	}
	if c.Outcome = NotTaken; w.check == noCheck || c.Decision.RetryAfter > res.at(int(w.check)-1).Decision.RetryAfter {
		w.check = checkNumber(i + 1)
	}
	return true
}

// remainingWait returns how much longer the request may wait for the check's tokens, or false if they come too late.
func (c *Check[R]) remainingWait(ctx context.Context, waited time.Duration) (maxWait time.Duration, ok bool) {
	maxWait = c.limit.MaxWait - waited
	if deadline, hasDeadline := ctx.Deadline(); hasDeadline {
		maxWait = min(maxWait, time.Until(deadline))
	}
	return maxWait, c.Decision.RetryAfter <= maxWait && !c.Never()
}

// yield gives everything back before a wait, except places in flight.
func (res *Result[R]) yield(ctx context.Context, w *waiting) {
	w.turn = noCheck
	res.giveBackAll(ctx, true)
	for i := range res.n {
		if c := res.at(i); c.takenFrom == nowhere {
			c.Outcome, c.answered = NotTaken, false
		}
	}
}

// startWaiting gives the request a place to wait for the check's key, and returns false if it has none.
func (res *Result[R]) startWaiting(c *Check[R]) bool {
	if !res.isQueued {
		if res.isQueued = res.set.waiting.Add(1) <= int64(res.set.options.MaxWaiting); !res.isQueued {
			res.set.waiting.Add(-1)
		}
	}
	c.isWaiting = res.isQueued && res.set.waiters.add(waiter{c.limit.index, c.key})
	return c.isWaiting
}

// endWaiting removes the request from the waiting requests of the check's key.
func (res *Result[R]) endWaiting(c *Check[R]) {
	if c.isWaiting {
		c.isWaiting = false
		res.set.waiters.remove(waiter{c.limit.index, c.key})
	}
}

func (res *Result[R]) leave() {
	if !res.isQueued {
		return
	}
	res.isQueued = false
	res.set.waiting.Add(-1)
	for i := range res.n {
		res.endWaiting(res.at(i))
	}
}

// wait waits for the limit of w.check. If it returns false, the request is refused.
func (res *Result[R]) wait(ctx context.Context, w *waiting) bool {
	i := int(w.check) - 1
	w.check = noCheck
	c := res.at(i)
	maxWait, _ := c.remainingWait(ctx, w.waited)
	if !res.startWaiting(c) {
		return res.refuse(ctx, i, Limited)
	}
	turn, _, err := c.limit.Limiter.Queue(c.key, c.N, maxWait)
	switch {
	case errors.Is(err, engine.ErrNotTokenBucket):
		err = res.set.options.Pause(ctx, c.Decision.RetryAfter)
		w.waited += c.Decision.RetryAfter
	case err != nil: // another request was faster, so the tokens now come too late
		return res.refuse(ctx, i, Limited)
	default:
		c.turn, c.takenFrom, w.turn = turn, memory, checkNumber(i+1)
		if err = res.waitTurn(ctx, c, w); err != nil {
			c.Decision.RetryAfter = max(c.turn.Until(nil), 1)
			break
		}
		c.Decision = c.peek()
		c.Decision.Allowed, c.Decision.RetryAfter, c.Outcome, c.answered = true, 0, Allowed, true
	}
	res.endWaiting(c)
	if err != nil {
		res.err = err
		return res.refuse(ctx, i, Ended)
	}
	return true
}

func (res *Result[R]) waitTurn(ctx context.Context, c *Check[R], w *waiting) error {
	for {
		waitCtx, wake := context.WithCancel(ctx)
		start, delay := time.Now(), c.turn.Until(wake)
		if delay <= 0 {
			wake()
			return ctx.Err()
		}
		err := res.set.options.Pause(waitCtx, delay)
		isWoken := waitCtx.Err() != nil && ctx.Err() == nil
		wake()
		if err == nil {
			w.waited += delay
			return nil
		}
		if w.waited += min(time.Since(start), delay); !isWoken {
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

func (c *Check[R]) endTurn() {
	c.receipt, c.turn = c.turn.Come(), nil
}

// takeAhead takes tokens in advance from a limit in shadow mode, if a request could wait for them.
func (c *Check[R]) takeAhead(ctx context.Context) {
	maxWait, ok := c.remainingWait(ctx, 0)
	if !ok {
		return
	}
	turn, delay, err := c.limit.Limiter.Queue(c.key, c.N, maxWait)
	if err != nil { // another algorithm, or another request was faster
		return
	}
	c.turn = turn
	c.endTurn()
	c.Decision.Allowed, c.Decision.RetryAfter, c.Decision.ResetAfter = true, 0, c.Decision.ResetAfter+delay
}
