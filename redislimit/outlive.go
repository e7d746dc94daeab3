package redislimit

import (
	"sync"
	"time"

	"github.com/weir-go/weir/redislimit/internal/defaults"
)

// outlive has the places of a closed limiter renewed, which are of requests that are still in flight or being decided,
// until all are released or their lifetime is over. The client stays open for that long. It does nothing before the
// limiter is closed, and is called after that and for each entry that a closed limiter makes.
func (l *Limiter) outlive() {
	f := l.flight
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isClosed && !f.outlives && f.isBusy() && l.client.flights.add() {
		f.outlives = true
		go l.renewTheRest()
	}
}

// renewTheRest renews the places of a closed limiter until there are none. It stays for another tick, so that the store
// hears of the last release.
func (l *Limiter) renewTheRest() {
	ticker := time.NewTicker(defaults.KeepEvery)
	defer ticker.Stop()
	for idle := 0; idle < 2 || !l.flight.rests(); {
		<-ticker.C
		l.follow()
		l.client.watchEviction(l.now())
		l.probeLost()
		l.renewPlaces()
		if idle++; l.flight.isBusy() {
			idle = 0
		}
	}
	l.client.leave()
}

// isBusy reports whether there are places, or may be in a moment.
func (f *flight) isBusy() bool { return f.asking.Load() > 0 || f.entries.Size() > 0 }

// rests reports whether there are no places. After that outlive begins again.
func (f *flight) rests() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outlives = f.isBusy()
	return !f.outlives
}

// flights is what the limiters of a client have in flight, also those that are closed.
type flights struct {
	places *places
	users
}

// users are the closed limiters that still use a client.
type users struct {
	mu       sync.Mutex
	n        int
	isClosed bool // the client is, or will be when the last of them has left
}

// add adds a user, unless the client is closed and has none.
func (u *users) add() (added bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.isClosed && u.n == 0 {
		return false
	}
	u.n++
	return true
}

// remove removes a user, and reports whether it was the last one of a closed client.
func (u *users) remove() (last bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n--
	return u.isClosed && u.n == 0
}

// close closes the client for those that are not yet users, and reports whether there are none.
func (u *users) close() (unused bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	unused = !u.isClosed && u.n == 0
	u.isClosed = true
	return unused
}

// leave ends the use of a client by a closed limiter.
func (c *Client) leave() {
	if c.flights.remove() {
		c.disconnect()
	}
}
