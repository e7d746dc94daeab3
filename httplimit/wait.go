package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-go/weir/engine"
)

// defaultWaiting is how many requests wait at one time without [MaxWaiting].
const defaultWaiting = 1000

// MaxWaiting bounds how many requests wait for tokens at one time, of all limits with a MaxWait together; 1,000 without
// it. Further ones are refused at once, so that a flood of requests does not hold a flood of connections. most is 1 or
// more.
func MaxWaiting(most int) Option {
	return func(m *Middleware) error {
		if most < 1 {
			return fmt.Errorf("httplimit: MaxWaiting(%d): want 1 or more", most)
		}
		m.maxWaiting = int64(most)
		return nil
	}
}

// Pause sets what waits where a limit has a MaxWait; a timer without it. pause returns nil after the time, or the error
// of the context when that is done. It must be safe for concurrent use. It is for tests and for simulated time.
func Pause(pause func(context.Context, time.Duration) error) Option {
	return func(m *Middleware) error {
		if pause == nil {
			return errors.New("httplimit: Pause(nil): want a function that waits")
		}
		m.pause = pause
		return nil
	}
}

// Waiting returns how many requests wait for tokens now, of all limits with a MaxWait together.
func (m *Middleware) Waiting() int64 { return min(m.waiting.Load(), m.maxWaiting) } // one too many is about to leave

// mayWait reports whether the request may wait: it has a place among those that do, or takes one.
func (res *Result) mayWait() bool {
	if !res.queued {
		if res.queued = res.m.waiting.Add(1) <= res.m.maxWaiting; !res.queued {
			res.m.waiting.Add(-1)
		}
	}
	return res.queued
}

// leave gives the place up.
func (res *Result) leave() {
	if res.queued {
		res.queued = false
		res.m.waiting.Add(-1)
	}
}

// reserve takes tokens that the limiter has refused, d, ahead of their time. If another request was faster, and their
// time is too far away now, d stays as it is.
func (c *check) reserve(d *engine.Decision) {
	turn, delay, err := c.limit.lines.join(c.limit, c.key, c.n)
	if err != nil {
		return // it would be too long
	}
	c.turn = turn
	if delay == 0 || c.limit.Shadow { // they have come meanwhile, or are not waited for
		c.come()
	}
	d.Allowed, d.RetryAfter, d.ResetAfter = true, 0, d.ResetAfter+delay
}

// wait waits until all limits that are in force have their tokens. If the request ends before, it is refused and gives
// back what it can.
func (res *Result) wait(r *http.Request) bool {
	if !res.queued {
		return true
	}
	for {
		ctx, wake := context.WithCancel(r.Context())
		at, last := res.lastTurn(wake)
		if last < 0 {
			wake()
			return true
		}
		err := res.m.pause(ctx, time.Until(at))
		moved := ctx.Err() != nil && r.Context().Err() == nil
		wake()
		switch {
		case err == nil:
			res.come()
			return true
		case moved:
			continue
		}
		c := res.at(last)
		c.giveBack(r, res.m)
		c.decision.Allowed, c.decision.RetryAfter, c.outcome = false, max(time.Until(at), 1), Refused
		res.verdict = limited
		res.undo(r, last)
		return false
	}
}

// lastTurn returns the last turn of those that the request waits for, and its check; -1 if it waits for none. wake is
// called when a turn has moved.
func (res *Result) lastTurn(wake context.CancelFunc) (at time.Time, last int) {
	last = -1
	for i := range res.n {
		c := res.at(i)
		if c.turn == nil {
			continue
		}
		if t := c.limit.lines.when(c.turn, wake); last < 0 || t.After(at) {
			at, last = t, i
		}
	}
	return at, last
}

// come notes that the time of all tokens has come.
func (res *Result) come() {
	for i := range res.n {
		if c := res.at(i); c.turn != nil {
			c.come()
		}
	}
}

// come ends the turn of tokens whose time has come: there is a receipt for them now.
func (c *check) come() {
	c.limit.lines.pass(c.key, c.turn)
	c.receipt, c.turn = c.turn.ahead.Receipt(), nil
}

// giveBackLocal gives back what was taken from the limiter.
func (c *check) giveBackLocal() {
	if c.turn != nil {
		c.limit.lines.leave(c.key, c.turn)
		return
	}
	c.receipt.Refund(c.n)
}
