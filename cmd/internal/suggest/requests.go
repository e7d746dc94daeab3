package suggest

import (
	"time"

	"github.com/weir-go/weir/cmd/internal/trace"
)

// requests has the requests of a rule, for many replays. Its memory grows with the number of keys, not with the number
// of requests.
type requests struct {
	trace    *trace.Trace
	count    uint64   // number of requests that are not in a tier
	keys     uint64   // number of keys of these requests
	keyDays  uint64   // sum over all keys of the number of days on which the key had requests
	totals   []uint64 // cost of all requests of each key
	maxTotal uint64   // the largest number in totals
	maxCost  uint64   // the largest cost of a request
	span     time.Duration
	peaks    *peaks
}

func newRequests(t *trace.Trace) (*requests, error) {
	r := &requests{trace: t, totals: make([]uint64, t.Keys)}
	var first, last int64
	dayAfter := make([]int64, t.Keys) // for each key, the day after the last day on which it had a request
	err := r.forEach(func(q *trace.Request) bool {
		if r.count == 0 {
			first = q.UnixNano
		}
		last = q.UnixNano
		r.count++
		if dayAfter[q.Key] == 0 {
			r.keys++
		}
		if next := dayOf(q) + 1; dayAfter[q.Key] != next {
			dayAfter[q.Key] = next
			r.keyDays++
		}
		r.totals[q.Key] += q.Cost
		r.maxTotal, r.maxCost = max(r.maxTotal, r.totals[q.Key]), max(r.maxCost, q.Cost)
		return true
	})
	r.span = time.Duration(last - first)
	if err == nil {
		r.peaks, err = newPeaks(r)
	}
	return r, err
}

func dayOf(q *trace.Request) int64 { return q.UnixNano / int64(24*time.Hour) }

// forEach calls visit for each request that is not in a tier. It stops when visit returns false.
func (r *requests) forEach(visit func(*trace.Request) bool) error {
	reader, q := r.trace.Read(), trace.Request{}
	for reader.Next(&q) {
		if q.Tier == 0 && !visit(&q) {
			return nil
		}
	}
	return reader.Err()
}
