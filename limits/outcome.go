package limits

import "fmt"

// Metrics counts outcomes. Observe is called in the goroutine of the request, from many goroutines at once, so it
// should be fast. The parameter limit is the name of a [Limit]. So the number of labels depends on the number of
// limits, and not on the number of keys.
type Metrics interface {
	Observe(limit string, outcome Outcome)
}

// An Outcome is the effect of a limit on a request.
type Outcome uint8

const (
	// NotTaken: another limit refused the request, and nothing was taken from this limit. Metrics does not observe this
	// outcome.
	NotTaken Outcome = iota
	// Allowed: the limit admitted the request, and took its cost.
	Allowed
	// Refused: the limit refused the request.
	Refused
	// ShadowRefused: the limit would have refused the request, but is in shadow mode.
	ShadowRefused
	// Failed: the store did not answer and [Limit].OnLoss decided, or the quota of the request could not be applied. If
	// the local limiter decided ([Local]), its outcome is observed, too.
	Failed
	// Refunded: the cost of an allowed request was given back when the request ended.
	Refunded
)

// outcomes are the texts of the outcomes in labels.
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
		// Failed is skipped, because a failure was observed when it happened.
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
