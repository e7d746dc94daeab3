package fit

import (
	"math"
	"time"

	"github.com/weir-go/weir/limitertest/check"
)

// A replay decides the requests of a log again under a limit. It assumes that all requests were decided as early as
// possible, or all as late as possible.
type replay struct {
	limit       Limit
	late        bool
	model       *check.Checker
	clock       *clock
	keys        map[string]*keyState
	latestState *keyState // the state of latestKey, the key of the latest event
	latestKey   string
	lifetime    time.Duration // how long an admission counts
}

func newReplay(l Limit, late bool) *replay {
	c, err := check.New(l.Limit, l.Kind)
	if err != nil {
		return nil
	}
	r := &replay{limit: l, late: late, model: c, clock: newClock(l), keys: map[string]*keyState{}, lifetime: l.Per}
	switch l.Kind {
	case check.Bucket, check.BatchRefill:
		fillTime := float64(l.Per)*float64(l.Burst)/float64(l.Tokens) + float64(l.Per)
		r.lifetime = time.Duration(min(fillTime, float64(math.MaxInt64/2)))
	case check.SlidingEstimate:
		r.lifetime = 2 * l.Per
	}
	return r
}

// next reports whether the limit explains the next decision, and by how many tokens an admission exceeds the limit. The
// tokens of a delayed admission may come back earlier or later than assumed, by up to the delay. If a request was
// admitted although no token was left, it counts as decided when a token was available.
func (r *replay) next(e event) (explained bool, excess uint64) {
	k := r.latestState
	if k == nil || r.latestKey != e.Key {
		if k = r.keys[e.Key]; k == nil {
			k = &keyState{}
			r.keys[e.Key] = k
		}
		r.latestState, r.latestKey = k, e.Key
	}
	if r.late && e.Allowed {
		e.At += e.delay
	}
	e.At = r.clock.convert(e.Key, e.At)
	wait, slack := r.model.Until(e.Key, e.At, 1), k.maxDelay(e.At, r.lifetime)
	explained = true
	if !e.Allowed && wait == 0 { // explained only if the room is recent: the times are inexact
		if r.late {
			slack = 0
		}
		explained = k.wasBlocked && e.At-k.blockedUntil <= e.tolerance+slack
	}
	if !e.Allowed && !r.limit.Refusals {
		return explained, 0
	}
	admitted, maxWait := e.Allowed, e.delay
	if r.late {
		maxWait = slack
	}
	if e.Allowed = true; wait <= maxWait {
		e.At += wait
	}
	if v := r.model.Add(e.Event); admitted && v.Early > e.tolerance {
		explained, excess = false, v.Excess
	}
	k.addDelayed(e.At, e.delay)
	if wait := r.model.Until(e.Key, e.At, 1); wait > 0 {
		k.blockedUntil, k.wasBlocked = e.At+wait, true
	}
	return explained, excess
}

// keyState says when a key had no room.
type keyState struct {
	blockedUntil time.Duration // the last time without room
	wasBlocked   bool
	delayed      []admission // delayed admissions, each delayed for longer than all later admissions
}

type admission struct{ at, delay time.Duration }

func (k *keyState) addDelayed(at, delay time.Duration) {
	for len(k.delayed) > 0 && k.delayed[len(k.delayed)-1].delay <= delay {
		k.delayed = k.delayed[:len(k.delayed)-1]
	}
	k.delayed = append(k.delayed, admission{at, delay})
}

// maxDelay returns the longest delay of the admissions that may still count at an instant.
func (k *keyState) maxDelay(at, lifetime time.Duration) time.Duration {
	for len(k.delayed) > 0 && at-k.delayed[0].at > lifetime+k.delayed[0].delay {
		k.delayed = k.delayed[1:]
	}
	if len(k.delayed) == 0 {
		return 0
	}
	return k.delayed[0].delay
}
