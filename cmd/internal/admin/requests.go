package admin

import (
	"sync"
	"time"
)

// Requests has the counts of clients' requests so far. A request counts once, even if it matches several rules.
type Requests struct {
	Answered uint64 // all requests that were answered
	Refused  uint64 // requests that a rule refused
	Failures uint64 // requests that the upstream did not serve
	InFlight int64  // requests that are not answered yet
	Times    Times  // times of the requests that were passed on and answered
}

// Times is a histogram of answer times, with ascending bounds.
type Times struct {
	Bounds []float64 // in seconds
	Counts []uint64  // requests within each bound; the last element is the number of all requests
}

// A requestsView has the rates of the last second and the times of the last minute.
type requestsView struct {
	Total    uint64  `json:"total"`
	Rate     float32 `json:"rate"` // requests per second
	Refused  float32 `json:"refused"`
	Failures float32 `json:"failures"`
	InFlight int64   `json:"in_flight"`
	Timed    bool    `json:"timed"`
	// Times describes the requests passed on in the last minute. It is null if there were none.
	Times *timesView `json:"times"`
}

// A timesView has the times in milliseconds within which given percentages of the requests were answered. Each time is
// estimated from the histogram bucket of the true time. If the true time is above the last bound of the histogram, the
// estimate is this bound.
type timesView struct {
	P50       float32 `json:"p50_ms"`
	P95       float32 `json:"p95_ms"`
	P99       float32 `json:"p99_ms"`
	LastBound float32 `json:"most_ms"`
}

// minute is the number of ticks that the shown times cover.
const minute = 60

type requestRates struct {
	mu     sync.Mutex
	last   time.Time
	before Requests
	counts [minute][]uint64 // counts of the times at the last ticks; the counts of tick n are at n % minute
	ticks  uint64
	view   requestsView
}

func (r *requestRates) tick(now time.Time, total Requests) {
	r.mu.Lock()
	defer r.mu.Unlock()
	elapsed := now.Sub(r.last).Seconds()
	if r.last.IsZero() { // the first tick: earlier requests do not belong to this second
		r.before, elapsed = total, 1
		for i := range r.counts {
			r.counts[i] = total.Times.Counts
		}
	}
	r.view = requestsView{
		Total:    total.Answered,
		Rate:     perSecond(total.Answered-r.before.Answered, elapsed),
		Refused:  perSecond(total.Refused-r.before.Refused, elapsed),
		Failures: perSecond(total.Failures-r.before.Failures, elapsed),
		InFlight: total.InFlight,
		Timed:    len(total.Times.Bounds) > 0,
		Times:    total.Times.since(r.counts[r.ticks%minute]),
	}
	r.counts[r.ticks%minute] = total.Times.Counts
	r.ticks++
	r.last, r.before = now, total
}

// since returns the times of the requests after an earlier time. The parameter before has the counts at that time.
func (t Times) since(before []uint64) *timesView {
	last := len(t.Counts) - 1
	if last < 1 || len(before) != len(t.Counts) || t.Counts[last] == before[last] {
		return nil
	}
	counts := make([]uint64, len(t.Counts))
	for i := range counts {
		counts[i] = t.Counts[i] - before[i]
	}
	ms := func(share float64) float32 { return float32(1e3 * quantile(t.Bounds, counts, share)) }
	return &timesView{P50: ms(0.50), P95: ms(0.95), P99: ms(0.99), LastBound: float32(1e3 * t.Bounds[last-1])}
}

// quantile returns the time within which a share of the requests was answered. It assumes that the requests in a bucket
// of the histogram are spread evenly. An element of counts is the number of requests up to a bound, and the last
// element is the number of all requests.
func quantile(bounds []float64, counts []uint64, share float64) float64 {
	rank := share * float64(counts[len(counts)-1])
	from, countBelow := 0.0, uint64(0)
	for i, bound := range bounds {
		if n := counts[i]; float64(n) >= rank && n > countBelow {
			return from + (bound-from)*(rank-float64(countBelow))/float64(n-countBelow)
		}
		from, countBelow = bound, counts[i]
	}
	return from
}

func (r *requestRates) latest() *requestsView {
	r.mu.Lock()
	defer r.mu.Unlock()
	view := r.view
	return &view
}
