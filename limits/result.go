package limits

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/engine"
)

// A Result is the decision of a [Set] on a request. Its methods are not safe for concurrent use. Only one of several
// copies may be finished or released.
type Result[R any] struct {
	set      *Set[R]
	verdict  Verdict
	needs    needs // of the limits that apply; needs that are met are removed
	isQueued bool  // the request has a place among the waiting requests
	n        int   // number of checks
	tightest int   // index of the tightest check; -1 for none
	retry    time.Duration
	err      error // the error of the context that ended a wait
	inline   [inlineChecks]Check[R]
	overflow []Check[R] // the checks that are not in inline
}

// needs is a set of bits: what a limit needs in addition to a take in memory.
type needs uint8

const (
	mayRefund needs = 1 << iota // the cost may be given back when the request ends
	hasPlaces                   // places in flight are given back when the request ends
	isStored
	mayWait
	mayHold
	isSpread
	isShadow
)

func (l *Limit[R]) needs() (set needs) {
	for need, isNeeded := range map[needs]bool{mayRefund: l.Refund != nil, hasPlaces: l.inFlight(), isStored: l.Source != nil,
		mayWait: l.MaxWait > 0, mayHold: l.Hold, isSpread: l.Spread != nil, isShadow: l.Shadow} {
		if isNeeded {
			set |= need
		}
	}
	return set
}

// inlineChecks is how many limits can apply without an allocation.
const inlineChecks = 8

// A Verdict is the outcome of a decision.
type Verdict uint8

const (
	// Admitted: every limit admits the request.
	Admitted Verdict = iota
	// Limited: a limit refuses the request.
	Limited
	// Unavailable: the store of a limit with [Closed] failed, or a quota could not be applied.
	Unavailable
	// Ended: the context of the request was done while it waited.
	Ended
)

// A Check has the effect of one limit on a request.
type Check[R any] struct {
	N    uint64 // tokens asked for
	Tier int    // the tier of the request
	// Decision is the answer of the limit. If the limit did not decide, Decision is a peek at it
	// ([engine.Limiter.Peek]), or zero for a limit in a store.
	Decision engine.Decision
	Outcome  Outcome

	least       uint32 // the number from Limit.Least, minus one; the field shares a word with the next fields
	answered    bool   // the limiter or the source has made the decision
	isWaiting   bool   // the request counts as waiting for the key
	quotaFailed bool   // the quota could not be applied
	takenFrom   place  // where the tokens were taken
	limit       *limit[R]
	key         engine.Key     // the key in the limiter
	text        string         // the text of the key, if a source or a front needs it
	receipt     engine.Receipt // for the tokens taken from the limiter
	turn        *engine.Turn   // instead of receipt, for tokens taken in advance, until they are due
	hold        *Hold          // instead of receipt, with Hold, and for requests in flight in a store
	source      Source         // the limit's Source, with the quota of the request
	policy      engine.Policy  // the policy for the request, if the limit has a Quota
}

type place uint8

const (
	nowhere place = iota
	memory
	store
)

func (res *Result[R]) at(i int) *Check[R] {
	if i < inlineChecks {
		return &res.inline[i]
	}
	return &res.overflow[i-inlineChecks]
}

func (res *Result[R]) add() *Check[R] {
	if res.n >= inlineChecks {
		res.overflow = append(res.overflow, Check[R]{})
	}
	res.n++
	return res.at(res.n - 1)
}

// Allowed reports whether the request may pass.
func (res *Result[R]) Allowed() bool { return res.verdict == Admitted }

// Verdict returns the outcome of the decision.
func (res *Result[R]) Verdict() Verdict { return res.verdict }

// Err returns the error of the context for [Ended], and nil otherwise.
func (res *Result[R]) Err() error { return res.err }

// Tightest returns the check that is most useful to a client. For an allowed request, it is the check with the smallest
// Remaining; for a refused request, the check with the longest RetryAfter. A limit of requests in flight comes last,
// unless it can never admit the request. Limits in shadow mode, and limits that have not decided, do not count. ok is
// false if no check remains.
func (res *Result[R]) Tightest() (c *Check[R], ok bool) {
	if res.tightest < 0 {
		return nil, false
	}
	return res.at(res.tightest), true
}

// RetryAfter returns the time, including jitter, after which a refused request could pass, or [engine.Never]. It is 0
// if the request was not refused, or if the time is not known, as for requests in flight.
func (res *Result[R]) RetryAfter() time.Duration { return res.retry }

// Len returns how many limits apply to the request, including limits in shadow mode.
func (res *Result[R]) Len() int { return res.n }

// Check returns the check of the i-th limit that applies, in the order of [New]. It is valid as long as the result.
func (res *Result[R]) Check(i int) *Check[R] { return res.at(i) }

// Refundable reports whether the request is allowed and needs [Result.Finish], because a limit may give back its cost.
func (res *Result[R]) Refundable() bool { return res.needs&mayRefund != 0 && res.verdict == Admitted }

// InFlight reports whether the request is allowed and has places in flight, until [Result.Release] or [Result.Finish].
func (res *Result[R]) InFlight() bool { return res.needs&hasPlaces != 0 && res.verdict == Admitted }

// Release ends an allowed request, and gives its places back to limits of requests in flight ([engine.Concurrency]).
// Without Release or [Result.Finish], the request counts until the limit forgets it. Release does nothing after the
// first call or after a refusal.
func (res *Result[R]) Release() {
	if res.needs&hasPlaces == 0 {
		return
	}
	res.needs &^= hasPlaces
	for i := range res.n {
		if c := res.at(i); c.limit.needs&hasPlaces != 0 {
			c.giveBack()
		}
	}
}

