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

// A Quota is a limiter with the numbers of another policy: see [Limiter.Quota]. It is comparable, and may be copied,
// kept and shared. Its methods may be called from any goroutine. The methods of the zero Quota return an error.
//
// A key has one debt. Each quota of a limiter, and the limiter's own policy, compares that debt with its own limit.
type Quota struct {
	limiter    *Limiter
	policy     engine.Policy
	numbers    script.Quota // the zero value means the limiter's own policy
	shareQuota engine.Quota // the quota of the node's share
}

// Quota returns the limiter with the numbers of another policy that fits it. This is for a limit that comes with the
// request, for example in its access token. Quota does not ask the store and takes a microsecond or two, so it may be
// called for each request. These policies fit:
//
//   - For a limiter of [engine.TokenBuckets], any [engine.TokenBucket] that fills within the longest time for which the
//     limiter was made. The store's rate is never faster than the rate of the policy, and slower by at most a
//     thousandth; otherwise Quota returns an error.
//   - For a limiter of an engine.TokenBucket, the same policy with a smaller burst.
//   - For any other limiter, its own policy with another limit, at most the larger of its own limit and [MaxQuota].
//   - For every limiter, [engine.Unlimited] and [engine.Blocked]. The store is not asked about their requests.
//
// A [Leased] limiter has no quotas, because the store must decide their requests.
func (l *Limiter) Quota(p engine.Policy) (Quota, error) {
	if p == l.policy || p == engine.Unlimited() || p == engine.Blocked() {
		return Quota{limiter: l, policy: p}, nil
	}
	if l.terms != nil {
		return Quota{}, fmt.Errorf("redislimit: Quota(%v): the limiter is leased, and the store decides about quotas: want InMode(Strict)", p)
	}
	numbers, err := l.limit.Quota(l.policy, p)
	if err != nil {
		return Quota{}, fmt.Errorf("redislimit: Quota(%v): %w", p, err)
	}
	q := Quota{limiter: l, policy: p, numbers: numbers}
	if l.share != nil {
		share, err := shares.Of(p, l.divisor())
		if err == nil {
			q.shareQuota, err = l.share.Quota(share)
		}
		if err != nil {
			return Quota{}, fmt.Errorf("redislimit: Quota(%v): a node's share: %w", p, err)
		}
	}
	return q, nil
}

// Take is [Limiter.Take] under the quota.
func (q Quota) Take(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	if d, ok, err := q.constantDecision(); ok {
		return d, err
	}
	return q.limiter.take(ctx, &q, key, n, nil)
}

// Refund is [Limiter.Refund] under the quota. Give tokens back under the quota under which they were taken: a token of
// a slower bucket stands for more time.
func (q Quota) Refund(ctx context.Context, key string, n uint64) error {
	if _, ok, err := q.constantDecision(); ok {
		return err
	}
	return q.limiter.refund(ctx, &q, key, n)
}

// Peek is [Limiter.Peek] under the quota.
func (q Quota) Peek(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	if d, ok, err := q.constantDecision(); ok {
		return d, err
	}
	return q.limiter.peek(ctx, &q, key, n, 0)
}

// Charge is [Limiter.Charge] under the quota. If the quota is engine.Unlimited or engine.Blocked, it charges nothing.
func (q Quota) Charge(ctx context.Context, key string, n uint64) (engine.Decision, error) {
	if d, ok, err := q.constantDecision(); ok {
		return d, err
	}
	return q.limiter.charge(ctx, &q, key, n)
}

// constantDecision returns the decision of a quota that does not count tokens. ok is false for any other quota.
func (q Quota) constantDecision() (d engine.Decision, constantDecision bool, err error) {
	switch {
	case q.limiter == nil:
		return d, true, errors.New("redislimit: a zero Quota: want one of Limiter.Quota")
	case q.policy == engine.Unlimited():
		return engine.Decision{Allowed: true, Limit: math.MaxUint64, Remaining: math.MaxUint64}, true, nil
	case q.policy.Limit() == 0: // Blocked, or token buckets used without a quota
		return engine.Decision{RetryAfter: engine.Never}, true, nil
	}
	return d, false, nil
}

// MaxQuota allows each [Quota] of a limiter of windows or logs up to n tokens, even if the limiter's own limit is
// smaller. n is at least 1 and at most the largest limit of the algorithm. All nodes must use the same value. A limiter
// with this option is strict.
func MaxQuota(n uint64) Option {
	return func(c *config) error {
		if n < 1 || n > 1<<32 {
			return fmt.Errorf("redislimit: MaxQuota(%d): want 1 to 2^32", n)
		}
		c.limit.MaxQuota = n
		return nil
	}
}
