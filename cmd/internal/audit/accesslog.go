package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/audit/fit"
)

// maxLogRequests is the largest number of requests that FromLog uses. It prefers the clients with the most refusals.
const maxLogRequests = 4000

// FromLog finds the limit that explains the decisions in an access log. A request counts as refused if its answer has
// one of the statuses. Without statuses, 429 counts. Each client has its own bucket.
func FromLog(log *accesslog.Log, statuses []int) (*Report, error) {
	if len(statuses) == 0 {
		statuses = refusals[:1]
	}
	clients, resolution, err := readLog(log, statuses)
	if err != nil {
		return nil, err
	}
	if clients[0].refused == 0 {
		return nil, noRefusalError(clients, statuses)
	}
	var requests []fit.Request
	for _, c := range clients {
		if len(requests) > 0 && (len(requests)+len(c.requests) > maxLogRequests || c.refused == 0) {
			break
		}
		requests = append(requests, c.requests[:min(len(c.requests), maxLogRequests)]...)
	}
	for i := range requests {
		requests[i].Done = requests[i].Sent + resolution
	}
	slices.SortStableFunc(requests, func(a, b fit.Request) int { return cmp.Compare(a.Sent, b.Sent) })
	result, err := fit.Log(requests, resolution)
	if err != nil {
		return nil, err
	}
	r := &Report{Source: log.Name(), Requests: len(requests), Seconds: (requests[len(requests)-1].Sent - requests[0].Sent).Seconds()}
	r.setResult(requests, result, nil)
	if result.Returned && len(r.Undecided) == 0 { // otherwise the limit is unknown, and so is the excess
		r.Peak = peakOf(requests, 0, result)
	}
	r.judge()
	if len(r.Undecided) > 0 {
		r.Faults++
	}
	r.Rules = rules(result, r)
	return r, nil
}

type clientLog struct {
	requests []fit.Request
	refused  int
	errors   map[int]int // number of admitted requests by status, for statuses of 400 and above
}

// noRefusalError returns the error for a log without a refusal. It names statuses in the log that may be refusals.
func noRefusalError(clients []*clientLog, statuses []int) error {
	total, counts := 0, map[int]int{}
	for _, c := range clients {
		total += len(c.requests)
		for status, n := range c.errors {
			counts[status] += n
		}
	}
	candidates := slices.SortedFunc(maps.Keys(counts), func(a, b int) int { return cmp.Or(counts[b]-counts[a], a-b) })
	message := fmt.Sprintf("no request of %d was refused with %s", total, strings.Trim(fmt.Sprint(statuses), "[]"))
	if len(candidates) == 0 {
		return errors.New(message)
	}
	var texts []string
	for _, status := range candidates[:min(len(candidates), 3)] {
		texts = append(texts, fmt.Sprintf("%d x %d", counts[status], status))
	}
	return fmt.Errorf("%s: %s; if %d is a refusal: --refused %d", message, strings.Join(texts, ", "), candidates[0], candidates[0])
}

// readLog returns the requests of all clients, and the resolution of the times. The clients with the most refusals come
// first. It starts over if sorting the log needs more memory or the disk.
func readLog(log *accesslog.Log, statuses []int) (clients []*clientLog, resolution time.Duration, err error) {
	for {
		clients, resolution, err = readLogOnce(log, statuses)
		if !errors.Is(err, accesslog.ErrUnsorted) {
			return clients, resolution, err
		}
		if err := log.Widen(); err != nil {
			return nil, 0, err
		}
	}
}

func readLogOnce(log *accesslog.Log, statuses []int) (sorted []*clientLog, resolution time.Duration, err error) {
	clients := map[string]*clientLog{}
	resolution = time.Second
	for {
		e, err := log.Next()
		var lineErr *accesslog.LineError
		switch {
		case errors.As(err, &lineErr):
			continue
		case errors.Is(err, io.EOF):
			for _, c := range clients {
				sorted = append(sorted, c)
			}
			slices.SortFunc(sorted, func(a, b *clientLog) int {
				return cmp.Or(cmp.Compare(b.refused, a.refused), cmp.Compare(len(b.requests), len(a.requests)))
			})
			if len(sorted) == 0 {
				return nil, 0, fmt.Errorf("%s has no request", log.Name())
			}
			return sorted, resolution, nil
		case err != nil:
			return nil, 0, err
		}
		if e.Time.Nanosecond() != 0 {
			resolution = time.Millisecond
		}
		c := clients[string(e.Client)]
		if c == nil {
			c = &clientLog{errors: map[int]int{}}
			clients[string(e.Client)] = c
		}
		allowed := !slices.Contains(statuses, e.Status)
		if !allowed {
			c.refused++
		} else if e.Status >= 400 {
			c.errors[e.Status]++
		}
		c.requests = append(c.requests, fit.Request{Sent: time.Duration(e.Time.UnixNano()), Key: string(e.Client), Allowed: allowed})
	}
}
