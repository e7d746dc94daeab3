package httplimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

func perHour(r *http.Request) (engine.Policy, error) {
	switch text := r.Header.Get("X-Per-Hour"); text {
	case "all":
		return engine.Unlimited(), nil
	case "none":
		return engine.Blocked(), nil
	default:
		n, _ := strconv.ParseUint(text, 10, 64)
		return engine.TokenBucket(engine.Per(float64(n), time.Hour), n), nil
	}
}

// TestQuotaOfARequest: the limit comes with the request, and the headers of the answer show it.
func TestQuotaOfARequest(t *testing.T) {
	c := testclock.New()
	var failures []error
	m := one(t, httplimit.Limit{Limiter: c.Limiter(t, engine.TokenBuckets(2*time.Hour)), Quota: perHour},
		httplimit.OnError(func(_ string, err error) { failures = append(failures, err) }))
	ask := func(text string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Per-Hour", text)
		m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		return w
	}
	w := ask("3")
	require.Equal(t, 200, w.Code)
	require.Equal(t, `"default";q=3;w=3600`, w.Header().Get("RateLimit-Policy"))
	require.Equal(t, `"default";r=2;t=1200`, w.Header().Get("RateLimit"))
	w = ask("6")
	require.Equal(t, `"default";q=6;w=3600`, w.Header().Get("RateLimit-Policy"))
	require.Equal(t, `"default";r=4;t=1200`, w.Header().Get("RateLimit"), "what the key owes is the key's: one token, and one more")
	require.Equal(t, 429, ask("1").Code)

	w = ask("all")
	require.Equal(t, 200, w.Code)
	require.Empty(t, w.Header().Get("RateLimit-Policy"))
	require.Empty(t, w.Header().Get("RateLimit"))
	w = ask("none")
	require.Equal(t, 429, w.Code)
	require.Equal(t, `"default";q=0`, w.Header().Get("RateLimit-Policy"))
	require.Empty(t, w.Header().Get("Retry-After"))

	require.Empty(t, failures)
	require.Equal(t, 503, ask("nonsense").Code)
	require.Equal(t, 503, ask("18446744073709551615").Code)
	require.Len(t, failures, 2)
	require.ErrorContains(t, failures[0], `limits: the Quota of limit "default": engine: Quota(token bucket 0/h burst 0)`)
}

// quotaBackend is a backend that uses a limiter with a quota.
type quotaBackend struct {
	limiter *engine.Limiter
	quota   engine.Quota
}

func (b quotaBackend) Take(_ context.Context, key string, n uint64) (engine.Decision, error) {
	return b.limiter.TakeKey(b.limiter.Key(key).With(b.quota), n), nil
}

func (b quotaBackend) Refund(_ context.Context, key string, n uint64) error {
	b.limiter.Refund(b.limiter.Key(key).With(b.quota), n)
	return nil
}

// TestQuotaOfABackend: a backend decides by the limit that comes with the request. If the backend does not accept the
// limit, the answer is 503. OnLoss does not change this.
func TestQuotaOfABackend(t *testing.T) {
	l := testclock.New().Limiter(t, engine.TokenBuckets(2*time.Hour))
	quotas, err := limits.NewSource(quotaBackend{limiter: l}, l.Policy(0), func(p engine.Policy) (limits.Backend, error) {
		q, err := l.Quota(p)
		return quotaBackend{l, q}, err
	})
	require.NoError(t, err)
	var failures []error
	refunds := false
	m := one(t, httplimit.Limit{
		Source: quotas, Quota: perHour, OnLoss: limits.Open,
		Refund: func(*http.Request, int) bool { return refunds },
	}, httplimit.OnError(func(_ string, err error) { failures = append(failures, err) }))
	ask := func(text string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Per-Hour", text)
		m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		return w
	}
	w := ask("3")
	require.Equal(t, 200, w.Code)
	require.Equal(t, `"default";q=3;w=3600`, w.Header().Get("RateLimit-Policy"))
	require.Equal(t, `"default";r=2;t=1200`, w.Header().Get("RateLimit"))
	refunds = true
	require.Equal(t, 200, ask("3").Code)
	refunds = false
	require.Equal(t, `"default";r=4;t=1200`, ask("6").Header().Get("RateLimit"), "one token, and one more; the second came back")
	require.Empty(t, ask("all").Header().Get("RateLimit"))
	require.Equal(t, 429, ask("none").Code)
	require.Empty(t, failures)
	require.Equal(t, 503, ask("nonsense").Code)
	require.Len(t, failures, 1)
}

func TestQuotaBadInput(t *testing.T) {
	c := testclock.New()
	for want, l := range map[string]httplimit.Limit{
		"both Tier and Quota": {Limiter: c.Burst(t, 1), Quota: perHour, Tier: func(*http.Request) int { return 0 }},
	} {
		l.Name = "x"
		_, err := httplimit.New([]httplimit.Limit{l})
		require.ErrorContains(t, err, want)
	}
}

func TestQuotaAllocatesNothing(t *testing.T) {
	m := one(t, httplimit.Limit{Limiter: testclock.New().Limiter(t, engine.TokenBuckets(2*time.Hour)), Quota: func(*http.Request) (engine.Policy, error) {
		return engine.TokenBucket(engine.Per(100, time.Hour), 100), nil
	}})
	r := httptest.NewRequest("GET", "/", nil)
	require.Zero(t, testalloc.PerCall(func() { m.Decide(r) }))
}
