package redislimit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/redislimit/internal/defaults"
)

type life struct {
	identity string // limiters with equal identity and numbers are one limit
	numbers  string // the numbers of a shared name; guarded by the lock of the registry
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
		l.client.limiters.registry.remove(l)
		return true
	}
	if l.flight != nil {
		l.life.outlives = l.client.limiters.flights.add()
	} else {
		l.life.outlives = l.client.limiters.registry.begin()
	}
	if l.life.outlives {
		go l.finishWork()
	}
	return l.life.outlives
}

// finishWork does the background work of a closed limiter. When the work is done, it continues for one more tick, so
// that the store gets the last release.
func (l *Limiter) finishWork() {
	ticker := time.NewTicker(defaults.KeepEvery)
	defer ticker.Stop()
	end, ended := l.client.removeUser, (chan struct{})(nil)
	if l.flight == nil {
		end, ended = l.client.limiters.registry.charging.Done, l.client.limiters.registry.ended
	}
	defer end()
	for idle := 0; idle < 2 || !l.endIfIdle(); {
		select {
		case <-ticker.C:
		case <-ended:
			l.life.mu.Lock()
			l.life.outlives = false
			l.life.mu.Unlock()
			l.debtFile.close()
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
		return f.deciding.Load() > 0 || f.entries.Size() > 0
	}
	keys, _ := l.countDebts()
	return keys > 0
}

// endIfIdle ends the background work if there is nothing to do, and reports whether it has ended.
func (l *Limiter) endIfIdle() bool {
	l.life.mu.Lock()
	defer l.life.mu.Unlock()
	if l.life.outlives = l.isBusy(); !l.life.outlives {
		l.client.limiters.registry.remove(l)
	}
	return !l.life.outlives
}

type limiters struct {
	flights  flights
	registry registry
}

func newLimiters() limiters {
	return limiters{flights: flights{places: newPlaces()}, registry: newRegistry()}
}

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

func (c *Client) removeUser() {
	if c.limiters.flights.remove() {
		c.disconnect()
	}
}
