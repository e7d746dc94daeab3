package suggest

import (
	"time"

	"github.com/weir-go/weir/cmd/internal/trace"
)

// requests has the requests of a rule, for many replays. Its memory grows with the number of keys, not with the number
// of requests.
type requests struct {
	trace   *trace.Trace
	count   uint64   // number of requests that are not in a tier
	keys    uint64   // number of keys of these requests
	keyDays uint64   // sum over all keys of the number of days on which the key had requests
	totals  []uint64 // cost of all requests of each key
	most    uint64   // the largest number in totals
	dearest uint64   // the largest cost of a request
	span    time.Duration
	peaks   *peaks
}

func newRequests(t *trace.Trace) (*requests, error) {
	r := &requests{trace: t, totals: make([]uint64, t.Keys)}
	var first, last int64
	came := make([]int64, t.Keys) // for each key, the day after the last day on which it had a request
	err := r.each(func(q *trace.Request) bool {
		if r.count == 0 {
			first = q.UnixNano
		}
		last = q.UnixNano
		r.count++
		if came[q.Key] == 0 {
			r.keys++
		}
		if next := dayOf(q) + 1; came[q.Key] != next {
			came[q.Key] = next
			r.keyDays++
		}
		r.totals[q.Key] += q.Cost
		r.most, r.dearest = max(r.most, r.totals[q.Key]), max(r.dearest, q.Cost)
		return true
	})
	r.span = time.Duration(last - first)
	if err == nil {
		r.peaks, err = newPeaks(r)
	}
	return r, err
}

func dayOf(q *trace.Request) int64 { return q.UnixNano / int64(24*time.Hour) }

// The method each calls a function for each request that is not in a tier. It stops when the function returns false.
func (r *requests) each(call func(*trace.Request) bool) error {
	reader, q := r.trace.Read(), trace.Request{}
	for reader.Next(&q) {
		if q.Tier == 0 && !call(&q) {
			return nil
		}
	}
	return reader.Err()
}
