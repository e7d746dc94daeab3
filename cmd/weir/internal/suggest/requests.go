package suggest

import (
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
	totals  []uint64 // cost of all requests of each key
	most    uint64   // the largest of the totals
	dearest uint64   // the largest cost of one request
	span    time.Duration
}

func newRequests(trace *replay.Trace) (*requests, error) {
	r := &requests{
		keys:   trace.Keys,
		byKey:  make([]engine.Key, trace.Keys),
		totals: make([]uint64, trace.Keys),
	}
	for _, t := range trace.Requests {
		if t.Tier != 0 {
			continue
		}
		r.all = append(r.all, t)
		r.totals[t.Key] += t.Cost
		r.most, r.dearest = max(r.most, r.totals[t.Key]), max(r.dearest, t.Cost)
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

// refused replays the requests and counts those that are refused. Keys that never ask for more than
// a key can have at once are passed over: none of theirs is.
func (r *requests) refused(policy engine.Policy, most uint64) (refused uint64, err error) {
	busy := 0
	for _, total := range r.totals {
		if total > most {
			busy++
		}
	}
	if busy == 0 {
		return 0, nil
	}
	for room := 2*busy + 64; ; room *= 4 {
		refused, evicted, err := r.replay(policy, most, room)
		if err != nil || evicted == 0 {
			return refused, err
		}
	}
}

// replay puts the requests of busy keys to a limiter with room for so many keys.
func (r *requests) replay(policy engine.Policy, most uint64, room int) (refused, evicted uint64, err error) {
	var now atomic.Int64
	now.Store(r.all[0].UnixNano)
	limiter, err := engine.New(policy, engine.MaxKeys(room),
		engine.ClockFunc(func() time.Time { return time.Unix(0, now.Load()) }))
	if err != nil {
		return 0, 0, err
	}
	defer limiter.Close()
	for i := range r.all {
		t := &r.all[i]
		if r.totals[t.Key] <= most {
			continue
		}
		now.Store(t.UnixNano)
		switch d := limiter.TakeAt(r.byKey[t.Key], t.Cost, time.Unix(0, t.UnixNano)); {
		case !d.Allowed:
			refused++
		case t.Refund:
			limiter.RefundKey(r.byKey[t.Key], t.Cost)
		}
	}
	return refused, limiter.Stats().Evictions, nil
}
