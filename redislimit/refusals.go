package redislimit

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// TrustRefusals sets for how long a node trusts a refusal of the store: 0 to 1 minute, 100ms by default. During this
// time, the node itself refuses requests for the same key that cost as much or more. It stops earlier if the refused
// request could pass earlier.
//
// For a larger cost, RetryAfter is then a lower bound. These refusals are exact, unless another node refunds tokens to
// the key or resets it meanwhile.
func TrustRefusals(d time.Duration) Option {
	return func(c *config) error {
		if d < 0 || d > time.Minute {
			return fmt.Errorf("redislimit: TrustRefusals(%v): want 0 to 1m", d)
		}
		c.trust = d
		return nil
	}
}

type refusals struct {
	keys    *xsync.Map[string, refusal]
	count   atomic.Int64 // number of keys; changed with the map
	maxKeys int64
	life    time.Duration
}

// A refusal applies to requests under a quota for at least need tokens.
type refusal struct {
	quota    script.Quota
	need     uint64
	sent     int64 // when the request was sent: before the store decided, so the refusal never applies for too long
	until    int64
	decision engine.Decision
}

func newRefusals(maxKeys int, life time.Duration) *refusals {
	return &refusals{keys: xsync.NewMap[string, refusal](), maxKeys: int64(maxKeys), life: life}
}

// lookup returns the remembered refusal that applies to a request for n tokens.
func (r *refusals) lookup(key string, quota script.Quota, n uint64, now int64) (engine.Decision, bool) {
	if r.count.Load() == 0 {
		return engine.Decision{}, false
	}
	old, ok := r.keys.Load(key)
	if !ok || quota != old.quota || n < old.need || now >= old.until {
		return engine.Decision{}, false
	}
	d, passed := old.decision, time.Duration(now-old.sent)
	d.RetryAfter, d.ResetAfter = max(d.RetryAfter-passed, 1), max(d.ResetAfter-passed, 1)
	return d, true
}

// remember stores the decision if it is a refusal. The request was sent at the time sent.
func (r *refusals) remember(key string, quota script.Quota, n uint64, sent int64, d engine.Decision) {
	if d.Allowed || d.RetryAfter <= 0 || r.life == 0 {
		return
	}
	added := refusal{quota: quota, need: n, sent: sent, until: sent + int64(min(d.RetryAfter, r.life)), decision: d}
	r.keys.Compute(key, func(old refusal, exists bool) (refusal, xsync.ComputeOp) {
		switch {
		case exists && old.quota == quota && old.until > sent && old.need < n:
			return old, xsync.CancelOp // the old one covers more requests, and is still valid
		case exists:
		case r.count.Load() >= r.maxKeys:
			return old, xsync.CancelOp
		default:
			r.count.Add(1)
		}
		return added, xsync.UpdateOp
	})
}

func (r *refusals) drop(key string) {
	r.dropIf(key, func(refusal) bool { return true })
}

func (r *refusals) sweep(now int64) {
	r.keys.Range(func(key string, _ refusal) bool {
		r.dropIf(key, func(old refusal) bool { return now >= old.until })
		return true
	})
}

func (r *refusals) dropIf(key string, matches func(refusal) bool) {
	r.keys.Compute(key, func(old refusal, exists bool) (refusal, xsync.ComputeOp) {
		if !exists || !matches(old) {
			return old, xsync.CancelOp
		}
		r.count.Add(-1)
		return old, xsync.DeleteOp
	})
}
