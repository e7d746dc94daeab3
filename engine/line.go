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
	mu    sync.Mutex
	byKey map[Key][]*Turn
}

// A Turn is a place in the line of a key, with tokens that were taken ahead of time ([Limiter.Queue]). Come or Leave
// ends it. A Turn may be used from any goroutine. Its methods lock and allocate, but decisions do neither.
type Turn struct {
	limiter *Limiter
	key     Key
	n       uint64
	plan    *shard.Plan // the plan at the time of the reservation

	// lines.mu of the limiter guards the following fields.
	parts  []part // n tokens in all, in the order of their reservation; none after the turn has ended
	due    int64  // when the tokens are available, by the limiter's clock
	onMove func() // if not nil, called when due becomes earlier
}

// A part has the tokens of one reservation that belong to one turn.
type part struct {
	reservation *reservation
	n           uint64
	shared      bool // another turn has a part of the reservation, or some of its tokens were given back
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
	t = &Turn{limiter: l, key: k, n: n, plan: r.plan, parts: []part{{r, n, false}}, due: r.due}
	if r.delay > 0 {
		if l.lines.byKey == nil {
			l.lines.byKey = map[Key][]*Turn{}
		}
		l.lines.byKey[k] = append(l.lines.byKey[k], t)
	}
	return t, r.delay, nil
}

// Until returns how long the caller must still wait, by the limiter's clock, or 0 or less if the tokens are available.
// Until also registers the function onMove, which is called whenever the wait becomes shorter. The function may be nil.
// It must not block, and must not call a method of a Turn.
func (t *Turn) Until(onMove func()) time.Duration {
	t.limiter.lines.mu.Lock()
	defer t.limiter.lines.mu.Unlock()
	t.onMove = onMove
	return time.Duration(t.due - t.limiter.clock.exactNanos())
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
	return parts[0].reservation.receipt
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
	followers := l.remove(t)
	var movedTurns []*Turn
	if slices.ContainsFunc(followers, func(follower *Turn) bool { return follower.n != t.n }) {
		movedTurns = t.shift(followers)
	} else {
		for _, follower := range followers {
			if t.due > follower.due { // the follower's reserved tokens may have been given back
				continue
			}
			t.parts, follower.parts = follower.parts, t.parts
			if t.due < follower.due {
				t.due, follower.due = follower.due, t.due
				movedTurns = append(movedTurns, follower)
			}
		}
	}
	for _, last := range slices.Backward(t.parts) {
		last.reservation.receipt.Refund(last.n)
	}
	t.parts = nil
	notifyMoved(movedTurns)
}

// shift moves turns up by the tokens of a turn that has left, and returns the turns whose wait is now shorter. It stops
// where a caller outside of the line has reserved. A turn that moved past that reservation would proceed at the same
// time as that caller.
func (t *Turn) shift(followers []*Turn) (movedTurns []*Turn) {
	end := t.due
	for _, follower := range followers {
		if follower.due == end { // the tokens of both turns come at the same time
			t.parts, follower.parts = redistribute(t.parts, follower.parts, follower.n)
			continue
		}
		gap := follower.due - int64(follower.plan.Span(follower.n, follower.key.quota)) - end
		if !follower.isNegligible(gap) {
			return movedTurns // another caller has reserved in between, or the rate was changed
		}
		end = follower.due
		gain := min(t.plan.Span(t.n, t.key.quota), follower.plan.Span(t.n, follower.key.quota))
		follower.due -= int64(gain)
		t.parts, follower.parts = redistribute(t.parts, follower.parts, follower.n)
		movedTurns = append(movedTurns, follower)
	}
	return movedTurns
}

// redistribute divides the tokens of a turn that leaves and of the turn that stays. The turn that stays is behind the
// other one, and keeps the first n tokens. The turn that leaves gets the rest.
func redistribute(leaving, staying []part, n uint64) (rest, kept []part) {
	for _, p := range append(leaving, staying...) {
		switch {
		case n == 0:
			rest = append(rest, p)
			continue
		case p.n > n:
			rest = append(rest, part{p.reservation, p.n - n, true})
			p.n, p.shared = n, true
		}
		kept, n = append(kept, p), n-p.n
	}
	return rest, kept
}

// overtake moves a turn to the front of its line, because its caller proceeds now. The turns that were in front are due
// later, but none later than this turn was. The tokens of these turns directly follow each other.
func (t *Turn) overtake() {
	line := t.limiter.lines.byKey[t.key]
	for i := slices.Index(line, t) - 1; i >= 0; i-- {
		front := line[i]
		span, frontSpan := int64(t.plan.Span(t.n, t.key.quota)), int64(front.plan.Span(front.n, front.key.quota))
		gap := t.due - span - front.due
		if !t.isNegligible(gap) {
			return // another caller has reserved in between
		}
		front.due, t.due = t.due, t.due-frontSpan
		front.parts, t.parts = redistribute(front.parts, t.parts, t.n)
	}
}

// isNegligible reports whether a gap in front of the turn is too small to count: at most half a token. Rounding, or a
// reservation under a faster quota, causes such gaps.
func (t *Turn) isNegligible(gap int64) bool {
	half := int64(t.plan.Span(1, t.key.quota) / 2)
	return -half <= gap && gap <= half
}

// notifyMoved calls each turn's function onMove, even if the function of an earlier turn panics. The line must be up to
// date before the call.
func notifyMoved(turns []*Turn) {
	if len(turns) > 0 {
		defer notifyMoved(turns[1:])
		if onMove := turns[0].onMove; onMove != nil {
			onMove()
		}
	}
}

func (l *lines) remove(t *Turn) (followers []*Turn) {
	line := l.byKey[t.key]
	i := slices.Index(line, t)
	if i < 0 {
		return nil
	}
	line = slices.Delete(line, i, i+1)
	if len(line) == 0 {
		delete(l.byKey, t.key)
		return nil
	}
	l.byKey[t.key] = line
	return line[i:]
}

// wait waits until the turn is due, and ends it. If the context is done before, the turn leaves the line.
func (t *Turn) wait(ctx context.Context) error {
	for {
		waitCtx, wake := context.WithCancel(ctx)
		err := pause.For(waitCtx, t.Until(wake))
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
