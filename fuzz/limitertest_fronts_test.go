package fuzz

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limitertest"
	"github.com/weir-go/weir/rpclimit"
)

// frontConfig is that of a front before a token bucket.
func frontConfig(t *testing.T, front func(tb testing.TB, l *engine.Limiter, everyone *engine.Limiter) limitertest.Limiter) limitertest.Config {
	config := engineConfig(t, limitertest.Bucket, policies[0].of, nil)
	config.Keys, config.Limits = 500, short(someLimits)
	config.New = func(tb testing.TB, l limitertest.Limit) limitertest.Limiter {
		limiter, err := engine.New(policies[0].of(l), engine.MaxKeys(1<<14))
		require.NoError(tb, err)
		// All keys have this limit together, too. What it refuses has taken nothing from the other one.
		everyone, err := engine.New(engine.TokenBucket(engine.PerSecond(1e9), 1<<32), engine.MaxKeys(10))
		require.NoError(tb, err)
		asked := &frontLimiter{front(tb, limiter, everyone)}
		tb.Cleanup(func() {
			require.NoError(tb, limiter.Close())
			require.NoError(tb, everyone.Close())
			asked.Limiter = nil
		})
		return asked
	}
	return config
}

// A frontLimiter lets go of its limiter in the end, as an engineLimiter does.
type frontLimiter struct{ limitertest.Limiter }

// An httpLimiter asks the handler of a middleware, and reads the status and Retry-After.
type httpLimiter struct{ handler http.Handler }

func (l httpLimiter) Take(key string, n int64) limitertest.Decision {
	if n < 0 {
		return limitertest.Decision{RetryAfter: -1}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header["Key"], r.Header["Cost"] = []string{key}, []string{strconv.FormatInt(n, 10)}
	w := httptest.NewRecorder()
	l.handler.ServeHTTP(w, r)
	d := limitertest.Decision{Allowed: w.Code == http.StatusNoContent, RetryAfter: -1}
	if seconds, err := strconv.Atoi(w.Header().Get("Retry-After")); err == nil {
		d.RetryAfter = time.Duration(seconds) * time.Second
	}
	return d
}

// TestHTTPKeepsItsPromises holds httplimit against package limitertest.
func TestHTTPKeepsItsPromises(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes under the race detector, which the tests of the package itself run under")
	}
	cost := func(r *http.Request) uint64 {
		n, err := strconv.ParseUint(r.Header.Get("Cost"), 10, 64)
		require.NoError(t, err)
		return n
	}
	key := func(h httplimit.Hasher, r *http.Request) (engine.Key, bool) { return h.Key(r.Header.Get("Key")), true }
	config := frontConfig(t, func(tb testing.TB, limiter, everyone *engine.Limiter) limitertest.Limiter {
		m, err := httplimit.New([]httplimit.Limit{
			{Name: "key", Limiter: limiter, Key: key, Cost: cost},
			{Name: "all", Limiter: everyone, Key: httplimit.Everyone, Cost: cost},
		})
		require.NoError(tb, err)
		return httpLimiter{m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))}
	})
	config.RetryUnit = time.Second // of Retry-After
	limitertest.Test(t, config)
}

// An rpcLimiter asks the limits of calls.
type rpcLimiter struct{ limits *rpclimit.Limits }

func (l rpcLimiter) Take(key string, n int64) limitertest.Decision {
	if n < 0 {
		return limitertest.Decision{RetryAfter: -1}
	}
	res := l.limits.Decide(rpclimit.Call{Method: key, Message: n})
	if !res.Allowed() {
		return limitertest.Decision{RetryAfter: res.RetryAfter()}
	}
	res.Finish(rpclimit.OK)
	return limitertest.Decision{Allowed: true}
}

// TestCallsKeepTheirPromises holds rpclimit against package limitertest.
func TestCallsKeepTheirPromises(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes under the race detector, which the tests of the package itself run under")
	}
	cost := func(c rpclimit.Call) uint64 { return uint64(c.Message.(int64)) }
	key := func(h rpclimit.Hasher, c rpclimit.Call) (engine.Key, bool) { return h.Key(c.Method), true }
	limitertest.Test(t, frontConfig(t, func(tb testing.TB, limiter, everyone *engine.Limiter) limitertest.Limiter {
		l, err := rpclimit.New([]rpclimit.Limit{
			{Name: "key", Limiter: limiter, Key: key, Cost: cost},
			{Name: "all", Limiter: everyone, Key: rpclimit.Everyone, Cost: cost},
		})
		require.NoError(tb, err)
		return rpcLimiter{l}
	}))
}
