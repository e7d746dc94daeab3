package redislimit

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/script"
	"github.com/weir-go/weir/redislimit/internal/shares"
)

// A Quota is a limit as a value, which [Limiter.Quota] has checked against a limiter: that limiter under other numbers.
// It is comparable, may be kept and shared, and all its methods may be called from any goroutine. It is a backend of
// package httplimit, as the limiter is. The methods of the zero Quota return an error.
//
// What a key owes is the key's: all quotas of a limiter, and the limiter's own policy, hold it against their own limit.
type Quota struct {
	limiter *Limiter
	policy  engine.Policy
	numbers script.Quota // the zero Quota for the limiter's own policy
	share   engine.Quota // of the node's share
}

// Quota checks the numbers of a policy against this limiter, and returns the limiter under them: for a limit that comes
// with a token, from a database, or in an argument. It asks no store and takes a microsecond or two, so it may be
// called for each request.
//
//   - Of a limiter of [engine.TokenBuckets] any [engine.TokenBucket] that fills within the longest time. Its rate is
//     never faster than asked for, and by a thousandth slower at most, or it is an error. Of a limiter of an
//     engine.TokenBucket that with a smaller burst.
//   - Of any other limiter its own policy with another limit, up to its own or [MaxQuota].
//   - [engine.Unlimited], which allows everything, and [engine.Blocked], which allows nothing, of every limiter: the
//     store is not asked.
//
// The store decides about each of its requests, so a [Leased] limiter has none: this is an error that says so.
func (l *Limiter) Quota(p engine.Policy) (Quota, error) {
	if p == l.policy || p == engine.Unlimited() || p == engine.Blocked() {
		return Quota{limiter: l, policy: p}, nil
	}
	if l.terms != nil {
		return Quota{}, fmt.Errorf("redislimit: Quota(%v): the limiter is leased, and quotas are decided by the store: want InMode(Strict)", p)
	}
	numbers, err := l.limit.Quota(l.policy, p)
	if err != nil {
		return Quota{}, fmt.Errorf("redislimit: Quota(%v): %w", p, err)
	}
	q := Quota{limiter: l, policy: p, numbers: numbers}
	if l.share != nil {
		share, err := shares.Of(p, l.divisor())
		if err == nil {
			q.share, err = l.share.Quota(share)
		}
		if err != nil {
			return Quota{}, fmt.Errorf("redislimit: Quota(%v): a node's share: %w", p, err)
		}
	}
	return q, nil
}

// Take is [Limiter.Take] under the quota.
func (q Quota) Take(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	if d, fixed, err := q.fixed(); fixed {
		return d, err
	}
	return q.limiter.take(ctx, &q, key, n, nil)
}

// Refund is [Limiter.Refund] under the quota: give back under the quota under which was taken, because a token of a
// slower bucket is worth more.
func (q Quota) Refund(ctx context.Context, key string, n uint64) error {
	if _, fixed, err := q.fixed(); fixed {
		return err
	}
	return q.limiter.refund(ctx, &q, key, n)
}

// Peek is [Limiter.Peek] under the quota.
func (q Quota) Peek(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	if d, fixed, err := q.fixed(); fixed {
		return d, err
	}
	return q.limiter.peek(ctx, &q, key, n, 0)
}

// Charge is [Limiter.Charge] under the quota. A key under no limit, or that may have nothing, owes nothing.
func (q Quota) Charge(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	if d, fixed, err := q.fixed(); fixed {
		return d, err
	}
	return q.limiter.charge(ctx, &q, key, n)
}

// fixed returns what is decided under a quota without numbers, for which no store is asked.
func (q Quota) fixed() (d engine.Decision, fixed bool, err error) {
	switch {
	case q.limiter == nil:
		return d, true, errors.New("redislimit: a zero Quota: want one of Limiter.Quota")
	case q.policy == engine.Unlimited():
		return engine.Decision{Allowed: true, Limit: math.MaxUint64, Remaining: math.MaxUint64}, true, nil
	case q.policy.Limit() == 0: // Blocked, or token buckets without a quota
		return engine.Decision{RetryAfter: engine.Never}, true, nil
	}
	return d, false, nil
}

// MaxQuota makes room for up to n tokens in a limiter of windows or logs. The policy's own limit, and each [Quota], may
// then have that many. Token buckets do not need this option. n is 1 to the largest limit of the algorithm. All nodes
// must have the same. A limiter with this option is strict.
func MaxQuota(n uint64) Option {
	return func(c *config) error {
		if n < 1 || n > 1<<32 {
			return fmt.Errorf("redislimit: MaxQuota(%d): want 1 to 2^32", n)
		}
		c.limit.MaxQuota = n
		return nil
	}
}
