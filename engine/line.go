package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/pause"
	"github.com/weir-go/weir/shard"
)

// lines are the callers that wait for tokens of a limiter, those of each key in the order of their turns. They are of
// this process: of a shared table each process has its own.
//
// A reservation in the middle of a line cannot be given back ([Limiter.Reserve]): those behind have been told when to
// go. So a caller that leaves has those behind it move up.
type lines struct {
	mu sync.Mutex
	of map[Key][]*Turn
}

// A Turn is a place in the line of a key, with tokens that were taken ahead of their time ([Limiter.Queue]). It ends
// with Come or with Leave. It may be used from any goroutine. A line locks and allocates; decisions do not.
type Turn struct {
	limiter *Limiter
	key     Key
	n       uint64
	plan    *shard.Plan // by which the tokens were reserved

	// The limiter's lines.mu guards what follows.
	parts []part    // n tokens in all, in the order in which they were reserved
	due   int64     // when the tokens are there, by the limiter's clock
	at    time.Time // the same, by the clock of the machine
	asked bool      // Until was called
	delay time.Duration
	moved func() // called when at has changed; nil for none
}

// A part is tokens of a reservation that belong to a turn. Those who move up by other numbers of tokens than their own
// share reservations.
type part struct {
	of     *reservation
	n      uint64
	shared bool // with another turn, or some were given back
}

// Queue is [Limiter.Reserve] for a caller that waits in line: if one that waits in front of it for the same key
// leaves, it moves up, and [Turn.Until] says how long to wait then. delay is 0 if the tokens were there. On the other
// algorithms, and with the same errors, there is no line.
func (l *Limiter) Queue(k Key, n uint64, maxWait time.Duration) (t *Turn, delay time.Duration, err error) {
	l.requireMade()
	if t, delay, err = l.queue(k, n, maxWait); err != nil {
		return nil, 0, fmt.Errorf("engine: Queue(%d): %w", n, err)
	}
	return t, delay, nil
}

// queue is Queue. A delay of 0 means that the turn is in no line: its tokens were there. What the turn itself says
// later does not tell that: it may have moved up to the front before its caller looks.
func (l *Limiter) queue(k Key, n uint64, maxWait time.Duration) (t *Turn, delay time.Duration, err error) {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	r := &reservation{}
	if err := l.reserve(r, k, n, maxWait); err != nil {
		return nil, 0, err
	}
	t = &Turn{limiter: l, key: k, n: n, plan: r.plan, parts: []part{{r, n, false}}, due: r.until, delay: r.delay, at: time.Now().Add(r.delay)}
	if r.delay > 0 {
		if l.lines.of == nil {
			l.lines.of = map[Key][]*Turn{}
		}
		l.lines.of[k] = append(l.lines.of[k], t)
	}
	return t, r.delay, nil
}

// Until returns how long to wait from now on, 0 or less if the tokens are there. From now on moved is called when the
// wait has become shorter. moved must not block, nor call a method of a Turn. It may be nil.
func (t *Turn) Until(moved func()) time.Duration {
	t.limiter.lines.mu.Lock()
	defer t.limiter.lines.mu.Unlock()
	first := !t.asked && moved != nil
	if moved != nil {
		t.moved, t.asked = moved, true
	}
	if first {
		return t.delay // without the error of a clock of the caller's
	}
	return time.Until(t.at)
}

// Come ends the turn of a caller that goes on now, and returns the receipt for its tokens. If the caller has moved up
// by another number of tokens than its own, it is the receipt for nothing.
func (t *Turn) Come() Receipt {
	t.limiter.lines.mu.Lock()
	defer t.limiter.lines.mu.Unlock()
	t.overtake()
	t.limiter.lines.remove(t)
	if len(t.parts) != 1 || t.parts[0].shared {
		return Receipt{}
	}
	receipt := t.parts[0].of.receipt
	t.parts = nil // a second call has the receipt for nothing
	return receipt
}

