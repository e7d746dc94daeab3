package httplimit

import (
	"net/http"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

// A Result is the decision of [Middleware.Decide] on a request, with the methods that answer the request. Its methods
// are not safe for concurrent use. If a Result is copied, only one of the copies may be finished or released.
type Result struct {
	limits.Result[*http.Request]
	m *Middleware
}

// Status returns the HTTP status of the decision: 200 for an allowed request, and 429 for a refused request. It is 503
// if the store of a limit with [limits.Closed] has failed or a limit could not be applied. [Result.Refuse] answers a
// refused gRPC call with another status.
func (res *Result) Status() int {
	switch res.Verdict() {
	case limits.Limited, limits.Ended:
		return http.StatusTooManyRequests
	case limits.Unavailable:
		return http.StatusServiceUnavailable
	case limits.Admitted:
	}
	return http.StatusOK
}

// RetryAfter returns the value of the Retry-After header, in whole seconds and including jitter. It is 0 if the answer
// has no such header, for example if only a limit of requests in flight refuses. It is [engine.Never] if the request
// can never pass.
func (res *Result) RetryAfter() time.Duration {
	if res.never() {
		return engine.Never
	}
	return time.Duration(res.retry()) * time.Second
}

// never reports whether the request can never pass.
func (res *Result) never() bool { return res.Result.RetryAfter() == engine.Never }

// retry returns the seconds of Retry-After, or 0 if the answer has no such header.
func (res *Result) retry() int64 {
	if res.never() {
		return 0
	}
	return seconds(res.Result.RetryAfter())
}

// texts returns the header texts of the limit of a check.
func (res *Result) texts(c *Check) *texts { return res.m.texts[c.Index()] }

// Finish ends an allowed request. The parameter status is the status of its response. Limits whose Refund function
// returns true get their tokens back, and the request is no longer in flight ([limits.Result.Release]). A second call
// does nothing, and neither does a call after a refusal.
func (res *Result) Finish(r *http.Request, status int) { res.Result.Finish(r.Context(), r, status) }
