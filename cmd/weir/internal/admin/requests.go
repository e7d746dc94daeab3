package admin

import (
	"sync"
	"time"
)

// Requests are the requests of clients so far. Each counts once, however many rules it matches.
type Requests struct {
	Answered uint64        // all
	Refused  uint64        // by a rule
	Failures uint64        // that the upstream did not serve
	Passed   uint64        // that were passed on and answered
	Time     time.Duration // of those, all together
}

// A requestsView is the requests of the last second.
type requestsView struct {
	Total    uint64  `json:"total"`
	Rate     float32 `json:"rate"` // requests a second
	Refused  float32 `json:"refused"`
	Failures float32 `json:"failures"`
	// Mean is the time of a request that is passed on, in milliseconds; null if there was none.
	Mean *float32 `json:"mean_ms"`
}

// requestRates holds the requests at the last tick, and their rates then.
type requestRates struct {
	mu     sync.Mutex
	last   time.Time
	before Requests
	view   requestsView
}

// tick computes the rates since the last one.
func (r *requestRates) tick(now time.Time, total Requests) {
	r.mu.Lock()
	defer r.mu.Unlock()
	elapsed := now.Sub(r.last).Seconds()
	if r.last.IsZero() { // what was before is not of this second
		r.before, elapsed = total, 1
	}
	r.view = requestsView{
		Total:    total.Answered,
		Rate:     perSecond(total.Answered-r.before.Answered, elapsed),
		Refused:  perSecond(total.Refused-r.before.Refused, elapsed),
		Failures: perSecond(total.Failures-r.before.Failures, elapsed),
	}
	if passed := total.Passed - r.before.Passed; passed > 0 {
		mean := float32((total.Time - r.before.Time).Seconds() * 1e3 / float64(passed))
		r.view.Mean = &mean
	}
	r.last, r.before = now, total
}

func (r *requestRates) now() *requestsView {
	r.mu.Lock()
	defer r.mu.Unlock()
	view := r.view
	return &view
}
