package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

// left returns how many tokens are left for all clients together.
func left(l *engine.Limiter) uint64 { return l.Peek(l.KeyUint64(0), 0).Remaining }

// shared returns a limit with one key for all clients.
func shared(name string, l *engine.Limiter) httplimit.Limit {
	return httplimit.Limit{Name: name, Limiter: l, Key: httplimit.Everyone}
}

// TestAllOrNothing: if any limit refuses, nothing is taken from the other limits.
func TestAllOrNothing(t *testing.T) {
	c := testclock.New()
	for small := range 3 {
		var list []httplimit.Limit
		for i := range 3 {
			burst := uint64(10)
			if i == small {
				burst = 2
			}
			list = append(list, shared(fmt.Sprint("limit", i), c.Burst(t, burst)))
		}
		m := newMiddleware(t, list)
		assert.Equal(t, []int{200, 200, 429, 429}, statuses(m.Handler(hello), 4))
		for i, l := range list {
			want := uint64(8)
			if i == small {
				want = 0
			}
			assert.Equal(t, want, left(l.Limiter), "limit %d of a refusal by %d", i, small)
		}
		res := m.Decide(get("/"))
		assert.False(t, res.Allowed())
		assert.Equal(t, 429, res.Status())
		for i := range res.Len() {
			if i == small {
				assert.Equal(t, limits.Refused, res.Check(i).Outcome)
			} else {
				assert.Equal(t, limits.NotTaken, res.Check(i).Outcome)
				assert.EqualValues(t, 8, res.Check(i).Decision.Remaining, "how things stand")
			}
		}
		tightest, ok := res.Tightest()
		assert.True(t, ok)
		assert.Equal(t, fmt.Sprint("limit", small), tightest.Name())
	}
}

// TestTheLongestWaitIsTold: several limits refuse. The answer has the longest of their waits, not the wait of the
// first.
func TestTheLongestWaitIsTold(t *testing.T) {
	c := testclock.New()
	m := newMiddleware(t, []httplimit.Limit{
		shared("second", c.Limiter(t, engine.FixedWindow(1, time.Second))),
		shared("hour", c.Limiter(t, engine.FixedWindow(1, time.Hour))),
		shared("minute", c.Limiter(t, engine.FixedWindow(1, time.Minute))),
		shared("wide", c.Limiter(t, engine.FixedWindow(100, time.Hour))),
	})
	statuses(m.Handler(hello), 1)
	w := serve(m.Handler(hello), get("/"))
	assert.Equal(t, "3600", w.Header().Get("Retry-After"))
	assert.Equal(t, `"hour";r=0;t=3600`, w.Header().Get("RateLimit"))
	assert.Contains(t, w.Body.String(), `"violated-policies":["second","hour","minute"]`)
}

// TestTheTightestIsShown: headers show the limit with the fewest tokens left. If several limits have equally few,
// headers show the one that resets last.
func TestTheTightestIsShown(t *testing.T) {
	c := testclock.New()
	m := newMiddleware(t, []httplimit.Limit{
		shared("ten", c.Burst(t, 10)),
		shared("minute", c.Limiter(t, engine.FixedWindow(5, time.Minute))),
		shared("hour", c.Limiter(t, engine.FixedWindow(5, time.Hour))),
	})
	h := serve(m.Handler(hello), get("/")).Header()
	assert.Equal(t, `"hour";r=4;t=3600`, h.Get("RateLimit"))
	assert.Equal(t, `"ten";q=10;w=10, "minute";q=5;w=60, "hour";q=5;w=3600`, h.Get("RateLimit-Policy"))
	assert.Empty(t, h.Get("Retry-After"))
}

