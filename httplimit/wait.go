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
	ahead, err := c.limit.Limiter.ReserveKey(c.key, c.n, c.limit.MaxWait)
	if err != nil {
		return // it would be too long
	}
	c.ahead = ahead
	d.Allowed, d.RetryAfter, d.ResetAfter = true, 0, d.ResetAfter+ahead.Delay()
}

// wait waits until all limits that are in force have their tokens. If the request ends before, it is refused and gives
// back what it can.
func (res *Result) wait(r *http.Request) bool {
	longest, last := time.Duration(0), -1
	for i := range res.n {
		if c := res.at(i); c.ahead != nil && !c.limit.Shadow && c.ahead.Delay() > longest {
			longest, last = c.ahead.Delay(), i
		}
	}
	if last < 0 {
		return true
	}
	if res.m.pause(r.Context(), longest) == nil {
		res.come()
		return true
	}
	c := res.at(last)
	c.giveBack(r, res.m)
	c.decision.Allowed, c.decision.RetryAfter, c.outcome = false, longest, Refused
	res.verdict = limited
	res.undo(r, last)
	return false
}

// come notes that the time of all tokens has come.
func (res *Result) come() {
	for i := range res.n {
		res.at(i).waited = true
	}
}

// giveBackLocal gives back what was taken from the limiter. Of tokens that were waited for there is no receipt: they go
// back as tokens of the key.
func (c *check) giveBackLocal() {
	switch {
	case c.ahead == nil:
		c.receipt.Refund(c.n)
	case c.waited:
		c.limit.Limiter.RefundKey(c.key, c.n)
	default:
		c.ahead.Cancel()
	}
}

// sleep waits for a time or until the context is done.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
