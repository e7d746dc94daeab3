package httplimit

import (
	"net/http"
	"time"

	"github.com/weir-go/weir/engine"
)

// A Result is the decision of [Middleware.Decide] on a request. Its methods are not safe for concurrent use, and of
// copies only one may be settled.
type Result struct {
	m          *Middleware
	verdict    verdict
	refundable bool  // a limit may give back after the response
	inFlight   bool  // a limit gives back then what the request has in flight
	settled    bool  // it has
	queued     bool  // it holds one of the places of requests that wait
	n          int   // checks
	shown      int   // the check that RateLimit shows; -1 for none
	retry      int64 // seconds of Retry-After; 0 for none
	inline     [inlineChecks]check
	more       []check // those that are not inline
}

type verdict uint8

const (
	pass verdict = iota
	limited
	unavailable
)

// inlineChecks is how many limits can apply to a request before a decision allocates.
const inlineChecks = 8

// A check is a request checked against one limit.
type check struct {
	limit    *limit
	key      engine.Key // of the limiter
	text     string     // of the key, where a backend or a partition key needs it
	n        uint64
	decision engine.Decision
	outcome  Outcome
	answered bool // the decision is one of the limiter or backend
	taken    source
	receipt  engine.Receipt // of what was taken from the limiter
	turn     *turn          // instead, of what was taken ahead of its time, until that has come
	tier     uint8
	policy   engine.Policy // of the request, where the limit has a Quota
	failure  error         // that it could not be applied
	backend  Backend       // the limit's, under the quota of the request; nil for a Limiter
}

// source says where tokens were taken.
type source uint8

const (
	nowhere source = iota
	local
	remote
)

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

// Allowed says whether the request may pass.
func (res *Result) Allowed() bool { return res.verdict == pass }

// Status returns the HTTP status of the decision: 200 for an allowed request, 429 for a refused one, 503 if the backend
// of a limit with [FailClosed] failed. [Result.Refuse] answers a refused gRPC call with another status.
func (res *Result) Status() int {
	switch res.verdict {
	case limited:
		return http.StatusTooManyRequests
	case unavailable:
		return http.StatusServiceUnavailable
	case pass:
	}
	return http.StatusOK
}

// Tightest returns the check that RateLimit and the older headers show: of an allowed request that
// with the least Remaining, of a refused one that with the longest RetryAfter. If there are none but limits of requests
// in flight, which headers do not show, it is one of those. It is not
// ok if no limit applies that is in force and has decided.
func (res *Result) Tightest() (c Check, ok bool) {
	if res.shown < 0 {
		return Check{}, false
	}
	return res.at(res.shown).public(), true
}

// RetryAfter returns what the Retry-After header says, jitter included, in whole seconds. It is 0 if
// there is no such header, as where only a limit of requests in flight refuses, and [engine.Never] if the request can
// never pass.
func (res *Result) RetryAfter() time.Duration {
	if res.never() {
		return engine.Never
	}
	return time.Duration(res.retry) * time.Second
}

func (res *Result) never() bool {
	return res.verdict == limited && res.at(res.shown).never()
}

// Len returns how many limits apply to the request, those in shadow mode included.
func (res *Result) Len() int { return res.n }

// Check returns what the i-th of them did, in the order of [New].
func (res *Result) Check(i int) Check { return res.at(i).public() }

// A Check is what one limit did to a request.
type Check struct {
	Limit   string // its name
	N       uint64 // tokens asked for
	Tier    int    // that the request is under: what [Limit].Tier said, at most 15
	Outcome Outcome
	// Decision is the limit's answer; for NotTaken it is what [engine.Limiter.Peek] says, or of a
	// backend, what it answered before it was given back. It is zero if a backend was not asked or failed.
	Decision engine.Decision

	limit *limit
	key   engine.Key
}

func (c *check) public() Check {
	return Check{
		Limit: c.limit.Name, N: c.n, Tier: int(c.tier), Outcome: c.outcome, Decision: c.decision,
		limit: c.limit, key: c.key,
	}
}

// Shadow says whether the limit is in shadow mode.
func (c Check) Shadow() bool { return c.limit != nil && c.limit.Shadow }

// InFlight says whether the limit is one of requests in flight. When such a limit lets a refused request pass is not
// known: see [engine.Concurrency].
func (c Check) InFlight() bool { return c.limit != nil && c.limit.inFlight }

// Key returns the key that was charged, of the limit's Limiter; the zero Key if it has none.
func (c Check) Key() engine.Key { return c.key }

// KeyText returns the key in the form of [KeyFunc.Text], made from the request again. It
// allocates.
func (c Check) KeyText(r *http.Request) string {
	if c.limit == nil {
		return ""
	}
	text, _ := c.limit.Limit.Key.Text(r)
	return text
}
