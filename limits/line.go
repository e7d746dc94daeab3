package limits

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/engine"
)

// lines are the requests that wait for tokens of a limit, those of each key in the order of their turns.
//
// A reservation in the middle of a line cannot be cancelled ([engine.Reservation.Cancel]): those behind have been told
// when to go. So a request that leaves the line hands its reservation to the one behind it, that one its own to the
// next, and the last reservation is cancelled.
type lines struct {
	mu sync.Mutex
	of map[engine.Key][]*turn
}

// A turn is a place in a line. lines.mu guards what follows ahead.
type turn struct {
	n     uint64 // tokens
	ahead *engine.Reservation
	delay time.Duration // of the reservation that it was made with
	at    time.Time     // when the tokens are there
	wake  func()        // called when at has changed; nil for none
}

// join reserves tokens behind all that are reserved. A turn that nothing waits for stands in no line.
func (l *lines) join(limiter *engine.Limiter, k engine.Key, n uint64, longest time.Duration, shadow bool) (t *turn,
	delay time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ahead, err := limiter.ReserveKey(k, n, longest)
	if err != nil {
		return nil, 0, err
	}
	delay = ahead.Delay()
	t = &turn{n: n, ahead: ahead, delay: delay, at: time.Now().Add(delay)}
	if !shadow {
		if l.of == nil {
			l.of = make(map[engine.Key][]*turn)
		}
		l.of[k] = append(l.of[k], t)
	}
	return t, delay, nil
}

// when returns the time until a turn, of whose changes wake is told from now on. The first time that is the delay of
// the reservation, by the clock of the limiter.
func (l *lines) when(t *turn, wake context.CancelFunc) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := t.wake == nil
	if t.wake = wake; first {
		return t.delay
	}
	return time.Until(t.at)
}

// left returns the time until a turn.
func (l *lines) left(t *turn) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(t.at)
}

// pass ends a turn whose tokens are used.
func (l *lines) pass(k engine.Key, t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(k, t)
}

// leave ends a turn whose tokens are not used. Those behind move up, unless some of them wait for another number of
// tokens: their reservations do not fit.
func (l *lines) leave(k engine.Key, t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	behind := l.remove(k, t)
	if !slices.ContainsFunc(behind, func(other *turn) bool { return other.n != t.n }) {
		for _, other := range behind {
			t.ahead, other.ahead = other.ahead, t.ahead
			t.at, other.at = other.at, t.at
			other.delay = time.Until(other.at) // also of one that has not looked yet
			if other.wake != nil {
				other.wake()
			}
		}
	}
	t.ahead.Cancel()
}

// remove takes a turn out of its line, and returns those behind it.
func (l *lines) remove(k engine.Key, t *turn) (behind []*turn) {
	line := l.of[k]
	i := slices.Index(line, t)
	if i < 0 {
		return nil
	}
	line = slices.Delete(line, i, i+1)
	if len(line) == 0 {
		delete(l.of, k)
		return nil
	}
	l.of[k] = line
	return line[i:]
}
