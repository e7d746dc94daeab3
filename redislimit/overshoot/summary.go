package overshoot

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// summary adds up what the nodes saw.
func summary(s Scenario, way string, nodes []NodeResult) Result {
	r := Result{Scenario: s, Way: way}
	medians := make([]int64, 0, len(nodes))
	for _, n := range nodes {
		r.Offered, r.Admitted = r.Offered+n.Offered, r.Admitted+n.Admitted
		r.Errors, r.Lost = r.Errors+n.Errors, r.Lost+n.Lost
		r.Error = max(r.Error, n.Error)
		r.Time, r.Late, r.Bound = max(r.Time, time.Duration(n.End)), max(r.Late, n.Late), max(r.Bound, n.Bound)
		medians = append(medians, n.Median)
	}
	slices.Sort(medians)
	r.Median = medians[len(medians)/2]
	var begins []int64
	for _, n := range nodes {
		begins = append(begins, n.Begins...)
	}
	r.Exact = exact(s, begins)
	due := s.Rate * r.Time.Seconds()
	r.OfRate = 100 * float64(r.Admitted) / due
	r.Beyond = 100 * (float64(r.Admitted) - float64(s.Burst)) / due
	r.Refused = 100 * float64(r.Offered-r.Admitted) / float64(r.Offered)
	if way == "lease" {
		r.Empty = s.Burst + uint64(due) + uint64(len(nodes))*Overdraft
	}
	return r
}

// exact returns how many of the requests, by when they came in ns, a bucket that is full at first admits.
func exact(s Scenario, begins []int64) (admitted int64) {
	slices.Sort(begins)
	tokens, last := float64(s.Burst), int64(0)
	for _, at := range begins {
		tokens = min(tokens+float64(at-last)/1e9*s.Rate, float64(s.Burst))
		last = at
		if tokens >= 1 {
			tokens--
			admitted++
		}
	}
	return admitted
}

// Markdown writes the results as a table. The columns in % are of rate*T.
func Markdown(w io.Writer, results []Result) error {
	text := "| load | way | offered | admitted | exact | of rate x T | without the burst | refused | bound | holds | with O = 0 | holds | script calls/s | median decision |\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|--:|---|--:|---|--:|--:|\n"
	for _, r := range results {
		bound, holds := promise(r.Bound, r.Holds())
		empty, holdsEmpty := promise(r.Empty, r.HoldsEmpty())
		text += fmt.Sprintf("| %s | %s | %d | %d | %d | %.2f %% | %.2f %% | %.3f %% | %s | %s | %s | %s | %.0f | %v |\n",
			r.Scenario.Name, r.Way, r.Offered, r.Admitted, r.Exact, r.OfRate, r.Beyond, r.Refused,
			bound, holds, empty, holdsEmpty, r.Calls, time.Duration(r.Median))
	}
	_, err := io.WriteString(w, text)
	return err
}

func promise(bound uint64, holds bool) (string, string) {
	switch {
	case bound == 0:
		return "none", ""
	case holds:
		return fmt.Sprint(bound), "yes"
	}
	return fmt.Sprint(bound), "NO"
}
