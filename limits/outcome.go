package limits

import "fmt"

// Metrics counts outcomes. Observe is called in the goroutine of the request, from many goroutines at once, so it
// should be fast. The argument limit is the name of a [Limit], so the number of labels does not depend on the number of
// keys.
type Metrics interface {
	Observe(limit string, outcome Outcome)
}

// An Outcome is the effect of a limit on a request.
type Outcome uint8

const (
	// NotTaken: another limit refused the request. Metrics does not observe this outcome.
	NotTaken Outcome = iota
	// Allowed: the limit admitted the request, and took its cost.
	Allowed
	// Refused: the limit refused the request.
	Refused
	// ShadowRefused: the limit would have refused the request, but is in shadow mode.
	ShadowRefused
	// Failed: the store did not answer and [Limit].OnLoss decided, or the quota of the request could not be applied. If
	// OnLoss is [Local], the outcome of the local limiter is observed, too.
	Failed
	// Refunded: the cost of a request was given back when it ended.
	Refunded
)

var outcomes = [...]string{"not_taken", "allowed", "refused", "shadow_refused", "store_failed", "refunded"}

// String returns the outcome as it appears in a label, such as "shadow_refused".
func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// report passes the outcomes of a request to the metrics and the callback.
func (s *Set[R]) report(r R, res *Result[R]) {
	for i := range res.n {
		c := res.at(i)
		// A failure was observed when it happened.
		if s.options.Metrics != nil && c.Outcome != NotTaken && c.Outcome != Failed {
			s.options.Metrics.Observe(c.limit.Name, c.Outcome)
		}
		if s.options.OnLimited != nil && (c.Outcome == Refused || c.Outcome == ShadowRefused) {
			s.options.OnLimited(r, *c)
		}
	}
}

// failed counts a failure of a source, or of a quota.
func (s *Set[R]) failed(l *limit[R], err error) {
	s.failures.Add(1)
	if s.options.Metrics != nil {
		s.options.Metrics.Observe(l.Name, Failed)
	}
	if s.options.OnError != nil {
		s.options.OnError(l.Name, err)
	}
}