func TestShadowMode(t *testing.T) {
	c := testclock.New()
	shadow := shared("trial", c.Burst(t, 2))
	shadow.Shadow = true
	var seen counts
	var told []string
	m := newMiddleware(t, []httplimit.Limit{shadow, shared("real", c.Burst(t, 4))}, httplimit.ObserveWith(&seen),
		httplimit.OnLimited(func(r *http.Request, c httplimit.Check) {
			assert.Equal(t, "number:0", c.KeyText(r))
			assert.Equal(t, shadow.Limiter.KeyUint64(0), c.Key())
			told = append(told, fmt.Sprint(c.Name(), " ", c.Outcome, " ", c.Shadow(), " ", c.Decision.RetryAfter))
		}))
	assert.Equal(t, []int{200, 200, 200, 200, 429}, statuses(m.Handler(hello), 5))
	assert.Equal(t, []string{"trial shadow_refused true 1s", "trial shadow_refused true 1s", "real refused false 1s"},
		told)
	assert.Equal(t, 6, seen.of(limits.Allowed))
	assert.Equal(t, 2, seen.of(limits.ShadowRefused))
	assert.Equal(t, 1, seen.of(limits.Refused))
	c.Advance(time.Minute)
	h := serve(m.Handler(hello), get("/")).Header()
	assert.Equal(t, `"real";q=4;w=4`, h.Get("RateLimit-Policy"), "clients do not see it")
	assert.Equal(t, `"real";r=3;t=1`, h.Get("RateLimit"))
	assert.EqualValues(t, 1, left(shadow.Limiter))

	alone := one(t, shadow)
	w := serve(alone.Handler(hello), get("/"))
	assert.Equal(t, 200, w.Code)
	assert.NotContains(t, w.Header(), "Ratelimit-Policy")
}

// TestARefusalCostsShadowsNothing: if another limit refuses a request, a limit in shadow mode takes nothing for the
// request.
func TestARefusalCostsShadowsNothing(t *testing.T) {
	c := testclock.New()
	shadow := shared("trial", c.Burst(t, 10))
	shadow.Shadow = true
	m := newMiddleware(t, []httplimit.Limit{shadow, shared("real", c.Burst(t, 1))})
	assert.Equal(t, []int{200, 429, 429}, statuses(m.Handler(hello), 3))
	assert.EqualValues(t, 9, left(shadow.Limiter))
}

func TestMatchSkipAndKeysThatDoNotApply(t *testing.T) {
	c := testclock.New()
	admin := shared("admin", c.Burst(t, 1))
	admin.Match = func(r *http.Request) bool { return r.URL.Path == "/admin" }
	users := httplimit.Limit{Name: "users", Limiter: c.Burst(t, 1), Key: header(t, "User", nil)}
	m := newMiddleware(t, []httplimit.Limit{admin, users},
		httplimit.Skip(func(r *http.Request) bool { return r.URL.Path == "/health" }))
	h := m.Handler(hello)
	for range 3 {
		assert.Equal(t, 200, serve(h, get("/")).Code)
		w := serve(h, get("/health"))
		assert.Equal(t, 200, w.Code)
		assert.NotContains(t, w.Header(), "Ratelimit-Policy")
	}
	assert.Equal(t, 200, serve(h, get("/admin")).Code)
	assert.Equal(t, 429, serve(h, get("/admin")).Code)
	assert.Equal(t, 200, serve(h, getFrom(direct, "User", "a")).Code)
	assert.Equal(t, 429, serve(h, getFrom(direct, "User", "a")).Code)
	assert.Equal(t, 200, serve(h, getFrom(direct, "User", "b")).Code)
	res := m.Decide(get("/"))
	_, ok := res.Tightest()
	assert.False(t, ok)
	assert.Zero(t, res.Len())
	assert.Zero(t, res.RetryAfter())
}

func TestTiers(t *testing.T) {
	c := testclock.New()
	l := shared("plan", c.Limiter(t, engine.FixedWindow(2, time.Minute),
		engine.Tiers(engine.FixedWindow(4, time.Minute))))
	l.Tier = func(r *http.Request) int {
		tier := 0
		fmt.Sscan(r.Header.Get("Plan"), &tier)
		return tier
	}
	m := one(t, l)
	h := m.Handler(hello)
	assert.Equal(t, `"plan";q=2;w=60`, serve(h, get("/")).Header().Get("RateLimit-Policy"))
	w := serve(h, getFrom(direct, "Plan", "1"))
	assert.Equal(t, `"plan";q=4;w=60`, w.Header().Get("RateLimit-Policy"))
	assert.Equal(t, `"plan";r=2;t=60`, w.Header().Get("RateLimit"), "the key's record goes along")
	res := m.Decide(getFrom(direct, "Plan", "1"))
	assert.Equal(t, 1, res.Check(0).Tier)
	for _, tier := range []string{"2", "14", "15", "16", "-1", "9999999"} {
		w := serve(h, getFrom(direct, "Plan", tier))
		assert.Equal(t, 429, w.Code, tier)
		assert.Empty(t, w.Header().Get("Retry-After"), tier)
		assert.Equal(t, `"plan";q=0`, w.Header().Get("RateLimit-Policy"), tier)
	}
}

