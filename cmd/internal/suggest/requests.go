package suggest

import (
	"time"

	"github.com/weir-go/weir/cmd/internal/trace"
)

// requests are those of a rule, ready to be replayed again and again. What is kept of them in memory grows with the
// number of keys, and not with the requests.
type requests struct {
	trace   *trace.Trace
	byKeys  bool     // what is refused are keys
	count   uint64   // without those in a tier
	keys    uint64   // of those
	totals  []uint64 // costs of all requests of each key
	most    uint64   // the largest of them
	dearest uint64   // the largest cost of one request
	span    time.Duration
	peaks   *peaks
}

func newRequests(t *trace.Trace, byKeys bool) (*requests, error) {
	r := &requests{trace: t, byKeys: byKeys, totals: make([]uint64, t.Keys)}
	var first, last int64
	seen := make([]bool, t.Keys)
	err := r.each(func(q *trace.Request) bool {
		if r.count == 0 {
			first = q.UnixNano
		}
		last = q.UnixNano
		r.count++
		if !seen[q.Key] {
			seen[q.Key] = true
			r.keys++
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

// each calls a function for each request that is not in a tier, until it returns false.
func (r *requests) each(call func(*trace.Request) bool) error {
	reader, q := r.trace.Read(), trace.Request{}
	for reader.Next(&q) {
		if q.Tier == 0 && !call(&q) {
			return nil
		}
	}
	return reader.Err()
}
