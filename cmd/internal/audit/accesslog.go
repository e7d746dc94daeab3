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

// The constant enough is the largest number of requests that FromLog uses. It prefers the clients with the most
// refusals.
const enough = 4000

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
		return nil, noRefusal(clients, statuses)
	}
	var all []fit.Request
	for _, c := range clients {
		if len(all) > 0 && (len(all)+len(c.requests) > enough || c.refused == 0) {
			break
		}
		all = append(all, c.requests[:min(len(c.requests), enough)]...)
	}
	for i := range all {
		all[i].Done = all[i].Sent + resolution
	}
	slices.SortStableFunc(all, func(a, b fit.Request) int { return cmp.Compare(a.Sent, b.Sent) })
	found, err := fit.Log(all, resolution)
	if err != nil {
		return nil, err
	}
	r := &Report{Of: log.Name(), Requests: len(all), Seconds: (all[len(all)-1].Sent - all[0].Sent).Seconds()}
	r.fitted(all, found, nil)
	if found.Returned && len(r.Undecided) == 0 { // otherwise the limit is unknown, and so is the excess
		r.Most = mostOf(all, 0, found)
	}
	r.judge()
	if len(r.Undecided) > 0 {
		r.Faults++
	}
	r.Rules = rules(found, r)
	return r, nil
}

type logged struct {
	requests []fit.Request
	refused  int
	errors   map[int]int // number of admitted requests by status, for statuses from 400 on
}

// noRefusal returns the error for a log without a refusal. It names the statuses in the log that may be refusals.
func noRefusal(clients []*logged, statuses []int) error {
	all, counts := 0, map[int]int{}
	for _, c := range clients {
		all += len(c.requests)
		for status, n := range c.errors {
			counts[status] += n
		}
	}
	found := slices.SortedFunc(maps.Keys(counts), func(a, b int) int { return cmp.Or(counts[b]-counts[a], a-b) })
	says := fmt.Sprintf("no request of %d was refused with %s", all, strings.Trim(fmt.Sprint(statuses), "[]"))
	if len(found) == 0 {
		return errors.New(says)
	}
	var others []string
	for _, status := range found[:min(len(found), 3)] {
		others = append(others, fmt.Sprintf("%d x %d", counts[status], status))
	}
	return fmt.Errorf("%s: %s; if %d is a refusal: --refused %d", says, strings.Join(others, ", "), found[0], found[0])
}

// readLog returns the requests of all clients, and the resolution of the times. The clients with the most refusals come
// first. It starts over if sorting the log needs more memory or the disk.
func readLog(log *accesslog.Log, statuses []int) (all []*logged, resolution time.Duration, err error) {
	for {
		all, resolution, err = tryLog(log, statuses)
		if !errors.Is(err, accesslog.ErrUnsorted) {
			return all, resolution, err
		}
		if err := log.Widen(); err != nil {
			return nil, 0, err
		}
	}
}

func tryLog(log *accesslog.Log, statuses []int) (all []*logged, resolution time.Duration, err error) {
	clients := map[string]*logged{}
	resolution = time.Second
	for {
		e, err := log.Next()
		var line *accesslog.LineError
		switch {
		case errors.As(err, &line):
			continue
		case errors.Is(err, io.EOF):
			for _, c := range clients {
				all = append(all, c)
			}
			slices.SortFunc(all, func(a, b *logged) int {
				return cmp.Or(cmp.Compare(b.refused, a.refused), cmp.Compare(len(b.requests), len(a.requests)))
			})
			if len(all) == 0 {
				return nil, 0, fmt.Errorf("%s has no request", log.Name())
			}
			return all, resolution, nil
		case err != nil:
			return nil, 0, err
		}
		if e.Time.Nanosecond() != 0 {
			resolution = time.Millisecond
		}
		c := clients[string(e.Client)]
		if c == nil {
			c = &logged{errors: map[int]int{}}
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
