package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/audit/fit"
	"github.com/weir-go/weir/limitertest/check"
)

// A Most is the most that was admitted, and the most that the limit allows.
type Most struct {
	// Admitted is the most that one key got within a period of the limit, wherever it begins, and Allowed what such a
	// limit admits in one at most.
	Admitted int    `json:"admitted"`
	Allowed  uint64 `json:"allowed"`
	Within   string `json:"within"`
	// Together is how many requests were sent together at first, and TogetherAdmitted how many of them were admitted.
	Together         int `json:"together,omitempty"`
	TogetherAdmitted int `json:"together_admitted,omitempty"`
	// TooMany is how many more than the limit allows were admitted at the worst instant, or within a period if that is
	// more; 0 if it may be because the times are inexact, or if the limit explains all decisions.
	TooMany uint64 `json:"too_many,omitempty"`

	full uint64
}

// mostOf looks for the most that was admitted of a log, of which the first requests were sent together.
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
	default: // all of a window at its end, and all of the next one
		m.Allowed = 2 * l.Tokens
	}
	if found.Returned {
		m.Admitted = within(log, l.Per)
	}
	excess := found.Excess
	if n := uint64(m.Admitted); n > m.Allowed {
		excess = max(excess, n-m.Allowed)
	}
	if excess > 3 && found.Misfits > 0 { // a limit is fitted to within three, and what it explains is not too much
		m.TooMany = excess
	}
	return m
}

// within returns the most requests of one key that were sent and answered within a time, and admitted.
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

// widest is by how much the shortest and the longest period that explain a log may differ.
const widest = 0.1

// surely is how sure a kind must be.
const surely = 0.5

// undecided says what a log does not tell.
func undecided(found fit.Result) (all []string) {
	if float64(found.Longest) > float64(found.Shortest)*(1+widest) {
		all = append(all, fmt.Sprintf("the period: all from %s to %s explain as much", short(found.Shortest), short(found.Longest)))
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
