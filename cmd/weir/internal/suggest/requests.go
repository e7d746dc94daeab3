package suggest

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/replay"
	"github.com/weir-go/weir/engine"
)

// requests are those of a rule, ready to be replayed again and again.
type requests struct {
	all     []replay.Traced
	keys    int
	byKey   []engine.Key
	most    uint64 // the largest cost of all requests of a key
	dearest uint64 // the largest cost of one request
	span    time.Duration
	scratch []uint32 // of atRisk
}

func newRequests(trace *replay.Trace) (*requests, error) {
	r := &requests{
		keys:  trace.Keys,
		byKey: make([]engine.Key, trace.Keys),
	}
	totals := make([]uint64, trace.Keys)
	for _, t := range trace.Requests {
		if t.Tier != 0 {
			continue
		}
		r.all = append(r.all, t)
		totals[t.Key] += t.Cost
		r.most, r.dearest = max(r.most, totals[t.Key]), max(r.dearest, t.Cost)
	}
	if n := len(r.all); n > 0 {
		r.span = time.Duration(r.all[n-1].UnixNano - r.all[0].UnixNano)
	}
	// A key is good for every limiter of the process.
	hasher, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(1))
	if err != nil {
		return nil, err
	}
	defer hasher.Close()
	for i := range r.byKey {
		r.byKey[i] = hasher.KeyUint64(uint64(i))
	}
	return r, nil
}

// atRisk returns those of some requests that a policy may refuse, in their order. Between two requests of a key that
// are twice the policy's window apart the key has all its tokens again, whatever the algorithm; and requests after such
// a pause, up to the next, that cost no more than a key can have at once are all admitted. So the others are decided as
// if these had never been. The engine rounds the time of each token of a bucket up, by a nanosecond at most, which
// costs less than a token in 512 of the fastest rate that is tried, and one at the end: those are left to the engine,
// too. The result is in a place of its own.
func (r *requests) atRisk(of []replay.Traced, policy engine.Policy, most uint64) (risky []replay.Traced, keys int) {
	pause := math.MaxInt64 / 2
	if w := policy.Window(); w < math.MaxInt64/4 {
		pause = int(2 * w)
	}
	type stretch struct {
		last int64  // time of its last request
		at   uint32 // number
	}
	latest := make([]stretch, r.keys) // of each key; 0 is none
	costs := make([]uint64, 1, 1024)  // of each stretch
	r.scratch = slices.Grow(r.scratch[:0], len(of))[:len(of)]
	for i := range of {
		t := &of[i]
		s := &latest[t.Key]
		if s.at == 0 || t.UnixNano-s.last >= int64(pause) {
			s.at = uint32(len(costs))
			costs = append(costs, 0)
		}
		s.last = t.UnixNano
		costs[s.at] += t.Cost
		r.scratch[i] = s.at
	}
	n := 0
	for _, at := range r.scratch {
		if costs[at]+1+costs[at]/512 > most {
			n++
		}
	}
	risky = make([]replay.Traced, 0, n)
	for i, at := range r.scratch {
		if costs[at]+1+costs[at]/512 > most {
			risky = append(risky, of[i])
			if s := &latest[of[i].Key]; s.at != 0 {
				s.at = 0
				keys++
			}
		}
	}
	return risky, keys
}

// refused replays some requests and counts those that are refused. It stops when there are more than enough.
func (r *requests) refused(policy engine.Policy, of []replay.Traced, keys int, enough uint64) (refused uint64, err error) {
	if len(of) == 0 {
		return 0, nil
	}
	for room := 2*keys + 64; ; room *= 4 {
		refused, evicted, err := r.replay(policy, of, room, enough)
		if err != nil || evicted == 0 {
			return refused, err
		}
	}
}

// replay puts requests to a limiter with room for so many keys.
func (r *requests) replay(policy engine.Policy, of []replay.Traced, room int,
	enough uint64) (refused, evicted uint64, err error) {
	var now atomic.Int64
	now.Store(of[0].UnixNano)
	limiter, err := engine.New(policy, engine.MaxKeys(room),
		engine.ClockFunc(func() time.Time { return time.Unix(0, now.Load()) }))
	if err != nil {
		return 0, 0, err
	}
	defer limiter.Close()
	for i := range of {
		t := &of[i]
		now.Store(t.UnixNano)
		switch d := limiter.TakeAt(r.byKey[t.Key], t.Cost, time.Unix(0, t.UnixNano)); {
		case !d.Allowed:
			if refused++; refused > enough {
				return refused, limiter.Stats().Evictions, nil
			}
		case t.Refund:
			limiter.RefundKey(r.byKey[t.Key], t.Cost)
		}
	}
	return refused, limiter.Stats().Evictions, nil
}
