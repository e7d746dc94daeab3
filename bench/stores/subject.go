package stores

import (
	"context"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// A Rate is the limit of a key in tokens per second, and its burst.
type Rate struct {
	PerSecond, Burst int
}

// A Subject is a limiter that is measured. New makes the limiter of one node. The function take requests a token, and
// the function end closes the limiter.
type Subject struct {
	Name, How string
	IsWindow  bool
	New       func(ctx context.Context, address string, rate Rate) (take Take, end func(), err error)
}

// Take requests a token of a key. An error comes from the store.
type Take func(ctx context.Context, key string) (allowed bool, err error)

// Subjects returns all subjects.
func Subjects() []Subject {
	return []Subject{
		{Name: "redislimit, strict", How: "its defaults, and errors while the store is lost", New: weir(redislimit.Strict)},
		{Name: "redislimit, leased", How: "its defaults, and errors while the store is lost", New: weir(redislimit.Leased)},
		{Name: "go-redis/redis_rate", How: "its script, by go-redis with its defaults", New: redisRate},
		{Name: "throttled", How: "its store for go-redis, ten attempts at a compare-and-swap", New: throttledRedis},
		{Name: "ulule/limiter", How: "its Redis store: fixed windows of a second", New: ulule, IsWindow: true},
	}
}

func weir(mode redislimit.Mode) func(context.Context, string, Rate) (Take, func(), error) {
	return func(ctx context.Context, address string, rate Rate) (Take, func(), error) {
		client, err := redislimit.Open(ctx, "redis://"+address)
		if err != nil {
			return nil, nil, err
		}
		policy := engine.TokenBucket(engine.PerSecond(float64(rate.PerSecond)), uint64(rate.Burst))
		l, err := redislimit.New(client, "bench", policy, redislimit.InMode(mode), redislimit.Nodes(nodes), redislimit.OnLoss(redislimit.FailClosed))
		if err != nil {
			_ = client.Close() // always nil
			return nil, nil, err
		}
		take := func(ctx context.Context, key string) (bool, error) {
			d, err := l.Take(ctx, key, 1)
			return d.Allowed, err
		}
		return take, func() { _, _ = l.Close(), client.Close() }, nil
	}
}

func redisRate(_ context.Context, address string, rate Rate) (Take, func(), error) {
	client := redis.NewClient(&redis.Options{Addr: address})
	l := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: rate.PerSecond, Burst: rate.Burst, Period: time.Second}
	take := func(ctx context.Context, key string) (bool, error) {
		r, err := l.Allow(ctx, key, limit)
		return err == nil && r.Allowed > 0, err
	}
	return take, func() { _ = client.Close() }, nil
}

func throttledRedis(_ context.Context, address string, rate Rate) (Take, func(), error) {
	client := redis.NewClient(&redis.Options{Addr: address})
	store, err := throttledredis.NewCtx(client, "throttled:")
	if err != nil {
		return nil, nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerSec(rate.PerSecond), MaxBurst: rate.Burst - 1}
	l, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, nil, err
	}
	take := func(ctx context.Context, key string) (bool, error) {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return !limited && err == nil, err
	}
	return take, func() { _ = client.Close() }, nil
}

func ulule(_ context.Context, address string, rate Rate) (Take, func(), error) {
	client := redis.NewClient(&redis.Options{Addr: address})
	store, err := ululeredis.NewStore(client)
	if err != nil {
		return nil, nil, err
	}
	l := limiter.New(store, limiter.Rate{Period: time.Second, Limit: int64(rate.PerSecond)})
	take := func(ctx context.Context, key string) (bool, error) {
		c, err := l.Get(ctx, key)
		return err == nil && !c.Reached, err
	}
	return take, func() { _ = client.Close() }, nil
}
