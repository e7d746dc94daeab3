package proxy

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// A Load contains what wrk reports about a run.
type Load struct {
	Requests  int64   `json:"requests"` // requests that were answered
	PerSecond float64 `json:"per_second"`
	// Refused is the number of answers with a status of 400 or more.
	Refused int64 `json:"refused"`
	// Failed is the number of connections that could not be made, broke, or were too slow.
	Failed int64         `json:"failed"`
	P50    time.Duration `json:"p50_ns"`
	P90    time.Duration `json:"p90_ns"`
	P99    time.Duration `json:"p99_ns"`
}

var (
	requestsLine   = regexp.MustCompile(`(?m)^\s+(\d+) requests in `)
	perSecondLine  = regexp.MustCompile(`(?m)^Requests/sec:\s+([0-9.]+)$`)
	refusedLine    = regexp.MustCompile(`(?m)^\s+Non-2xx or 3xx responses: (\d+)$`)
	failedLine     = regexp.MustCompile(`(?m)^\s+Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$`)
	percentileLine = regexp.MustCompile(`(?m)^\s+(50|90|99)%\s+([0-9.]+)(us|ms|s|m|h)$`)
)

// parseWrk parses the output of wrk --latency. Only the lines about refusals and failures may be missing.
func parseWrk(text string) (Load, error) {
	var r Load
	total, rate := requestsLine.FindStringSubmatch(text), perSecondLine.FindStringSubmatch(text)
	if total == nil || rate == nil {
		return Load{}, fmt.Errorf("wrk printed no number of requests: %q", text)
	}
	var err error
	if r.Requests, err = strconv.ParseInt(total[1], 10, 64); err != nil {
		return Load{}, fmt.Errorf("requests of wrk: %w", err)
	}
	if r.PerSecond, err = strconv.ParseFloat(rate[1], 64); err != nil {
		return Load{}, fmt.Errorf("requests/s of wrk: %w", err)
	}
	if r.Refused, err = addUp(refusedLine.FindStringSubmatch(text)); err != nil {
		return Load{}, fmt.Errorf("refused requests of wrk: %w", err)
	}
	if r.Failed, err = addUp(failedLine.FindStringSubmatch(text)); err != nil {
		return Load{}, fmt.Errorf("socket errors of wrk: %w", err)
	}
	if err := r.percentiles(text); err != nil {
		return Load{}, err
	}
	return r, nil
}

// addUp returns the sum of the numbers in a regular expression's match, after its first element.
func addUp(line []string) (total int64, err error) {
	for i, text := range line {
		if i == 0 {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func (r *Load) percentiles(text string) error {
	at := map[string]*time.Duration{"50": &r.P50, "90": &r.P90, "99": &r.P99}
	for _, line := range percentileLine.FindAllStringSubmatch(text, -1) {
		d, err := time.ParseDuration(line[2] + line[3])
		if err != nil {
			return fmt.Errorf("latency of wrk: %w", err)
		}
		*at[line[1]] = d
		delete(at, line[1])
	}
	if len(at) > 0 {
		return fmt.Errorf("wrk printed no 50th, 90th and 99th percentile: %q", text)
	}
	return nil
}
