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

// lines has, for each key, the callers that wait for tokens, in the order of their turns. Each process of a shared
// table has its own lines.
type lines struct {
	mu sync.Mutex
	of map[Key][]*Turn
}

// A Turn is a place in the line of a key, with tokens that were taken ahead of time ([Limiter.Queue]). Come or Leave
// ends it. A Turn may be used from any goroutine. Its methods lock and allocate, but decisions do neither.
type Turn struct {
	limiter *Limiter
	key     Key
	n       uint64
	plan    *shard.Plan // the plan at the time of the reservation

	// lines.mu of the limiter guards the following fields.
	parts []part // n tokens in all, in the order of their reservation; none after the turn has ended
	due   int64  // when the tokens are available, by the limiter's clock
	moved func() // if not nil, called when due becomes earlier
}

// A part has the tokens of one reservation that belong to one turn.
type part struct {
	of     *reservation
	n      uint64
	shared bool // another turn has a part of the reservation, or some of its tokens were given back
}

// Queue is [Limiter.Reserve] for a caller that waits in line. If a caller in front of it leaves, this caller moves up,
// and [Turn.Until] returns the new wait. The result delay is 0 if the tokens were available. Queue returns the errors
// of Reserve, so it works only with token buckets.
func (l *Limiter) Queue(k Key, n uint64, maxWait time.Duration) (t *Turn, delay time.Duration, err error) {
	l.requireMade()
	if t, delay, err = l.queue(k, n, maxWait); err != nil {
		return nil, 0, fmt.Errorf("engine: Queue(%d): %w", n, err)
	}
	return t, delay, nil
}

// queue does what Queue does. If delay is 0, the turn is not in a line. A wait of 0 does not show this, because a turn
// in a line may have moved up.
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

// Until returns how long the caller must still wait, by the limiter's clock, or 0 or less if the tokens are available.
// Until also registers the function moved, which is called whenever the wait becomes shorter. The function may be nil.
// It must not block, and must not call a method of a Turn.
func (t *Turn) Until(moved func()) time.Duration {
	t.limiter.lines.mu.Lock()
	defer t.limiter.lines.mu.Unlock()
	t.moved = moved
	return time.Duration(t.due - t.limiter.clock.surely())
}

// Come ends the turn of a caller that proceeds now, and returns the receipt for its tokens. The receipt is void if the
// caller has moved up by more or fewer tokens than its turn has.
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

// Leave ends the turn of a caller that does not proceed, and the callers behind it move up:
//
//   - If all callers behind wait for the same number of tokens as this caller, each moves to the place in front of it.
//   - Otherwise they move up by this caller's tokens, but not past the reservation of a caller outside of the line.
//     With [BatchRefill], they do not move up to an earlier refill.
//
// Tokens that become free at the end of the line are given back, as by [Receipt.Refund]. If a caller outside of the
// line has reserved behind it, only tokens that this reservation does not need come back.
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
			if t.due > other.due { // other's reserved tokens may have been given back
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

// shift moves turns up by the tokens of a turn that has left, and returns the turns whose wait is now shorter. It stops
// where a caller outside of the line has reserved. A turn that moved past that reservation would proceed at the same
// time as that caller.
func (t *Turn) shift(behind []*Turn) (moved []*Turn) {
	end := t.due
	for _, other := range behind {
		if other.due == end { // the tokens of both turns come at the same time
			t.parts, other.parts = exchanged(t.parts, other.parts, other.n)
			continue
		}
		gap := other.due - int64(other.plan.Span(other.n, other.key.quota)) - end
		if !other.ignores(gap) {
			return moved // another caller has reserved in between, or the rate was changed
		}
		end = other.due
		by := min(t.plan.Span(t.n, t.key.quota), other.plan.Span(t.n, other.key.quota))
		other.due -= int64(by)
		t.parts, other.parts = exchanged(t.parts, other.parts, other.n)
		moved = append(moved, other)
	}
	return moved
}

// exchanged redistributes the tokens of a turn that leaves and of the turn behind it. The turn that stays gets the
// first n tokens.
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

// overtake moves a turn to the front of its line, because its caller proceeds now. The turns that were in front are due
// later, but none later than this turn was. The tokens of these turns directly follow each other.
func (t *Turn) overtake() {
	line := t.limiter.lines.of[t.key]
	for i := slices.Index(line, t) - 1; i >= 0; i-- {
		other := line[i]
		own, others := int64(t.plan.Span(t.n, t.key.quota)), int64(other.plan.Span(other.n, other.key.quota))
		gap := t.due - own - other.due
		if !t.ignores(gap) {
			return // another caller has reserved in between
		}
		other.due, t.due = t.due, t.due-others
		other.parts, t.parts = exchanged(other.parts, t.parts, t.n)
	}
}

// ignores reports whether a gap in front of the turn is too small to count: at most half a token. Rounding, or a
// reservation under a faster quota, causes such gaps.
func (t *Turn) ignores(gap int64) bool {
	half := int64(t.plan.Span(1, t.key.quota) / 2)
	return -half <= gap && gap <= half
}

// haveMoved calls each turn's function moved, even if the function of an earlier turn panics. The line must be up to
// date before the call.
func haveMoved(turns []*Turn) {
	if len(turns) > 0 {
		defer haveMoved(turns[1:])
		if moved := turns[0].moved; moved != nil {
			moved()
		}
	}
}

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

// wait waits until the turn is due, and ends it. If the context is done before, the turn leaves the line.
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
