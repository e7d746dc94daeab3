package rpclimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/limits/spec"
)

// Limits are limits that calls are checked against together. Make them with [New]. All their methods are safe for
// concurrent use. Limits that New did not make refuse every call.
type Limits struct {
	set      *limits.Set[Call]
	messages []Limit // those that count messages
	options  limits.Options[Call]
}

// A Limit is one of the limits of [Limits]: see [limits.Limit]. Name and one of Limiter, Spread and Source must be set;
// a nil Key is [Peer] without a Spread.
//
// The outcome that Refund gets is the status code of the call: see [RefundCodes]. Refund is not called, and nothing is
// given back, if the call's context is done by then: a client could otherwise get its tokens back by going away. A
// deadline that a client sets may end the call before the server's context is done. So give back only for codes that a
// client cannot bring about.
type Limit = limits.Limit[Call]

// A Check is what one limit did to a call or message: see [limits.Check].
type Check = limits.Check[Call]

// An Option changes one thing about limits at [New].
type Option func(*Limits) error

// New checks limits of calls: a stream is one call. A call is held against those that match it, in this order, all or
// nothing: if one refuses, the others keep their tokens. [Messages] adds limits that count messages.
//
// The error of a bad limit or option names it and the reason.
func New(calls []Limit, options ...Option) (*Limits, error) {
	l := &Limits{}
	for i, option := range options {
		if option == nil {
			return nil, fmt.Errorf("rpclimit: New: option %d of %d is nil", i+1, len(options))
		}
		if err := option(l); err != nil {
			return nil, err
		}
	}
	list := make([]Limit, 0, len(calls)+len(l.messages))
	for _, limit := range calls {
		list = append(list, of(limit, countsCalls))
	}
	for _, limit := range l.messages {
		if err := checkMessages(&limit); err != nil {
			return nil, fmt.Errorf("rpclimit: New: limit %q: %w", limit.Name, err)
		}
		list = append(list, of(limit, countsMessages))
	}
	var err error
	if l.set, err = limits.New(list, l.options); err != nil {
		return nil, fmt.Errorf("rpclimit: %w", err)
	}
	return l, nil
}

// of returns a limit that is for calls or for messages only.
func of(l Limit, counts phase) Limit {
	match := l.Match
	l.Match = func(c Call) bool { return c.phase&counts != 0 && (match == nil || match(c)) }
	if l.Key == nil && l.Spread == nil {
		l.Key = Peer
	}
	return l
}

// checkMessages returns what a limit of messages cannot have.
func checkMessages(l *Limit) error {
	switch {
	case l.Limiter != nil && l.Limiter.Algorithm() == engine.AlgorithmConcurrency,
		l.Source != nil && l.Source.Policy().Algorithm() == engine.AlgorithmConcurrency:
		return errors.New("nothing tells when a message is over, but it is on messages and a limit of what is in flight")
	case l.Hold:
		return errors.New("a message has no handler that settles, but Hold is set")
	case l.Refund != nil:
		return errors.New("a message ends with no status, but Refund is set")
	}
	return nil
}

// Messages adds limits that count every request message: the only one of a unary call as well as each of a stream. A
// stream whose message is refused ends. They cannot be limits of what is in flight, and have no Hold and no Refund.
func Messages(messages ...Limit) Option {
	return func(l *Limits) error {
		l.messages = append(l.messages, messages...)
		return nil
	}
}

// CountMessages reports whether one of the limits counts messages, so that a front has to call [Limits.DecideMessage].
func (l *Limits) CountMessages() bool { return l != nil && len(l.messages) > 0 }

// Skip exempts the calls for which skip returns true from all limits, their messages too: it is asked for each. See
// [HealthAndReflection].
func Skip(skip func(Call) bool) Option {
	return func(l *Limits) error {
		if skip == nil {
			return errors.New("rpclimit: Skip(nil): want a function that chooses calls")
		}
		l.options.Skip = skip
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
		l.options.OnLimited = callback
		return nil
	}
}

// OnError has callback called with every error of a [limits.Source], and with those of a limit's Quota.
func OnError(callback func(limit string, err error)) Option {
	return func(l *Limits) error {
		if callback == nil {
			return errors.New("rpclimit: OnError(nil): want a function")
		}
		l.options.OnError = callback
		return nil
	}
}

// ObserveWith sets what counts outcomes; it may be that of HTTP requests. A limit that cannot be applied is observed as
// [limits.Failed].
func ObserveWith(metrics limits.Metrics) Option {
	return func(l *Limits) error {
		if metrics == nil {
			return errors.New("rpclimit: ObserveWith(nil): want limits.Metrics")
		}
		l.options.Metrics = metrics
		return nil
	}
}

// RetryJitter adds up to most to the time that a refusal tells, so that clients that were refused together do not come
// back together. most is above 0 and up to 1h. random returns numbers in [0, 1) and must be safe for concurrent use;
// nil means that of math/rand/v2.
func RetryJitter(most time.Duration, random func() float64) Option {
	return func(l *Limits) error {
		if most <= 0 || most > spec.MaxJitter {
			return fmt.Errorf("rpclimit: RetryJitter(%v): want more than 0 and up to %v", most, spec.MaxJitter)
		}
		l.options.Jitter, l.options.Random = most, random
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
		l.options.MaxWaiting = most
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
		l.options.Pause = pause
		return nil
	}
}

// Decide checks a call against the limits: when a stream opens, or of a unary call with its message. A front ends a
// refused call with [Result.Code], and an admitted one by [Result.Finish] if it is [limits.Result.Refundable] or in
// flight ([limits.Result.InFlight]).
//
// It waits for tokens where a limit has a MaxWait. What it allocates, [limits.Set.Decide] says.
func (l *Limits) Decide(c Call) (res Result) {
	c.phase = countsCalls
	if !c.Stream {
		c.phase |= countsMessages
	}
	l.decide(&res, c)
	return res
}

// DecideMessage checks a message of a stream against the limits that count messages.
func (l *Limits) DecideMessage(c Call) (res Result) {
	c.phase = countsMessages
	l.decide(&res, c)
	return res
}

func (l *Limits) decide(res *Result, c Call) {
	if c.Context == nil {
		c.Context = context.Background()
	}
	res.call = c
	if l == nil || l.set == nil {
		res.unmade = true
		return
	}
	l.set.DecideInto(&res.Result, c.Context, c)
}

// Waiting returns how many calls and messages wait for tokens now, of all limits with a MaxWait together.
func (l *Limits) Waiting() int64 {
	if l == nil || l.set == nil {
		return 0
	}
	return l.set.Waiting()
}
