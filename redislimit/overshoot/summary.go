package overshoot

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

func summary(s Scenario, way string, nodes []NodeResult) Result {
	r := Result{Scenario: s, Way: way}
	medians := make([]int64, 0, len(nodes))
	for _, n := range nodes {
		r.Offered, r.Admitted = r.Offered+n.Offered, r.Admitted+n.Admitted
		r.Errors, r.Lost = r.Errors+n.Errors, r.Lost+n.Lost
		r.Error = max(r.Error, n.Error)
		r.Time, r.Late = max(r.Time, time.Duration(n.End)), max(r.Late, n.Late)
		medians = append(medians, n.Median)
	}
	slices.Sort(medians)
	r.Median = medians[len(medians)/2]
	var requests []request
	for _, n := range nodes {
		for i, at := range n.Begins {
			requests = append(requests, request{at, s.cost(i)})
		}
	}
	rateTokens := s.Rate * r.Time.Seconds()
	if r.Exact = exact(s, requests); strings.HasPrefix(way, "window ") {
		r.Exact = exactWindows(s, requests)
	}
	r.OfRate = 100 * float64(r.Admitted) / rateTokens
	r.OfExact = 100 * float64(r.Admitted) / float64(r.Exact)
	r.Refused = 100 * float64(r.Offered-r.Admitted) / float64(r.Offered)
	r.Falsely = 100 * float64(max(r.Exact-r.Admitted, 0)) / float64(r.Offered)
	switch way {
	case "strict":
		r.Bound = s.Burst + uint64(rateTokens)
	case "lease":
		r.Bound = s.Burst + uint64(rateTokens) + uint64(len(nodes))*Overdraft
	}
	if r.Bound > 0 && s.isDisturbed() {
		// With disturbances, the bound also contains the full shares of all nodes, and at most one more burst that
		// comes back in the store. If only some nodes are cut off, the tokens that come back to their shares are added.
		r.Bound += 2*s.Burst + uint64(rateTokens/2*float64(s.CutOff)/float64(len(nodes)))
	}
	return r
}

// A request has a cost in tokens, and is sent at a time in ns since the start.
type request struct {
	at   int64
	cost uint64
}

// exact returns how many tokens a bucket, full at the start, grants to the requests.
func exact(s Scenario, requests []request) (admitted int64) {
	slices.SortFunc(requests, func(a, b request) int { return cmp.Compare(a.at, b.at) })
	tokens, last := float64(s.Burst), int64(0)
	for _, r := range requests {
		tokens = min(tokens+float64(r.at-last)/1e9*s.Rate, float64(s.Burst))
		last = r.at
		if cost := float64(r.cost); tokens >= cost {
			tokens -= cost
			admitted += int64(r.cost)
		}
	}
	return admitted
}

// exactWindows returns how many tokens fixed windows of one second, counted from the start, grant to the requests.
func exactWindows(s Scenario, requests []request) (admitted int64) {
	counts := map[int64]int64{}
	for _, r := range requests {
		if second, cost := r.at/1e9, int64(r.cost); counts[second]+cost <= int64(s.Rate) {
			counts[second] += cost
			admitted += cost
		}
	}
	return admitted
}

// Markdown writes the results as a table.
func Markdown(w io.Writer, results []Result) error {
	text := "| load | way | offered | admitted | exactly | of exactly | of rate x T | falsely refused | bound | script calls/s | median decision | late |\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|\n"
	for _, r := range results {
		bound := "none"
		switch {
		case r.Bound > 0 && r.Holds():
			bound = fmt.Sprintf("%d holds", r.Bound)
		case r.Bound > 0:
			bound = fmt.Sprintf("%d BROKEN", r.Bound)
		}
		text += fmt.Sprintf("| %s | %s | %d | %d | %d | %.2f %% | %.2f %% | %.3f %% | %s | %.0f | %v | %v |\n",
			r.Scenario.Name, r.Way, r.Offered, r.Admitted, r.Exact, r.OfExact, r.OfRate, r.Falsely,
			bound, r.Calls, time.Duration(r.Median), r.Late.Round(time.Millisecond))
	}
	_, err := io.WriteString(w, text)
	return err
}
