package rpclimit

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// A Result is the decision on a call or a message. Its methods are not safe for concurrent use, and of copies only one
// may be settled.
type Result struct {
	limits     *Limits
	call       Call
	code       Code
	refundable bool // a limit may give back at the end
	inFlight   bool // a limit gives back then what the call has in flight
	holding    bool // a limit has a hold, for the handler to settle
	queued     bool // it holds one of the places of calls that wait
	n          int  // checks
	shown      int  // the check that is the tightest; -1 for none
	retry      time.Duration
	inline     [inlineChecks]check
	more       []check // those that are not inline
}

// inlineChecks is how many limits can apply to a call before a decision allocates.
const inlineChecks = 8

// A check is a call checked against one limit.
type check struct {
	limit    *Limit
	key      engine.Key
	n        uint64
	tier     int
	decision engine.Decision
	outcome  httplimit.Outcome
	taken    bool
	receipt  engine.Receipt      // of what was taken
	hold     *engine.Hold        // instead, of a limit with Hold
	ahead    *engine.Reservation // instead, of what was taken ahead of its time, until that has come
	failure  error               // that it could not be applied
}

func (res *Result) at(i int) *check {
	if i < inlineChecks {
		return &res.inline[i]
	}
	return &res.more[i-inlineChecks]
}

// add makes room for another check.
func (res *Result) add() *check {
	if res.n >= inlineChecks {
		res.more = append(res.more, check{})
	}
	res.n++
	return res.at(res.n - 1)
}

// Allowed says whether the call or message may pass.
func (res *Result) Allowed() bool { return res.code == OK }

// Code returns the status code of the decision: OK, ResourceExhausted of a refusal, Canceled or DeadlineExceeded if the
// context ended while it waited, Unavailable if a limit could not be applied ([Limit].Quota), and Internal if [New] did
// not make the limits.
func (res *Result) Code() Code { return res.code }

// Reason says in a few words why the call was refused; "" if it was not.
func (res *Result) Reason() string {
	switch res.code {
	case OK:
		return ""
	case ResourceExhausted:
		switch inFlight := res.shown >= 0 && res.at(res.shown).limit.inFlight; {
		case res.retry == engine.Never && inFlight:
			return "the call costs more than the limit of calls in flight"
		case res.retry == engine.Never:
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

// RetryAfter returns when a refused call could pass, jitter included; [engine.Never] for one that costs more than the
// limit, 0 if it is not known, as where only a limit of calls in flight refuses, or the call was not refused.
func (res *Result) RetryAfter() time.Duration { return res.retry }

// Refundable reports whether a limit may give back when the call ends, or does because it is one of calls in flight, so
// that a front has to call [Result.Finish], or [Result.Release].
func (res *Result) Refundable() bool { return (res.refundable || res.inFlight) && res.code == OK }

// Tightest returns the check that says most: of an admitted call that with the least Remaining, of a refused one that
// with the longest RetryAfter. It is not ok if no limit applies that is in force and has decided.
func (res *Result) Tightest() (c Check, ok bool) {
	if res.shown < 0 {
		return Check{}, false
	}
	return res.at(res.shown).public(), true
}

// Len returns how many limits apply to the call or message, those in shadow mode included.
func (res *Result) Len() int { return res.n }

// Check returns what the i-th of them did, in the order of [New].
func (res *Result) Check(i int) Check { return res.at(i).public() }

// A Check is what one limit did to a call or message.
type Check struct {
	Limit   string // its name
	N       uint64 // tokens asked for
	Tier    int    // that the call is under: what [Limit].Tier said
	Outcome httplimit.Outcome
	// Decision is the limit's answer; for NotTaken it is what [engine.Limiter.Peek] says.
	Decision engine.Decision
	// Shadow says that the limit is in shadow mode.
	Shadow bool
	// Key is what was charged, of the limit's Limiter.
	Key engine.Key
}

func (c *check) public() Check {
	return Check{c.limit.Name, c.n, c.tier, c.outcome, c.decision, c.limit.Shadow, c.key}
}

// Finish ends an admitted call that ended with a code: it is no longer in flight ([Result.Release]), and limits whose
// Refund function says so get their tokens back. If the context of the call is done they do not ([Limit].Refund). The
// second time, and after a refusal, it does nothing.
func (res *Result) Finish(code Code) {
	res.Release()
	if !res.refundable || res.code != OK {
		return
	}
	res.refundable = false
	if res.call.Context.Err() != nil {
		return
	}
	for i := range res.n {
		c := res.at(i)
		if !c.taken || c.limit.Refund == nil || !c.limit.Refund(res.call, code) || !c.giveBack() {
			continue
		}
		c.outcome = httplimit.Refunded
		if m := res.limits.metrics; m != nil {
			m.Observe(c.limit.Name, httplimit.Refunded)
		}
	}
}

// RefundCodes returns a [Limit].Refund function for calls that end with one of the codes, which may be those of package
// grpc/codes or of connect: with codes.OK only failures count, with codes.Unavailable a failure of the server does not.
func RefundCodes[C ~uint32](codes ...C) func(Call, Code) bool {
	set := map[Code]bool{}
	for _, c := range codes {
		set[Code(c)] = true
	}
	return func(_ Call, code Code) bool { return set[code] }
}

// endedBy returns the code of an error of a context.
func endedBy(err error) Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return DeadlineExceeded
	}
	return Canceled
}
