package peers

import (
	"context"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

var throttledMap = Peer{
	Name:    "throttled",
	Module:  "github.com/throttled/throttled/v2",
	Package: true,
	How: "GCRARateLimiterCtx on a memstore without the LRU bound, which makes every request write under one " +
		"lock; ten attempts at a compare-and-swap, its default",
	New:    func(limit Limit, _ int) (Limiter, error) { return newThrottled(limit, 0) },
	Cannot: map[Ability]string{Bound: "without its LRU no key is ever forgotten"},
}

var throttledLRU = Peer{
	Name:    "throttled, LRU",
	Module:  throttledMap.Module,
	Package: true,
	How: "the same with the bound, twice the keys, so that none is forgotten while they are no more; then the oldest is, " +
		"drained or not",
	New: func(limit Limit, keys int) (Limiter, error) { return newThrottled(limit, 2*keys) },
}

func newThrottled(limit Limit, bound int) (Limiter, error) {
	store, err := memstore.NewCtx(bound)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(limit.Tokens, limit.Per), MaxBurst: limit.Burst - 1}
	gcra, err := throttled.NewGCRARateLimiterCtx(store, quota)
	ctx := context.Background()
	return allow(func(key string) bool {
		limited, _, err := gcra.RateLimitCtx(ctx, key, 1)
		return !limited && err == nil
	}), err
}
