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

// lines holds the callers that wait for tokens of a limiter, for each key in the order of their turns. They belong to
// this process: each process of a shared table has its own lines.
//
// A reservation in the middle of a line cannot be given back ([Limiter.Reserve]), because the callers behind it already
// know when their reservations are due. So when a caller leaves, the callers behind it move up.
type lines struct {
	mu sync.Mutex
	of map[Key][]*Turn
}

// A Turn is a place in the line of a key, with tokens that were taken ahead of time ([Limiter.Queue]). Come or Leave
// ends it. It may be used from any goroutine. A line locks and allocates; decisions do not.
type Turn struct {
	limiter *Limiter
	key     Key
	n       uint64
	plan    *shard.Plan // by which the tokens were reserved

	// The limiter's lines.mu guards what follows.
	parts []part // n tokens in all, in the order in which they were reserved; none of a turn that has ended
	due   int64  // when the tokens are there, by the limiter's clock
	moved func() // called when due is earlier than before; nil for none
}

// A part is the tokens of a reservation that belong to one turn. Two turns share a reservation after a move up by a
// number of tokens other than their own.
type part struct {
	of     *reservation
	n      uint64
	shared bool // with another turn, or some tokens were given back
}

// Queue is [Limiter.Reserve] for a caller that waits in line. If a caller in front of it in the line of the same key
// leaves, it moves up, and [Turn.Until] returns the new wait. delay is 0 if the tokens were there. Queue returns the
// errors of Reserve, also for algorithms other than the token bucket, which have no line.
func (l *Limiter) Queue(k Key, n uint64, maxWait time.Duration) (t *Turn, delay time.Duration, err error) {
	l.requireMade()
	if t, delay, err = l.queue(k, n, maxWait); err != nil {
		return nil, 0, fmt.Errorf("engine: Queue(%d): %w", n, err)
	}
	return t, delay, nil
}

// queue is Queue. A delay of 0 means that the turn is in no line, because its tokens were there. The turn itself does
// not show this later: a turn that was in a line may have moved up to the front by then.
func (l *Limiter) queue(k Key, n uint64, maxWait time.Duration) (t *Turn, delay time.Duration, err error) {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	r := &reservation{}
	if err := l.reserve(r, k, n, maxWait); err != nil {
		return nil, 0, err
	}
	t = &Turn{limiter: l, key: k, n: n, plan: r.plan, parts: []part{{r, n, false}}, due: r.until}
	if r.delay > 0 {
		if l.lines.of == nil {
			l.lines.of = map[Key][]*Turn{}
		}
		l.lines.of[k] = append(l.lines.of[k], t)
	}
	return t, r.delay, nil
}

// Until returns how long to wait from now on, by the limiter's clock; 0 or less if the tokens are there. From now on,
// moved is called whenever the wait has become shorter. moved must not block and must not call a method of a Turn. If
// it is nil, nothing is called.
func (t *Turn) Until(moved func()) time.Duration {
	t.limiter.lines.mu.Lock()
	defer t.limiter.lines.mu.Unlock()
	t.moved = moved
	return time.Duration(t.due - t.limiter.clock.surely())
}

// Come ends the turn of a caller that proceeds now, and returns the receipt for its tokens. If the caller has moved up
// by a number of tokens other than its own, the receipt is void.
func (t *Turn) Come() Receipt {
	t.limiter.lines.mu.Lock()
	defer t.limiter.lines.mu.Unlock()
	t.overtake()
	t.limiter.lines.remove(t)
	parts := t.parts
	t.parts = nil // a second call returns a void receipt
	if len(parts) != 1 || parts[0].shared {
		return Receipt{}
	}
	return parts[0].of.receipt
}