// TestManyLimits: decisions are right with more limits than fit into a Result without an allocation.
func TestManyLimits(t *testing.T) {
	c := testclock.New()
	var limits []httplimit.Limit
	for i := range 20 {
		limits = append(limits, shared(fmt.Sprint(i), c.Burst(t, uint64(30-i))))
	}
	m := newMiddleware(t, limits)
	res := m.Decide(get("/"))
	assert.Equal(t, 20, res.Len())
	tightest, _ := res.Tightest()
	assert.Equal(t, "19", tightest.Name())
	assert.Equal(t, []int{200, 429}, statuses(m.Handler(hello), 11)[9:])
	assert.EqualValues(t, 19, left(limits[0].Limiter))
}

// TestConcurrentRequests: concurrent requests together get as many tokens as are available under every limit, no more
// and no fewer.
func TestConcurrentRequests(t *testing.T) {
	c := testclock.New()
	wide, narrow := c.Burst(t, 100), c.Burst(t, 40)
	h := newMiddleware(t, []httplimit.Limit{shared("wide", wide), shared("narrow", narrow)}).Handler(hello)
	var wg sync.WaitGroup
	var passed counts
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if serve(h, get("/")).Code == 200 {
					passed.Observe("", limits.Allowed)
				}
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 40, passed.of(limits.Allowed))
	assert.EqualValues(t, 60, left(wide))
	assert.EqualValues(t, 0, left(narrow))
}

func source(t testing.TB, b limits.Backend) limits.Source {
	s, err := limits.NewSource(b, engine.TokenBucket(engine.PerSecond(1), 3), nil)
	require.NoError(t, err)
	return s
}

// backend is a Backend whose results the test sets.
type backend struct {
	limiter  *engine.Limiter
	err      error
	keys     []string
	refunded uint64
}

func (s *backend) Take(_ context.Context, key string, n uint64) (engine.Decision, error) {
	s.keys = append(s.keys, key)
	if s.err != nil {
		return engine.Decision{}, s.err
	}
	return s.limiter.Take(key, n), nil
}

func (s *backend) Refund(ctx context.Context, key string, n uint64) error {
	s.limiter.Refund(s.limiter.Key(key), n)
	s.refunded += n
	return errors.Join(s.err, ctx.Err())
}

func TestBackends(t *testing.T) {
	c := testclock.New()
	s := &backend{limiter: c.Burst(t, 3)}
	behind := shared("behind", c.Burst(t, 2))
	m := newMiddleware(t, []httplimit.Limit{
		shared("first", c.Burst(t, 10)),
		{Name: "store", Source: source(t, s)},
		behind,
	})
	h := m.Handler(hello)
	w := serve(h, getFrom(direct))
	assert.Equal(t, `"first";q=10;w=10, "store";q=3;w=3, "behind";q=2;w=2`, w.Header().Get("RateLimit-Policy"))
	assert.Equal(t, []string{"ip:198.51.100.7"}, s.keys)
	assert.Equal(t, 200, serve(h, getFrom(direct)).Code)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w = serve(h, getFrom(direct).WithContext(ctx))
	assert.Equal(t, 429, w.Code)
	assert.Len(t, s.keys, 2, "limits in memory are asked first, and a refusal there asks no store")
	assert.EqualValues(t, 1, s.limiter.Peek(s.limiter.Key("ip:198.51.100.7"), 0).Remaining)
	assert.Zero(t, m.Failures())

	// If an earlier limit refuses, the backend is not called, and the headers still show its policy.
	c.Advance(time.Minute)
	first := newMiddleware(t, []httplimit.Limit{behind, {Name: "store", Source: source(t, s)}})
	assert.Equal(t, []int{200, 200}, statuses(first.Handler(hello), 2))
	asked := len(s.keys)
	w = serve(first.Handler(hello), get("/"))
	assert.Len(t, s.keys, asked)
	assert.Equal(t, `"behind";q=2;w=2, "store";q=3;w=3`, w.Header().Get("RateLimit-Policy"))
}

