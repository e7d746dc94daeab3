package shares

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/weir-go/weir/engine"
)

// Interval returns the time in which a share of less than one token earns one token, or 0 for a larger share. The share
// is the limit of p divided by divisor, which is at least 1.
func Interval(p engine.Policy, divisor float64) time.Duration {
	if limit := float64(p.Limit()); limit == 0 || limit >= divisor {
		return 0
	}
	rate := p.Rate()
	return time.Duration(min(math.Ceil(divisor*float64(rate.Period)/rate.Tokens), 1<<61))
}

// Slow implements shares of less than one token, for the keys of one node. If each node had a whole token, all nodes
// together would exceed the limit. So such a share is empty when the store is lost. From then on it earns one token in
// every [Interval], and keeps at most one. All nodes together then admit at most rate*t in the time t after the loss.
//
// Times are in nanoseconds. All methods may be called from any goroutine.
type Slow[K comparable] struct {
	spent   *xsync.Map[K, int64] // when a key's last token was spent
	count   atomic.Int64
	maxKeys int64
}

// NewSlow returns a Slow with room for maxKeys keys. Requests for further keys are refused.
func NewSlow[K comparable](maxKeys int) *Slow[K] {
	return &Slow[K]{spent: xsync.NewMap[K, int64](), maxKeys: int64(maxKeys)}
}

// Take spends the token of a key if the token is available and the function take returns true. It returns the time
// until the token is available, or 0. The argument since is the time when the store was lost.
func (s *Slow[K]) Take(key K, since, now int64, interval time.Duration, take func() bool) (wait time.Duration) {
	if wait = interval - time.Duration(now-since); wait > 0 {
		return wait
	}
	s.spent.Compute(key, func(spent int64, exists bool) (int64, xsync.ComputeOp) {
		emptySince := since
		if exists {
			emptySince = max(since, spent)
		}
		wait = max(interval-time.Duration(now-emptySince), 0)
		if wait == 0 && !exists && s.count.Load() >= s.maxKeys {
			wait = interval
		}
		if wait > 0 || !take() {
			return spent, xsync.CancelOp
		}
		if !exists {
			s.count.Add(1)
		}
		return now, xsync.UpdateOp
	})
	return wait
}

// Drop forgets each key for which isUnneeded returns true. A key can be forgotten as soon as the store is back.
func (s *Slow[K]) Drop(isUnneeded func(key K) bool) {
	if s.count.Load() == 0 {
		return
	}
	s.spent.Range(func(key K, _ int64) bool {
		if isUnneeded(key) {
			s.DropKey(key)
		}
		return true
	})
}

// DropKey forgets a key.
func (s *Slow[K]) DropKey(key K) {
	s.spent.Compute(key, func(spent int64, exists bool) (int64, xsync.ComputeOp) {
		if !exists {
			return spent, xsync.CancelOp
		}
		s.count.Add(-1)
		return spent, xsync.DeleteOp
	})
}
