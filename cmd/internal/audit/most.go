package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/audit/fit"
	"github.com/weir-go/weir/limitertest/check"
)

// A Most compares two numbers: the most requests that were admitted, and the most that the limit allows.
type Most struct {
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

	full uint64
}

// mostOf returns the Most of a log. together is how many requests at the start of the log were sent at the same time.
func mostOf(log []fit.Request, together int, found fit.Result) *Most {
	l := found.Limit
	m := &Most{Within: short(l.Per), Together: together, full: l.Capacity(l.Kind)}
	for _, r := range log[:together] {
		if r.Allowed {
			m.TogetherAdmitted++
		}
	}
	switch l.Kind {
	case check.Bucket, check.BatchRefill:
		m.Allowed = l.Burst + l.Tokens
	case check.SlidingExact:
		m.Allowed = l.Tokens
	default: // the limit can be used at the end of one window, and again in the next
		m.Allowed = 2 * l.Tokens
	}
	if found.Returned {
		m.Admitted = within(log, l.Per)
	}
	excess := found.Excess
	if n := uint64(m.Admitted); n > m.Allowed {
		excess = max(excess, n-m.Allowed)
	}
	if excess > 3 && found.Misfits > 0 { // the fit is accurate to three requests; without misfits there is no excess
		m.TooMany = excess
	}
	return m
}

// The function within returns the most admitted requests of one key that were both sent and answered within an interval
// of length d.
func within(log []fit.Request, d time.Duration) (most int) {
	admitted := map[string][]fit.Request{}
	for _, r := range log {
		if r.Allowed {
			admitted[r.Key] = append(admitted[r.Key], r)
		}
	}
	for _, of := range admitted {
		slices.SortFunc(of, func(a, b fit.Request) int { return int(a.Sent - b.Sent) })
		for i, first := range of {
			n := 0
			for _, r := range of[i:] {
				if r.Sent >= first.Sent+d {
					break
				}
				if r.Done < first.Sent+d {
					n++
				}
			}
			most = max(most, n)
		}
	}
	return most
}

func (m *Most) write(b *strings.Builder) {
	if m.Admitted > 0 {
		fmt.Fprintf(b, "most      %d admitted within %s; such a limit admits up to %d\n", m.Admitted, m.Within, m.Allowed)
	}
	if m.Together > 0 {
		fmt.Fprintf(b, "at once   %d of %d that were sent together were admitted; the limit has %d\n", m.TogetherAdmitted, m.Together, m.full)
	}
	if m.TooMany > 0 {
		fmt.Fprintf(b, "too many  %d more than the limit were admitted at one time\n", m.TooMany)
	}
}

// widest bounds the relative difference between the shortest and the longest period that explain a log. If the
// difference is larger, the period is undecided.
const widest = 0.1

// surely is the lowest confidence with which the kind counts as decided.
const surely = 0.5

// undecided returns what cannot be concluded from a log, and why.
func undecided(found fit.Result) (all []string) {
	if float64(found.Longest) > float64(found.Shortest)*(1+widest) {
		all = append(all, fmt.Sprintf("the period: all from %s to %s explain as much", short(found.Shortest), short(found.Longest)))
	}
	if found.Most-found.Fewest > found.Fewest/100 {
		all = append(all, fmt.Sprintf("the number of tokens: all from %d to %d explain as much", found.Fewest, found.Most))
	}
	if found.RunnerUp.Per > 0 && found.Confidence() < surely {
		all = append(all, fmt.Sprintf("the kind: %s, %s, explains nearly as much", article(kindName(found.RunnerUp)), numbers(found.RunnerUp)))
	}
	if found.RefusalsUnsure {
		all = append(all, "whether refused requests are charged: a limit that charges none explains nearly as much")
	}
	if least := max(5, found.Requests/20); found.Misfits > least {
		all = append(all, fmt.Sprintf("the limit: no kind explains more than %.0f %% of the decisions",
			100*(1-float64(found.Misfits)/float64(found.Requests))))
	}
	return all
}