// TestShortAnswersOfABackend: invalid numbers from a backend do not get into the headers.
func TestShortAnswersOfABackend(t *testing.T) {
	for _, d := range []engine.Decision{
		{RetryAfter: -5, ResetAfter: -5}, {}, {Limit: 1<<64 - 1, Remaining: 1<<64 - 1},
		{Allowed: true, ResetAfter: -time.Hour},
	} {
		m := one(t, httplimit.Limit{Source: source(t, fixed(d))},
			httplimit.Headers(httplimit.IETF|httplimit.Legacy|httplimit.Draft06))
		w := serve(m.Handler(hello), get("/"))
		requireHeadersHold(t, w.Result())
	}
}

type fixed engine.Decision

func (f fixed) Take(context.Context, string, uint64) (engine.Decision, error) {
	return engine.Decision(f), nil
}
func (f fixed) Refund(context.Context, string, uint64) error { return nil }

func TestBadLimits(t *testing.T) {
	l := testclock.New().Burst(t, 5)
	s := fixed{}
	for _, c := range []struct {
		limits []httplimit.Limit
		want   string
	}{
		{nil, "no limits"},
		{[]httplimit.Limit{{Limiter: l}}, `limit 1 of 1, "": the name goes into answers`},
		{[]httplimit.Limit{{Name: "é", Limiter: l}}, `limit 1 of 1, "é": the name`},
		{[]httplimit.Limit{{Name: "a\nb", Limiter: l}}, `"a\nb"`},
		{[]httplimit.Limit{{Name: string(make([]byte, 1025)), Limiter: l}}, "1 to 1,024"},
		{[]httplimit.Limit{{Name: "a", Limiter: l, Unit: "\x7f"}}, `unit "\x7f"`},
		{[]httplimit.Limit{{Name: "a"}}, "neither a Limiter nor a Source"},
		{[]httplimit.Limit{{Name: "a", Limiter: l}, {Name: "b", Limiter: l}, {Name: "a", Limiter: l}},
			`limits 1 and 3 of 3 have the same name, "a"`},
		{[]httplimit.Limit{{Name: "a", Limiter: l, OnLoss: limits.Closed}}, "but Source is nil"},
		{[]httplimit.Limit{{Name: "a", Source: source(t, s), OnLoss: 9}}, "an OnLoss of 9"},
		{[]httplimit.Limit{{Name: "a", Source: source(t, s), Tier: func(*http.Request) int { return 0 }}}, "no tiers"},
		{[]httplimit.Limit{{Name: "a", Source: source(t, s), OnLoss: limits.Local}}, "no Limiter to fall back to"},
		{[]httplimit.Limit{{Name: "a", Source: source(t, s), Limiter: l}}, "only Local uses both"},
	} {
		_, err := httplimit.New(c.limits)
		assert.ErrorContains(t, err, c.want)
	}
	for _, c := range []struct {
		option httplimit.Option
		want   string
	}{
		{nil, "option 1 of 1 is nil"},
		{httplimit.Headers(128), "Headers(128)"},
		{httplimit.Body(2), "Body(2)"},
		{httplimit.RefuseWith(nil), "RefuseWith(nil)"},
		{httplimit.Skip(nil), "Skip(nil)"},
		{httplimit.OnLimited(nil), "OnLimited(nil)"},
		{httplimit.OnError(nil), "OnError(nil)"},
		{httplimit.ObserveWith(nil), "ObserveWith(nil)"},
		{httplimit.Clock(nil), "Clock(nil)"},
		{httplimit.RetryJitter(0, nil), "RetryJitter(0s): want whole seconds, 1s to 1h"},
		{httplimit.RetryJitter(1500*time.Millisecond, nil), "RetryJitter(1.5s)"},
		{httplimit.RetryJitter(2*time.Hour, nil), "RetryJitter(2h0m0s)"},
		{httplimit.PartitionKeys([]byte("short")), "5 bytes: want at least 16"},
	} {
		_, err := httplimit.New([]httplimit.Limit{{Name: "a", Limiter: l}}, c.option)
		assert.ErrorContains(t, err, c.want)
	}
	require.Equal(t, "Outcome(200)", limits.Outcome(200).String())
}
