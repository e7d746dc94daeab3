package redislimit

import (
	"slices"
	"sync"
	"time"
)

// An outage counts the lost parts of a store, and measures for how long at least one was lost. It reads the clock while
// it has the lock, so the measured time never decreases.
type outage struct {
	mu       sync.Mutex
	parts    int           // lost now
	since    time.Time     // when the first of them was lost
	pastTime time.Duration // time of outages that are over
	kinds    []string      // logged in this outage
}

// begin notes that a part is lost, and reports whether it is the first.
func (o *outage) begin(kind string, now func() time.Time) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.parts++; o.parts == 1 {
		o.since, o.kinds = now(), []string{kind}
	}
	return o.parts == 1
}

// addKind reports whether a kind of failure is new in this outage, and counts it as logged.
func (o *outage) addKind(kind string) bool {
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
		o.pastTime += now().Sub(o.since)
	}
	return o.parts == 0
}

func (o *outage) lostParts() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.parts
}

func (o *outage) totalTime(now func() time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.parts <= 0 {
		return o.pastTime
	}
	return o.pastTime + now().Sub(o.since)
}