// Leave ends the turn of a caller that does not wait any more. Those behind it move up. If all wait for the same number
// of tokens, each moves to the place of the one in front of it. Otherwise they move up by the tokens of the one that
// leaves, as far as no one outside of the line has reserved in between. So the tokens at the end of the line come back.
// If another caller has reserved behind the line, those come back that its reservation leaves ([Receipt.Refund]).
func (t *Turn) Leave() {
	l := &t.limiter.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	behind, in := l.remove(t)
	if !in { // it has come, or left before, or never had to wait
		return
	}
	var moved []*Turn
	if slices.ContainsFunc(behind, func(other *Turn) bool { return other.n != t.n }) {
		moved = t.shift(behind)
	} else {
		for _, other := range behind {
			if t.due > other.due { // what was given back may have been reserved by a later one for an earlier time
				continue
			}
			t.parts, other.parts = other.parts, t.parts
			if t.due < other.due {
				t.at, other.at = other.at, t.at
				t.due, other.due = other.due, t.due
				moved = append(moved, other)
			}
		}
	}
	for _, last := range slices.Backward(t.parts) {
		last.of.receipt.Refund(last.n)
	}
	haveMoved(moved)
}

// shift moves turns up by the tokens of one that has left in front of them, as long as they stand next to each other:
// one behind somebody else would otherwise go together with him. It returns those that have moved.
func (t *Turn) shift(behind []*Turn) []*Turn {
	end := t.due
	for i, other := range behind {
		if other.due == end { // the tokens of both come at one time
			t.parts, other.parts = exchanged(t.parts, other.parts, other.n)
			continue
		}
		gap := other.due - int64(other.plan.Span(other.n, other.key.quota)) - end
		if half := int64(other.plan.Span(1, other.key.quota) / 2); gap > half || gap < -half {
			return behind[:i] // somebody else has reserved there, or the rate was changed
		}
		end = other.due
		by := min(t.plan.Span(t.n, t.key.quota), other.plan.Span(t.n, other.key.quota))
		other.due, other.at = other.due-int64(by), other.at.Add(-by)
		t.parts, other.parts = exchanged(t.parts, other.parts, other.n)
	}
	return behind
}

// exchanged returns the parts of a turn that leaves and of the one behind it, which gets the first n tokens of both.
func exchanged(leaves, stays []part, n uint64) (last, first []part) {
	for _, p := range append(leaves, stays...) {
		switch {
		case n == 0:
			last = append(last, p)
			continue
		case p.n > n:
			last = append(last, part{p.of, p.n - n, true})
			p.n, p.shared = n, true
		}
		first, n = append(first, p), n-p.n
	}
	return last, first
}

// overtake makes a turn that comes the first of its line. Those in front of it could have come, too: they come later,
// but not after the time at which this one could. So those who stay stand next to each other.
func (t *Turn) overtake() {
	line := t.limiter.lines.of[t.key]
	for i := slices.Index(line, t) - 1; i >= 0; i-- {
		other := line[i]
		own, others := int64(t.plan.Span(t.n, t.key.quota)), int64(other.plan.Span(other.n, other.key.quota))
		gap := t.due - own - other.due
		if half := int64(t.plan.Span(1, t.key.quota) / 2); gap > half || gap < -half {
			return // somebody else has reserved there
		}
		other.due, t.due = t.due, t.due-others
		other.at = other.at.Add(time.Duration(own))
		other.parts, t.parts = exchanged(other.parts, t.parts, t.n)
	}
}

// haveMoved is called when the times of turns have changed, and the line and its tokens are what they are to be. One
// whose function panics keeps no other from being told.
func haveMoved(turns []*Turn) {
	if len(turns) > 0 {
		defer haveMoved(turns[1:])
		turns[0].hasMoved()
	}
}

// hasMoved is called when the time of a turn has changed.
func (t *Turn) hasMoved() {
	t.delay = max(time.Until(t.at), 0) // also of one that has not asked yet
	if t.moved != nil {
		t.moved()
	}
}

// remove takes a turn out of its line, and returns those behind it. in is false if it is not there.
func (l *lines) remove(t *Turn) (behind []*Turn, in bool) {
	line := l.of[t.key]
	i := slices.Index(line, t)
	if i < 0 {
		return nil, false
	}
	line = slices.Delete(line, i, i+1)
	if len(line) == 0 {
		delete(l.of, t.key)
		return nil, true
	}
	l.of[t.key] = line
	return line[i:], true
}

// wait waits for the turn, or leaves when the context is done.
func (t *Turn) wait(ctx context.Context) error {
	for {
		moved, wake := context.WithCancel(ctx)
		err := pause.For(moved, t.Until(wake))
		wake()
		switch {
		case err == nil:
			t.Come()
			return nil
		case ctx.Err() != nil:
			t.Leave()
			return err
		}
	}
}
