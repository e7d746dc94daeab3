package redislimit

import (
	"sync"
	"time"
)

// An outage counts the parts of a store that are lost, and how long any part was. It reads the clock under the lock, so
// that the time never decreases. All methods may be called concurrently.
type outage struct {
	mu    sync.Mutex
	parts int           // that are lost
	since time.Time     // when the first of them was
	past  time.Duration // of outages that are over
}

// begin notes that a part is lost, and reports whether it is the first.
func (o *outage) begin(now func() time.Time) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.parts++; o.parts == 1 {
		o.since = now()
	}
	return o.parts == 1
}

// end notes that a part is back, and reports whether it was the last that was lost.
func (o *outage) end(now func() time.Time) (last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.parts--; o.parts == 0 {
		o.past += now().Sub(o.since)
	}
	return o.parts == 0
}

// is returns how many parts are lost.
func (o *outage) is() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.parts
}

// time returns for how long any part was lost until now.
func (o *outage) time(now func() time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.parts <= 0 {
		return o.past
	}
	return o.past + now().Sub(o.since)
}