// Leave ends the turn of a caller that does not proceed, whether it has waited or not. The callers behind it move up.
// If all wait for the same number of tokens, each moves to the place of the caller in front of it. Otherwise they move
// up by the tokens of the caller that leaves, unless a caller outside of the line has reserved in between, or their
// tokens come with a later refill ([BatchRefill]). So the tokens at the end of the line come back. If another caller
// has reserved behind the line, only the tokens that its reservation does not need come back ([Receipt.Refund]).
func (t *Turn) Leave() {
	l := &t.limiter.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	behind := l.remove(t)
	var moved []*Turn
	if slices.ContainsFunc(behind, func(other *Turn) bool { return other.n != t.n }) {
		moved = t.shift(behind)
	} else {
		for _, other := range behind {
			if t.due > other.due { // a later caller may have reserved returned tokens, for an earlier time
				continue
			}
			t.parts, other.parts = other.parts, t.parts
			if t.due < other.due {
				t.due, other.due = other.due, t.due
				moved = append(moved, other)
			}
		}
	}
	for _, last := range slices.Backward(t.parts) {
		last.of.receipt.Refund(last.n)
	}
	t.parts = nil
	haveMoved(moved)
}

// shift moves turns up by the tokens of a turn in front of them that has left, as long as their tokens are adjacent. If
// a turn moved up past another caller's reservation, both callers would proceed at the same time. shift returns the
// turns whose wait is now shorter.
func (t *Turn) shift(behind []*Turn) (moved []*Turn) {
	end := t.due
	for _, other := range behind {
		if other.due == end { // the tokens of both come at one time
			t.parts, other.parts = exchanged(t.parts, other.parts, other.n)
			continue
		}
		gap := other.due - int64(other.plan.Span(other.n, other.key.quota)) - end
		if !other.ignores(gap) {
			return moved // another caller has reserved there, or the rate was changed
		}
		end = other.due
		by := min(t.plan.Span(t.n, t.key.quota), other.plan.Span(t.n, other.key.quota))
		other.due -= int64(by)
		t.parts, other.parts = exchanged(t.parts, other.parts, other.n)
		moved = append(moved, other)
	}
	return moved
}

// exchanged returns the parts of a turn that leaves and of the turn behind it, which gets the first n tokens of both.
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

// overtake moves a turn to the front of its line, because the caller of the turn proceeds now. The turns that were in
// front of it could have proceeded, too. They now proceed later, but no later than this turn could have. So the turns
// that stay are adjacent.
func (t *Turn) overtake() {
	line := t.limiter.lines.of[t.key]
	for i := slices.Index(line, t) - 1; i >= 0; i-- {
		other := line[i]
		own, others := int64(t.plan.Span(t.n, t.key.quota)), int64(other.plan.Span(other.n, other.key.quota))
		gap := t.due - own - other.due
		if !t.ignores(gap) {
			return // another caller has reserved there
		}
		other.due, t.due = t.due, t.due-others
		other.parts, t.parts = exchanged(other.parts, t.parts, t.n)
	}
}

// ignores reports whether a gap in front of the turn is at most half a token. Such a gap comes from rounding, or from a
// reservation under a quota with smaller tokens.
func (t *Turn) ignores(gap int64) bool {
	half := int64(t.plan.Span(1, t.key.quota) / 2)
	return -half <= gap && gap <= half
}

// haveMoved is called when the times of turns have changed, after the line and its tokens have been updated. If the
// function of one turn panics, the functions of the others are called all the same.
func haveMoved(turns []*Turn) {
	if len(turns) > 0 {
		defer haveMoved(turns[1:])
		if moved := turns[0].moved; moved != nil {
			moved()
		}
	}
}

// remove takes a turn out of its line, and returns the turns behind it. A turn that has ended, or did not have to wait,
// is not in a line.
func (l *lines) remove(t *Turn) (behind []*Turn) {
	line := l.of[t.key]
	i := slices.Index(line, t)
	if i < 0 {
		return nil
	}
	line = slices.Delete(line, i, i+1)
	if len(line) == 0 {
		delete(l.of, t.key)
		return nil
	}
	l.of[t.key] = line
	return line[i:]
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
