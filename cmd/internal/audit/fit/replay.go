package fit

import (
	"math"
	"time"

	"github.com/weir-go/weir/limitertest/check"
)

// A replay decides the requests of a log again under a limit. It assumes that all requests were decided as early as
// possible, or all as late as possible.
type replay struct {
	limit  Limit
	late   bool
	model  *check.Checker
	by     *clock
	keys   map[string]*blocked
	latest *blocked // the state of the key in last, which is the key of the latest event
	last   string
	counts time.Duration // how long an admission counts
}

func newReplay(l Limit, late bool) *replay {
	c, err := check.New(l.Limit, l.Kind)
	if err != nil {
		return nil
	}
	r := &replay{limit: l, late: late, model: c, by: newClock(l), keys: map[string]*blocked{}, counts: l.Per}
	switch l.Kind {
	case check.Bucket, check.BatchRefill:
		fills := float64(l.Per)*float64(l.Burst)/float64(l.Tokens) + float64(l.Per)
		r.counts = time.Duration(min(fills, float64(math.MaxInt64/2)))
	case check.SlidingEstimate:
		r.counts = 2 * l.Per
	}
	return r
}

// next reports whether the limit explains the next decision, and by how many tokens an admission exceeds the limit. The
// tokens of a delayed admission may come back earlier or later than assumed, by up to the delay. If a request was
// admitted although no token was left, it counts as decided when a token was available.
func (r *replay) next(e event) (explained bool, excess uint64) {
	k := r.latest
	if k == nil || r.last != e.Key {
		if k = r.keys[e.Key]; k == nil {
			k = &blocked{}
			r.keys[e.Key] = k
		}
		r.latest, r.last = k, e.Key
	}
	if r.late && e.Allowed {
		e.At += e.held
	}
	e.At = r.by.at(e.Key, e.At)
	wait, slack := r.model.Until(e.Key, e.At, 1), k.most(e.At, r.counts)
	explained = true
	if !e.Allowed && wait == 0 { // explained only if the room is recent: the times are inexact
		if r.late {
			slack = 0
		}
		explained = k.ever && e.At-k.until <= e.tolerance+slack
	}
	if !e.Allowed && !r.limit.Refusals {
		return explained, 0
	}
	admitted, sooner := e.Allowed, e.held
	if r.late {
		sooner = slack
	}
	if e.Allowed = true; wait <= sooner {
		e.At += wait
	}
	if v := r.model.Add(e.Event); admitted && v.Early > e.tolerance {
		explained, excess = false, v.Excess
	}
	k.hold(e.At, e.held)
	if wait := r.model.Until(e.Key, e.At, 1); wait > 0 {
		k.until, k.ever = e.At+wait, true
	}
	return explained, excess
}

// blocked is a key that has no room, or had none before.
type blocked struct {
	until time.Duration // the last time without room
	ever  bool
	held  []charge // delayed admissions, each delayed for longer than all later admissions
}

type charge struct{ at, held time.Duration }

func (b *blocked) hold(at, held time.Duration) {
	for len(b.held) > 0 && b.held[len(b.held)-1].held <= held {
		b.held = b.held[:len(b.held)-1]
	}
	b.held = append(b.held, charge{at, held})
}

// The method most returns the longest delay of the admissions that may still count at an instant.
func (b *blocked) most(at, counts time.Duration) time.Duration {
	for len(b.held) > 0 && at-b.held[0].at > counts+b.held[0].held {
		b.held = b.held[1:]
	}
	if len(b.held) == 0 {
		return 0
	}
	return b.held[0].held
}
