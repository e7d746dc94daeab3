package httplimit

import (
	"fmt"
	"net/http"
)

// Metrics counts what limits do. Observe is called in the goroutine of the request, from
// many at once, so it should be quick. limit is a [Limit]'s name: there are as many labels as
// limits, however many keys there are.
type Metrics interface {
	Observe(limit string, outcome Outcome)
}

// An Outcome is what a limit did to a request.
type Outcome uint8

const (
	// NotTaken: another limit refused the request, and nothing was taken from this one. It is
	// not observed.
	NotTaken Outcome = iota
	// Allowed: the limit admitted the request, and took its cost.
	Allowed
	// Refused: the limit refused the request.
	Refused
	// ShadowRefused: the limit would have refused the request, but is in shadow mode.
	ShadowRefused
	// BackendFailed: the backend did not answer, and [Limit.OnError] decided. Where the local limiter
	// did ([FailLocal]), its outcome is observed as well.
	BackendFailed
	// Refunded: the cost of an allowed request was given back after the response.
	Refunded
)

var outcomes = [...]string{"not_taken", "allowed", "refused", "shadow_refused", "store_failed", "refunded"}

// String returns the outcome as it is written in a label: "shadow_refused".
func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// report passes the outcomes of a request to the metrics and the callback.
func (m *Middleware) report(r *http.Request, res *Result) {
	for i := range res.n {
		c := res.at(i)
		// A backend's failure was observed when it happened.
		if m.metrics != nil && c.outcome != NotTaken && c.outcome != BackendFailed {
			m.metrics.Observe(c.limit.Name, c.outcome)
		}
		if m.onLimited != nil && (c.outcome == Refused || c.outcome == ShadowRefused) {
			m.onLimited(r, c.public())
		}
	}
}

// failed counts a failure of a backend.
func (m *Middleware) failed(l *limit, err error) {
	m.failures.Add(1)
	if m.metrics != nil {
		m.metrics.Observe(l.Name, BackendFailed)
	}
	if m.onBackendError != nil {
		m.onBackendError(l.Name, err)
	}
}
