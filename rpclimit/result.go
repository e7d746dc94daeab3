package rpclimit

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

// A Result is the decision on a call or a message, with methods that end the call. It is not safe for concurrent use.
// If a Result is copied, only one of the copies may be finished or released.
type Result struct {
	limits.Result[Call]
	call          Call
	uninitialized bool // [New] did not make the limits
}

// Allowed reports whether the call or message may pass.
func (res *Result) Allowed() bool { return !res.uninitialized && res.Result.Allowed() }

// Code returns the status code of the decision:
//
//   - OK: admitted
//   - ResourceExhausted: refused
//   - Canceled or DeadlineExceeded: the context ended while the call waited
//   - Unavailable: a store failed or a quota could not be applied
//   - Internal: [New] did not make the limits
func (res *Result) Code() Code {
	if res.uninitialized {
		return Internal
	}
	switch res.Verdict() {
	case limits.Limited:
		return ResourceExhausted
	case limits.Unavailable:
		return Unavailable
	case limits.Ended:
		return contextCode(res.Err())
	case limits.Admitted:
	}
	return OK
}

// Reason returns a few words that say why the call was refused, or "" if it was not refused.
func (res *Result) Reason() string {
	switch res.Code() {
	case OK:
		return ""
	case ResourceExhausted:
		c, ok := res.Tightest()
		switch inFlight := ok && c.InFlight(); {
		case res.RetryAfter() == engine.Never && inFlight:
			return "the call costs more than the limit of calls in flight"
		case res.RetryAfter() == engine.Never:
			return "the call costs more than the rate limit"
		case inFlight:
			return "too many calls are in flight"
		}
		return "rate limit exceeded"
	case Canceled, DeadlineExceeded:
		return "the call ended while it waited for the rate limit"
	case Internal:
		return "the rate limits were not made by rpclimit.New"
	}
	return "the rate limit cannot be applied"
}

// RetryAfter returns the time after which a refused call could pass, including jitter. It is [engine.Never] for a call
// that costs more than the limit. It is 0 if the call was not refused. It is also 0 if the time is not known, for
// example if only a limit of calls in flight refuses.
func (res *Result) RetryAfter() time.Duration {
	if res.Code() != ResourceExhausted {
		return 0
	}
	return res.Result.RetryAfter()
}

// Tightest returns the check that is most useful to a client: see [limits.Result.Tightest].
func (res *Result) Tightest() (c *Check, ok bool) {
	if res.uninitialized {
		return nil, false
	}
	return res.Result.Tightest()
}

// Refundable reports whether something must be done when the call ends: a limit may give tokens back, or counts the
// call as in flight. If so, a front must call [Result.Finish] or [limits.Result.Release].
func (res *Result) Refundable() bool { return res.Result.Refundable() || res.InFlight() }

// Context returns the context for the handler of an admitted call. In it, [limits.HoldFrom] finds the holds of limits
// with Hold. Without holds, Context returns ctx.
func (res *Result) Context(ctx context.Context) context.Context {
	if res.uninitialized {
		return ctx
	}
	return res.Result.Context(ctx)
}

// Finish ends an admitted call, which has ended with this code. The call is no longer in flight
// ([limits.Result.Release]). If the Refund function of a limit returns true, its tokens are given back, unless the
// call's context is done ([Limit]). A second call of Finish does nothing, and neither does a call after a refusal.
func (res *Result) Finish(code Code) {
	res.Release()
	if res.call.Context != nil && res.call.Context.Err() != nil {
		return
	}
	res.Result.Finish(res.call.Context, res.call, int(code))
}

// RefundCodes returns a Refund function ([Limit]). It gives tokens back to calls that end with one of the codes, which
// are from package grpc/codes or connect. With codes.OK, only failed calls count. With codes.Unavailable, calls that
// fail with this code do not count.
func RefundCodes[C ~uint32](codes ...C) func(Call, int) bool {
	set := map[Code]bool{}
	for _, c := range codes {
		set[Code(c)] = true
	}
	return func(_ Call, code int) bool { return set[Code(code)] }
}

// contextCode returns the status code for an error of a context.
func contextCode(err error) Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return DeadlineExceeded
	}
	return Canceled
}
