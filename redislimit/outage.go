package redislimit

import (
	"slices"
	"sync"
	"time"
)

// An outage counts the lost parts of a store, and measures for how long at least one part was lost. It reads the clock
// while it has the lock, so the measured time never decreases. All methods may be called concurrently.
type outage struct {
	mu    sync.Mutex
	parts int           // parts that are lost now
	since time.Time     // when the first of the lost parts was lost
	past  time.Duration // total time of outages that are over
	kinds []string      // kinds of failures that were logged in this outage
}

// begin notes that a part is lost because of a kind of failure. It reports whether this part is the first lost part.
func (o *outage) begin(kind string, now func() time.Time) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.parts++; o.parts == 1 {
		o.since, o.kinds = now(), []string{kind}
	}
	return o.parts == 1
}

// another reports whether a kind of failure must be logged. This is the case if parts are lost and the kind was not
// logged in this outage yet. If the result is true, the kind counts as logged.
func (o *outage) another(kind string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.parts <= 0 || slices.Contains(o.kinds, kind) {
		return false
	}
	o.kinds = append(o.kinds, kind)
	return true
}

// end notes that a part is back, and reports whether it was the last lost part.
func (o *outage) end(now func() time.Time) (last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.parts--; o.parts == 0 {
		o.past += now().Sub(o.since)
	}
	return o.parts == 0
}

// The method is returns the number of parts that are lost now.
func (o *outage) is() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.parts
}

// The method time returns how long at least one part was lost, until now.
func (o *outage) time(now func() time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.parts <= 0 {
		return o.past
	}
	return o.past + now().Sub(o.since)
}
