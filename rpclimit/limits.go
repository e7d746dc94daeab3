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

// Limits checks each call against several limits together. Make it with [New]; otherwise it refuses every call. All
// methods are safe for concurrent use.
type Limits struct {
	set      *limits.Set[Call]
	messages []Limit // the limits that count messages
	options  limits.Options[Call]
}

// A Limit is one of the limits of [Limits]: see [limits.Limit]. Name and one of Limiter, Spread and Source must be set.
// A nil Key means [Peer], unless Spread is set.
//
// Refund gets the status code of the call: see [RefundCodes]. If the call's context is done when the call ends, Refund
// is not called and nothing is given back. So a client does not get tokens back by going away. But a deadline that the
// client sets may end the call before the server's context is done. So give tokens back only for codes that a client
// cannot cause.
type Limit = limits.Limit[Call]

// A Check has the effect of one limit on a call or message: see [limits.Check].
type Check = limits.Check[Call]

// An Option for [New] changes one thing about the limits.
type Option func(*Limits) error

// New returns limits of calls. A stream counts as one call; [Messages] adds limits that count messages. The limits that
// match a call are checked in the order of the list. If one limit refuses, nothing is taken from the other limits. An
// error names the bad limit or option.
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
		list = append(list, forPhase(limit, countsCalls))
	}
	for _, limit := range l.messages {
		if err := checkMessages(&limit); err != nil {
			return nil, fmt.Errorf("rpclimit: New: limit %q: %w", limit.Name, err)
		}
		list = append(list, forPhase(limit, countsMessages))
	}
	var err error
	if l.set, err = limits.New(list, l.options); err != nil {
		return nil, fmt.Errorf("rpclimit: %w", err)
	}
	return l, nil
}

// forPhase returns a copy of a limit that applies only to calls, or only to messages.
func forPhase(l Limit, counts phase) Limit {
	match := l.Match
	l.Match = func(c Call) bool { return c.phase&counts != 0 && (match == nil || match(c)) }
	if l.Key == nil && l.Spread == nil {
		l.Key = Peer
	}
	return l
}

func checkMessages(l *Limit) error {
	switch {
	case l.Limiter != nil && l.Limiter.Algorithm() == engine.AlgorithmConcurrency,
		l.Source != nil && l.Source.Policy().Algorithm() == engine.AlgorithmConcurrency:
		return errors.New("it counts messages in flight, but the end of a message is not known")
	case l.Hold:
		return errors.New("the field Hold is set, but a message has no handler that could settle")
	case l.Refund != nil:
		return errors.New("the field Refund is set, but a message ends without a status")
	}
	return nil
}

// Messages adds limits that count every request message. A unary call has one message, and a stream has any number. A
// refused message ends its stream. These limits cannot count calls in flight, and cannot have Hold or Refund.
func Messages(messages ...Limit) Option {
	return func(l *Limits) error {
		l.messages = append(l.messages, messages...)
		return nil
	}
}

// CountMessages reports whether one of the limits counts messages. If so, a front must call [Limits.DecideMessage].
func (l *Limits) CountMessages() bool { return l != nil && len(l.messages) > 0 }

// Skip sets a function that returns true for calls to which no limit applies. The function is called for each message,
// too. See [HealthAndReflection].
func Skip(skip func(Call) bool) Option {
	return func(l *Limits) error {
		if skip == nil {
			return errors.New("rpclimit: Skip(nil): want a function that chooses calls")
		}
		l.options.Skip = skip
		return nil
	}
}

// OnLimited sets a callback for refusals. It is called for every limit that refuses a call or message, or that would
// refuse it outside of shadow mode. It runs in the goroutine of the call.
func OnLimited(callback func(Call, Check)) Option {
	return func(l *Limits) error {
		if callback == nil {
			return errors.New("rpclimit: OnLimited(nil): want a function")
		}
		l.options.OnLimited = callback
		return nil
	}
}

// OnError sets a callback. It is called for every error of a [limits.Source] and of a limit's Quota.
func OnError(callback func(limit string, err error)) Option {
	return func(l *Limits) error {
		if callback == nil {
			return errors.New("rpclimit: OnError(nil): want a function")
		}
		l.options.OnError = callback
		return nil
	}
}

// ObserveWith sets the metrics that count outcomes. HTTP requests may use the same metrics. A limit that cannot be
// applied counts as [limits.Failed].
func ObserveWith(metrics limits.Metrics) Option {
	return func(l *Limits) error {
		if metrics == nil {
			return errors.New("rpclimit: ObserveWith(nil): want limits.Metrics")
		}
		l.options.Metrics = metrics
		return nil
	}
}

// RetryJitter adds a random time to the retry time of refusals. So clients that were refused together do not return
// together. The argument maxJitter is the longest added time, above 0 and up to 1h. The function random returns numbers
// in [0, 1) and must be safe for concurrent use. If it is nil, math/rand/v2 is used.
func RetryJitter(maxJitter time.Duration, random func() float64) Option {
	return func(l *Limits) error {
		if maxJitter <= 0 || maxJitter > spec.MaxJitter {
			return fmt.Errorf("rpclimit: RetryJitter(%v): want more than 0 and up to %v", maxJitter, spec.MaxJitter)
		}
		l.options.Jitter, l.options.Random = maxJitter, random
		return nil
	}
}

// MaxWaiting sets how many calls and messages may wait for tokens at once, for all limits with a MaxWait together. The
// number n is 1 or more, and the default is 1,000. Any further call or message that would have to wait is refused at
// once, so that a flood does not occupy many streams.
func MaxWaiting(n int) Option {
	return func(l *Limits) error {
		if n < 1 {
			return fmt.Errorf("rpclimit: MaxWaiting(%d): want 1 or more", n)
		}
		l.options.MaxWaiting = n
		return nil
	}
}

// Pause is for tests and simulated time: it replaces the timer with which a call waits for a limit with a MaxWait. The
// function pause returns nil when the duration has passed. If the context is done before, pause returns the context's
// error. It must be safe for concurrent use.
func Pause(pause func(context.Context, time.Duration) error) Option {
	return func(l *Limits) error {
		if pause == nil {
			return errors.New("rpclimit: Pause(nil): want a function that waits")
		}
		l.options.Pause = pause
		return nil
	}
}

// Decide checks a call against the limits. A stream is checked when it opens. A unary call is checked once, together
// with its message. If a limit has a MaxWait, Decide waits for tokens. For when a decision allocates, see
// [limits.Set.Decide].
//
// A front must end a refused call with [Result.Code]. At the end of an admitted call, it must call [Result.Finish] if
// [Result.Refundable] reports true.
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
		res.uninitialized = true
		return
	}
	l.set.DecideInto(&res.Result, c.Context, c)
}

// Waiting returns how many calls and messages wait for tokens now, for all limits with a MaxWait together.
func (l *Limits) Waiting() int64 {
	if l == nil || l.set == nil {
		return 0
	}
	return l.set.Waiting()
}
