package redislimit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/redislimit/internal/defaults"
)

type life struct {
	node     string // limiters with equal node and numbers are one limit
	numbers  string // the numbers of a shared name; guarded by the lock of the kin
	mu       sync.Mutex
	isClosed atomic.Bool
	outlives bool
}

// outlive starts the background work of a closed limiter, if there is work. It returns false if the client is closed,
// too.
//
// A limiter of requests in flight renews places until all are released or their lifetime is over, and the client stays
// open for that long. Any other limiter charges its debts.
func (l *Limiter) outlive() bool {
	if !l.life.isClosed.Load() {
		return true
	}
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	if l.life.outlives {
		return true
	}
	if !l.isBusy() {
		l.client.limiters.kin.leave(l)
		return true
	}
	if l.flight != nil {
		l.life.outlives = l.client.limiters.flights.add()
	} else {
		l.life.outlives = l.client.limiters.kin.begin()
	}
	if l.life.outlives {
		go l.doTheRest()
	}
	return l.life.outlives
}

// doTheRest does the background work of a closed limiter. When the work is done, it continues for one more tick, so
// that the store gets the last release.
func (l *Limiter) doTheRest() {
	ticker := time.NewTicker(defaults.KeepEvery)
	defer ticker.Stop()
	end, ended := l.client.leave, (chan struct{})(nil)
	if l.flight == nil {
		end, ended = l.client.limiters.kin.charge.Done, l.client.limiters.kin.ended
	}
	defer end()
	for idle := 0; idle < 2 || !l.rests(); {
		select {
		case <-ticker.C:
		case <-ended:
			l.life.mu.Lock()
			l.life.outlives = false
			l.life.mu.Unlock()
			l.debts.close()
			return
		}
		l.work()
		if idle++; l.isBusy() {
			idle = 0
		}
	}
}

func (l *Limiter) isBusy() bool {
	if f := l.flight; f != nil {
		return f.asking.Load() > 0 || f.entries.Size() > 0
	}
	owing, _ := l.owesHere()
	return owing > 0
}

// rests ends the background work if there is nothing to do, and reports whether it has ended.
func (l *Limiter) rests() bool {
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	if l.life.outlives = l.isBusy(); !l.life.outlives {
		l.client.limiters.kin.leave(l)
	}
	return !l.life.outlives
}

type limiters struct {
	flights flights
	kin     kin
}

func newLimiters() limiters { return limiters{flights: flights{places: newPlaces()}, kin: newKin()} }

type flights struct {
	places *places
	users
}

// users are the closed limiters that still use a client.
type users struct {
	mu       sync.Mutex
	n        int
	isClosed bool // the client is closed, or will be when the last user has left
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

func (u *users) remove() (last bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n--
	return u.isClosed && u.n == 0
}

// close returns true if this was the first call of close and the client has no users.
func (u *users) close() (unused bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	unused = !u.isClosed && u.n == 0
	u.isClosed = true
	return unused
}

func (c *Client) leave() {
	if c.limiters.flights.remove() {
		c.disconnect()
	}
}
