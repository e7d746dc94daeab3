package httplimit

import (
	"net/http"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

// A Result is the decision of [Middleware.Decide], with methods that answer the request. It is not safe for concurrent
// use. If a Result is copied, only one of the copies may be finished or released.
type Result struct {
	limits.Result[*http.Request]
	m *Middleware
}

// Status returns the HTTP status of the decision: 200 if the request is allowed, and 429 if it is refused. It is 503 if
// the store of a limit with [limits.Closed] failed, or if a limit could not be applied. For a refused gRPC call,
// [Result.Refuse] answers with another status.
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

// RetryAfter returns the value of the Retry-After header, in whole seconds with jitter. It is 0 if there is no such
// header, for example if only a limit of requests in flight refuses. It is [engine.Never] if the request can never
// pass.
func (res *Result) RetryAfter() time.Duration {
	if res.neverPasses() {
		return engine.Never
	}
	return time.Duration(res.retrySeconds()) * time.Second
}

// neverPasses reports whether the request can never pass.
func (res *Result) neverPasses() bool { return res.Result.RetryAfter() == engine.Never }

// retrySeconds returns the seconds of Retry-After, or 0 if the answer has no such header.
func (res *Result) retrySeconds() int64 {
	if res.neverPasses() {
		return 0
	}
	return seconds(res.Result.RetryAfter())
}

// texts returns the header texts of the limit of a check.
func (res *Result) texts(c *Check) *headerTexts { return res.m.texts[c.Index()] }

// Finish ends an allowed request, whose response has this status. If the Refund function of a limit returns true, its
// tokens are given back. The request is no longer in flight ([limits.Result.Release]). A second call of Finish does
// nothing, and neither does a call after a refusal.
func (res *Result) Finish(r *http.Request, status int) { res.Result.Finish(r.Context(), r, status) }
