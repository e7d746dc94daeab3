package rpclimit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/pause"
)

// Limits are limits that calls are checked against together. Make them with [New]. All their methods are safe for
// concurrent use. Limits that New did not make refuse every call.
type Limits struct {
	limits     []Limit
	messages   bool // one of them counts messages
	skip       func(Call) bool
	onLimited  func(Call, Check)
	onError    func(limit string, err error)
	metrics    httplimit.Metrics
	jitter     time.Duration
	random     func() float64
	maxWaiting int64
	waiting    atomic.Int64 // calls that wait for tokens
	pause      func(context.Context, time.Duration) error
}

// defaultWaiting is how many calls wait at one time without [MaxWaiting].
const defaultWaiting = 1000

// An Option changes one thing about limits at [New].
type Option func(*Limits) error

// New checks limits. A call is held against those that match it, in this order, all or nothing: if one refuses, the
// others keep their tokens.
//
// The error of a bad limit or option names it and the reason.
func New(limits []Limit, options ...Option) (*Limits, error) {
	checked, err := newLimits(limits)
	if err != nil {
		return nil, err
	}
	l := &Limits{limits: checked, maxWaiting: defaultWaiting, pause: pause.For}
	for _, limit := range checked {
		l.messages = l.messages || limit.On == Messages
	}
	for i, option := range options {
		if option == nil {
			return nil, fmt.Errorf("rpclimit: New: option %d of %d is nil", i+1, len(options))
		}
		if err := option(l); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// CountMessages reports whether one of the limits counts messages, so that a front has to call [Limits.DecideMessage].
func (l *Limits) CountMessages() bool { return l != nil && l.messages }

// Skip exempts the calls for which skip returns true from all limits, their messages too: it is asked for each. See
// [HealthAndReflection].
func Skip(skip func(Call) bool) Option {
	return func(l *Limits) error {
		if skip == nil {
			return errors.New("rpclimit: Skip(nil): want a function that chooses calls")
		}
		l.skip = skip
		return nil
	}
}

// OnLimited has callback called for every limit that refuses a call or message, or would if it were not in shadow mode,
// in the goroutine of the call.
func OnLimited(callback func(Call, Check)) Option {
	return func(l *Limits) error {
		if callback == nil {
			return errors.New("rpclimit: OnLimited(nil): want a function")
		}
		l.onLimited = callback
		return nil
	}
}

// OnError has callback called with every error of [Limit].Quota.
func OnError(callback func(limit string, err error)) Option {
	return func(l *Limits) error {
		if callback == nil {
			return errors.New("rpclimit: OnError(nil): want a function")
		}
		l.onError = callback
		return nil
	}
}

// ObserveWith sets what counts outcomes; it may be that of HTTP requests. A limit that cannot be applied is observed as
// [httplimit.BackendFailed].
func ObserveWith(metrics httplimit.Metrics) Option {
	return func(l *Limits) error {
		if metrics == nil {
			return errors.New("rpclimit: ObserveWith(nil): want Metrics")
		}
		l.metrics = metrics
		return nil
	}
}

// RetryJitter adds up to most to the time that a refusal tells, so that clients that were refused together do not come
// back together. most is above 0 and up to 1h. random returns numbers in [0, 1) and must be safe for concurrent use;
// nil means that of math/rand/v2.
func RetryJitter(most time.Duration, random func() float64) Option {
	return func(l *Limits) error {
		if most <= 0 || most > time.Hour {
			return fmt.Errorf("rpclimit: RetryJitter(%v): want more than 0 and up to 1h", most)
		}
		if random == nil {
			random = rand.Float64
		}
		l.jitter, l.random = most, random
		return nil
	}
}

// MaxWaiting bounds how many calls and messages wait for tokens at one time, of all limits with a MaxWait together;
// 1,000 without it. Further ones are refused at once, so that a flood of calls does not hold a flood of streams. most
// is 1 or more.
func MaxWaiting(most int) Option {
	return func(l *Limits) error {
		if most < 1 {
			return fmt.Errorf("rpclimit: MaxWaiting(%d): want 1 or more", most)
		}
		l.maxWaiting = int64(most)
		return nil
	}
}

// Pause sets what waits where a limit has a MaxWait; a timer without it. pause returns nil after the time, or the error
// of the context when that is done. It must be safe for concurrent use. It is for tests and for simulated time.
func Pause(pause func(context.Context, time.Duration) error) Option {
	return func(l *Limits) error {
		if pause == nil {
			return errors.New("rpclimit: Pause(nil): want a function that waits")
		}
		l.pause = pause
		return nil
	}
}