// Finish ends an allowed request with an outcome: it releases the request, and gives its cost back to limits whose
// Refund returns true. It does nothing after the first call or after a refusal. ctx may already be done.
func (res *Result[R]) Finish(ctx context.Context, r R, outcome int) {
	res.Release()
	if res.needs&mayRefund == 0 || res.verdict != Admitted {
		return
	}
	res.needs &^= mayRefund
	var asks []Ask
	defer func() { res.refund(ctx, asks) }() // deferred, in case a Refund function panics
	for i := range res.n {
		c := res.at(i)
		if c.takenFrom == nowhere || c.limit.Refund == nil || !c.limit.Refund(r, outcome) {
			continue
		}
		if c.takenFrom == store && c.hold == nil {
			asks = append(asks, c.newAsk(i))
		}
		gaveBack, lost := c.giveBack()
		if lost > 0 {
			res.set.failed(c.limit, fmt.Errorf("limits: %d tokens of a request's cost are not charged: its key already owes the maximum", lost))
		}
		if !gaveBack {
			continue
		}
		c.Outcome = Refunded
		if m := res.set.options.Metrics; m != nil {
			m.Observe(c.limit.Name, Refunded)
		}
	}
}

// Name returns the name of the limit.
func (c *Check[R]) Name() string { return c.limit.Name }

// Limit returns the limit. It must not be changed.
func (c *Check[R]) Limit() *Limit[R] { return &c.limit.Limit }

// Index returns the index of the limit in the list of [New].
func (c *Check[R]) Index() int { return c.limit.index }

// Shadow reports whether the limit is in shadow mode.
func (c *Check[R]) Shadow() bool { return c.limit.Shadow }

// InFlight reports whether the limit counts requests in flight: see [engine.Concurrency].
func (c *Check[R]) InFlight() bool { return c.limit.needs&hasPlaces != 0 }

// Key returns the key in the limit's Limiter, or the zero Key.
func (c *Check[R]) Key() engine.Key { return c.key }

// Text returns the text of the key if a source needed it or [Options].Text is set.
func (c *Check[R]) Text() string { return c.text }

// KeyText makes the text of the key from the request again ([KeyFunc.Text]). It allocates.
func (c *Check[R]) KeyText(r R) string {
	text, _ := c.limit.Limit.Key.Text(r)
	return text
}

// Answered reports whether the limiter or source made the decision. It is false if the source was not called or failed.
func (c *Check[R]) Answered() bool { return c.answered }

// Unlimited reports whether [engine.Unlimited] decided, so that there are no numbers for a client.
func (c *Check[R]) Unlimited() bool {
	// Limit is compared first, because it differs in most decisions.
	return c.Decision.Limit == unlimited.Limit && c.answered && c.Decision == unlimited
}

var unlimited = engine.Decision{Allowed: true, Limit: engine.Unlimited().Limit(), Remaining: engine.Unlimited().Limit()}

// Policy returns the policy that applies to the request: its quota, the policy of its tier, or the policy of the
// source.
func (c *Check[R]) Policy() engine.Policy {
	switch {
	case c.limit.Quota != nil:
		return c.policy
	case c.source != nil:
		return c.source.Policy()
	}
	return c.limit.policy(c.Tier)
}

// Never reports whether the limit can never admit the request.
func (c *Check[R]) Never() bool { return c.Decision.RetryAfter == engine.Never }

func (c *Check[R]) newAsk(i int) Ask {
	a := Ask{Source: c.source, Key: c.text, N: c.N, Hold: c.limit.Hold, check: i}
	if c.limit.Least != nil {
		a.Least = uint64(c.least) + 1
	}
	if c.takenFrom == store {
		if c.hold != nil {
			a.Held = c.hold.held
		}
	}
	return a
}

func (res *Result[R]) summarize() {
	outcome := Allowed
	refused := res.verdict == Limited || res.verdict == Ended
	if refused {
		outcome = Refused
	}
	for i := range res.n {
		c := res.at(i)
		if c.limit.Shadow || c.Outcome != outcome || c.Unlimited() {
			continue
		}
		if res.tightest < 0 || c.tighter(res.at(res.tightest), refused) {
			res.tightest = i
		}
	}
	if !refused || res.tightest < 0 {
		return
	}
	tightest := res.at(res.tightest)
	if tightest.InFlight() && !tightest.Never() {
		return
	}
	res.retry = max(tightest.Decision.RetryAfter, 1)
	if jitter := res.set.options.Jitter; jitter > 0 && res.retry < engine.Never-jitter {
		res.retry += min(max(time.Duration(res.set.options.Random()*float64(jitter)), 0), jitter)
	}
}

// tighter compares this check with another one, as [Result.Tightest] describes.
func (c *Check[R]) tighter(other *Check[R], refused bool) bool {
	if c.InFlight() != other.InFlight() && (!refused || c.Never() == other.Never()) {
		return other.InFlight()
	}
	if refused {
		return c.Decision.RetryAfter > other.Decision.RetryAfter
	}
	if c.Decision.Remaining != other.Decision.Remaining {
		return c.Decision.Remaining < other.Decision.Remaining
	}
	return c.Decision.ResetAfter > other.Decision.ResetAfter
}
