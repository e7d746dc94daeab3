package league

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-chi/httprate"
	dskit "github.com/grafana/dskit/limiter"
	"github.com/juju/ratelimit"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"

	"github.com/weir-go/weir/limitertest"
)

// Unlike the benchmark, these adapters use costs above one, the time to wait, and cancelable reservations. They never
// pass a negative cost to a library, because no library documents the meaning of a negative cost.

type made func(testing.TB, limitertest.Limit) limitertest.Limiter

// with returns a copy of the entry that has another adapter. The new adapter supports costs.
func (e entry) with(of made) entry {
	delete(e.config.Skip, "Costs")
	e.config.New = of
	return e
}

// keyed replaces the adapter, too. The new adapter makes one limiter of the library for each key.
func (e entry) keyed(of made) entry {
	for _, part := range []string{"Burst", "Keys", "Forget", "Linear"} {
		delete(e.config.Skip, part)
	}
	e.config.Skip["Leak"] = "the map of the adapter never forgets a key"
	return e.with(of)
}

// skip leaves out a subtest, with the reason.
func (e entry) skip(part, reason string) entry {
	e.config.Skip[part] = reason
	return e
}

// taking makes a limiter that only takes. It refuses a negative cost without asking the library.
func taking(take func(key string, n int64) limitertest.Decision) limitertest.TakeFunc {
	return func(key string, n int64) limitertest.Decision {
		if n < 0 {
			return limitertest.Decision{RetryAfter: -1}
		}
		return take(key, n)
	}
}

func yes(allowed bool) limitertest.Decision {
	return limitertest.Decision{Allowed: allowed, RetryAfter: -1}
}

// A reserving limiter makes reservations with a rate.Limiter of x/time/rate for each key.
type reserving struct {
	limitertest.TakeFunc
	reserve func(key string, n int64) *rate.Reservation
	wait    func(ctx context.Context, key string, n int64) error
}

func (r reserving) Reserve(key string, n int64) (time.Duration, func(), bool) {
	made := r.reserve(key, n)
	return made.Delay(), made.Cancel, made.OK()
}

func (r reserving) Wait(ctx context.Context, key string, n int64) error { return r.wait(ctx, key, n) }

func perSecond(l limitertest.Limit) float64 { return float64(l.Tokens) / l.Per.Seconds() }

func xtime(_ testing.TB, l limitertest.Limit) limitertest.Limiter {
	var limiters sync.Map
	of := func(key string) *rate.Limiter {
		limiter, ok := limiters.Load(key)
		if !ok {
			limiter, _ = limiters.LoadOrStore(key, rate.NewLimiter(rate.Limit(perSecond(l)), int(l.Burst)))
		}
		return limiter.(*rate.Limiter)
	}
	return reserving{
		taking(func(key string, n int64) limitertest.Decision { return yes(of(key).AllowN(time.Now(), int(n))) }),
		func(key string, n int64) *rate.Reservation { return of(key).ReserveN(time.Now(), int(n)) },
		func(ctx context.Context, key string, n int64) error { return of(key).WaitN(ctx, int(n)) },
	}
}

// tenants gives all tenants of dskit the same limit.
type tenants struct{ all limitertest.Limit }

func (t tenants) Limit(string) float64 { return perSecond(t.all) }
func (t tenants) Burst(string) int     { return int(t.all.Burst) }

func ofTenants(_ testing.TB, l limitertest.Limit) limitertest.Limiter {
	all := dskit.NewRateLimiter(tenants{l}, 10*time.Second)
	return reserving{
		taking(func(key string, n int64) limitertest.Decision { return yes(all.AllowN(time.Now(), key, int(n))) }),
		func(key string, n int64) *rate.Reservation { return all.ReserveN(time.Now(), key, int(n)) },
		func(ctx context.Context, key string, n int64) error { return all.WaitN(ctx, key, int(n)) },
	}
}

// gcra makes the limiter of throttled. Its decisions have a RetryAfter.
func gcra(tb testing.TB, l limitertest.Limit) limitertest.Limiter {
	store, err := memstore.NewCtx(0)
	if err != nil {
		tb.Fatal(err)
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate: throttled.PerDuration(int(l.Tokens), l.Per), MaxBurst: int(l.Burst) - 1})
	if err != nil {
		return nil
	}
	return taking(func(key string, n int64) limitertest.Decision {
		limited, result, err := limiter.RateLimitCtx(context.Background(), key, int(n))
		return limitertest.Decision{Allowed: !limited && err == nil, RetryAfter: result.RetryAfter}
	})
}

type silent struct{ header http.Header }

func (s silent) Header() http.Header         { return s.header }
func (s silent) Write(b []byte) (int, error) { return len(b), nil }
func (s silent) WriteHeader(int)             {}

// increments makes the limiter of httprate, with the cost in WithIncrement.
func increments(_ testing.TB, l limitertest.Limit) limitertest.Limiter {
	limiter := httprate.NewRateLimiter(int(l.Tokens), l.Per, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	return taking(func(key string, n int64) limitertest.Decision {
		r := request
		if n != 1 {
			r = request.WithContext(httprate.WithIncrement(request.Context(), int(n)))
		}
		return yes(!limiter.OnLimit(silent{http.Header{}}, r, key))
	})
}

// A tick is a clock for juju's library. A bucket counts periods from its first reading of the clock, so the clock
// rounds this reading down to a multiple of the period.
type tick struct {
	period time.Duration
	begun  bool
}

func (c *tick) Now() time.Time {
	if !c.begun {
		c.begun = true
		return time.Now().Truncate(c.period)
	}
	return time.Now()
}

func (c *tick) Sleep(d time.Duration) { time.Sleep(d) }

// buckets makes a bucket of juju's library for each key. A request takes all of its tokens or none.
func buckets(_ testing.TB, l limitertest.Limit) limitertest.Limiter {
	var all sync.Map
	return taking(func(key string, n int64) limitertest.Decision {
		bucket, ok := all.Load(key)
		if !ok {
			every := l.Per / time.Duration(l.Tokens)
			bucket, _ = all.LoadOrStore(key, ratelimit.NewBucketWithClock(every, int64(l.Burst), &tick{period: every}))
		}
		_, taken := bucket.(*ratelimit.Bucket).TakeMaxDuration(n, 0)
		return yes(taken)
	})
}

// permits makes a limiter with a bursty RateLimiter of failsafe-go for each key. The periods of a RateLimiter begin
// when it is made. So permits makes all RateLimiters at the same time.
func permits(_ testing.TB, l limitertest.Limit) limitertest.Limiter {
	made := make([]ratelimiter.RateLimiter[any], 5000)
	for i := range made {
		made[i] = ratelimiter.NewBursty[any](uint(l.Tokens), l.Per)
	}
	var used atomic.Int64
	var all sync.Map
	return taking(func(key string, n int64) limitertest.Decision {
		of, ok := all.Load(key)
		if !ok {
			of, _ = all.LoadOrStore(key, made[used.Add(1)-1])
		}
		return yes(of.(ratelimiter.RateLimiter[any]).TryAcquirePermits(uint(n)))
	})
}
