package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/audit/fit"
	"github.com/weir-go/weir/limitertest/check"
)

// A Peak compares two numbers: the most requests that were admitted, and the most that the limit allows.
type Peak struct {
	// Admitted is the most requests that one key got within an interval of the length of the limit's period. Allowed is
	// the most that the limit can admit within such an interval.
	Admitted int    `json:"admitted"`
	Allowed  uint64 `json:"allowed"`
	Within   string `json:"within"`
	// Together is how many requests were sent together at the start, and TogetherAdmitted how many of them were
	// admitted.
	Together         int `json:"together,omitempty"`
	TogetherAdmitted int `json:"together_admitted,omitempty"`
	// TooMany is how many requests were admitted beyond the limit: at the worst instant or within a period, whichever
	// is more. It is 0 if inexact times may be the cause, or if the limit explains all decisions.
	TooMany uint64 `json:"too_many,omitempty"`

	capacity uint64
}

// peakOf returns the Peak of a log. burst is how many requests at the start of the log were sent at the same time.
func peakOf(log []fit.Request, burst int, result fit.Result) *Peak {
	l := result.Limit
	p := &Peak{Within: shortDuration(l.Per), Together: burst, capacity: l.Capacity(l.Kind)}
	for _, r := range log[:burst] {
		if r.Allowed {
			p.TogetherAdmitted++
		}
	}
	switch l.Kind {
	case check.Bucket, check.BatchRefill:
		p.Allowed = l.Burst + l.Tokens
	case check.SlidingExact:
		p.Allowed = l.Tokens
	default: // the limit can be used at the end of one window, and again in the next
		p.Allowed = 2 * l.Tokens
	}
	if result.Returned {
		p.Admitted = maxAdmittedIn(log, l.Per)
	}
	excess := result.Excess
	if n := uint64(p.Admitted); n > p.Allowed {
		excess = max(excess, n-p.Allowed)
	}
	if excess > 3 && result.Misfits > 0 { // the fit is accurate to three requests; without misfits there is no excess
		p.TooMany = excess
	}
	return p
}

// maxAdmittedIn returns the most admitted requests of one key that were both sent and answered within an interval of
// the length of a period.
func maxAdmittedIn(log []fit.Request, period time.Duration) (maximum int) {
	admitted := map[string][]fit.Request{}
	for _, r := range log {
		if r.Allowed {
			admitted[r.Key] = append(admitted[r.Key], r)
		}
	}
	for _, requests := range admitted {
		slices.SortFunc(requests, func(a, b fit.Request) int { return int(a.Sent - b.Sent) })
		for i, first := range requests {
			n := 0
			for _, r := range requests[i:] {
				if r.Sent >= first.Sent+period {
					break
				}
				if r.Done < first.Sent+period {
					n++
				}
			}
			maximum = max(maximum, n)
		}
	}
	return maximum
}

func (p *Peak) write(b *strings.Builder) {
	if p.Admitted > 0 {
		fmt.Fprintf(b, "most      %d admitted within %s; such a limit admits up to %d\n", p.Admitted, p.Within, p.Allowed)
	}
	if p.Together > 0 {
		fmt.Fprintf(b, "at once   %d of %d that were sent together were admitted; the limit has %d\n", p.TogetherAdmitted, p.Together, p.capacity)
	}
	if p.TooMany > 0 {
		fmt.Fprintf(b, "too many  %d more than the limit were admitted at one time\n", p.TooMany)
	}
}

// maxPeriodSpread bounds the relative difference between the shortest and the longest period that explain a log. If the
// difference is larger, the period is undecided.
const maxPeriodSpread = 0.1

// minConfidence is the lowest confidence with which the kind counts as decided.
const minConfidence = 0.5

// undecided returns what cannot be concluded from a log, and why.
func undecided(result fit.Result) (texts []string) {
	if float64(result.Longest) > float64(result.Shortest)*(1+maxPeriodSpread) {
		texts = append(texts, fmt.Sprintf("the period: all from %s to %s explain as much", shortDuration(result.Shortest), shortDuration(result.Longest)))
	}
	if result.Most-result.Fewest > result.Fewest/100 {
		texts = append(texts, fmt.Sprintf("the number of tokens: all from %d to %d explain as much", result.Fewest, result.Most))
	}
	if result.RunnerUp.Per > 0 && result.Confidence() < minConfidence {
		texts = append(texts, fmt.Sprintf("the kind: %s, %s, explains nearly as much", withArticle(kindName(result.RunnerUp)), numbers(result.RunnerUp)))
	}
	if result.RefusalsUnsure {
		texts = append(texts, "whether refused requests are charged: a limit that charges none explains nearly as much")
	}
	if maxMisfits := max(5, result.Requests/20); result.Misfits > maxMisfits {
		texts = append(texts, fmt.Sprintf("the limit: no kind explains more than %.0f %% of the decisions",
			100*(1-float64(result.Misfits)/float64(result.Requests))))
	}
	return texts
}
