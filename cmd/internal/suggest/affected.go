package suggest

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/cmd/internal/trace"
	"github.com/weir-go/weir/engine"
)

const maxAffected = 10

// Affected has the results of a limit for one key.
type Affected struct {
	Key               string
	Requests, Refused uint64
	// LongestWait is the longest RetryAfter of the key. It is [engine.Never] if a request costs more than the limit.
	LongestWait time.Duration
	First       time.Time // when it was first refused
}

// affected replays requests with a limiter of the engine. It needs only requests of the keys that the limit may refuse.
// It returns the number of refusals, and the keys with the most refusals.
func (r *requests) affected(p *Point, names []string) (refused uint64, list []Affected, err error) {
	limitBound, keys := boundOf(p.Policy), 0
	judged := make([]bool, len(r.totals))
	for key := range judged {
		if judged[key] = r.peaks.mayRefuse(limitBound, key); judged[key] {
			keys++
		}
	}
	if keys == 0 {
		return 0, nil, nil
	}
	var now atomic.Int64
	limiter, err := engine.New(p.Policy, engine.MaxKeys(2*keys+64), // so that no key is evicted
		engine.ClockFunc(func() time.Time { return time.Unix(0, now.Load()) }))
	if err != nil {
		return 0, nil, err
	}
	defer limiter.Close()
	byKey := map[uint32]*Affected{}
	requests := make([]uint64, len(r.totals))
	err = r.forEach(func(q *trace.Request) bool {
		if !judged[q.Key] {
			return true
		}
		now.Store(q.UnixNano)
		requests[q.Key]++
		key := limiter.KeyUint64(uint64(q.Key))
		d := limiter.TakeKey(key, q.Cost)
		switch {
		case !d.Allowed:
			a := byKey[q.Key]
			if a == nil {
				a = &Affected{Key: names[q.Key], First: time.Unix(0, q.UnixNano).UTC()}
				byKey[q.Key] = a
			}
			refused++
			a.Refused++
			a.LongestWait = max(a.LongestWait, d.RetryAfter)
		case q.Refund:
			limiter.Refund(key, q.Cost)
		}
		return true
	})
	for key, a := range byKey {
		a.Requests = requests[key]
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b Affected) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Key, b.Key))
	})
	return refused, list[:min(maxAffected, len(list))], err
}
