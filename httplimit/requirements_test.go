package httplimit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
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

// The tests in this file come from faults of other limiters and from wishes of their users. The number after a name is
// the number of an issue.

func TestSevenQuickRequestsGiveFiveTimes200AndTwice429WithRetryAfter1(t *testing.T) {
	s := startServer(t, one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 5)}).Handler(hello))
	var codes []int
	var retry []string
	for range 7 {
		resp, err := s.Client().Get(s.URL)
		require.NoError(t, err)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		codes, retry = append(codes, resp.StatusCode), append(retry, resp.Header.Get("Retry-After"))
	}
	assert.Equal(t, []int{200, 200, 200, 200, 200, 429, 429}, codes)
	assert.Equal(t, []string{"", "", "", "", "", "1", "1"}, retry)
}

func TestFixedWindowOf100Per60Seconds(t *testing.T) {
	c := testclock.New()
	begin := c.Now().Unix()
	h := one(t, httplimit.Limit{Limiter: c.Limiter(t, engine.FixedWindow(100, time.Minute))},
		httplimit.Headers(httplimit.Legacy), httplimit.Clock(c.Now)).Handler(hello)
	for i := range 100 {
		w := serve(h, get("/"))
		assert.Equal(t, 200, w.Code)
		assert.Equal(t, strconv.Itoa(99-i), w.Header().Get("X-RateLimit-Remaining"))
		assert.Equal(t, strconv.FormatInt(begin+60, 10), w.Header().Get("X-RateLimit-Reset"),
			"the window began with the first request")
		c.Advance(100 * time.Millisecond)
	}
	w := serve(h, get("/"))
	assert.Equal(t, 429, w.Code)
	assert.Equal(t, "50", w.Header().Get("Retry-After"))
	assert.Equal(t, strconv.FormatInt(begin+60, 10), w.Header().Get("X-RateLimit-Reset"))
	c.Advance(50 * time.Second)
	assert.Equal(t, 200, serve(h, get("/")).Code)
}

func TestRetryAfterOn429Only(t *testing.T) {
	h := one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 3)}, httplimit.Headers(allStyles)).Handler(hello)
	for range 5 {
		w := serve(h, get("/"))
		assert.Equal(t, w.Code == 429, w.Header().Get("Retry-After") != "")
	}
}

func TestResetIsThereForATokenBucket(t *testing.T) {
	c := testclock.New()
	h := one(t, httplimit.Limit{Limiter: c.Burst(t, 5)}, httplimit.Headers(httplimit.Legacy),
		httplimit.Clock(c.Now)).Handler(hello)
	for i := range 5 {
		assert.Equal(t, strconv.FormatInt(c.Now().Unix()+int64(i)+1, 10),
			serve(h, get("/")).Header().Get("X-RateLimit-Reset"), "when it is full again")
	}
	assert.Equal(t, strconv.FormatInt(c.Now().Unix()+1, 10), serve(h, get("/")).Header().Get("X-RateLimit-Reset"),
		"when the request passes")
}

func TestAPIKeyElseIPAndAJSONBody(t *testing.T) {
	h := one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 1), Key: header(t, "X-API-Key", httplimit.RemoteIP)},
		httplimit.Body(httplimit.PlainJSON)).Handler(hello)
	for _, headers := range [][]string{{"X-API-Key", "a"}, {"X-API-Key", "b"}, nil} {
		assert.Equal(t, 200, serve(h, getFrom(direct, headers...)).Code)
		w := serve(h, getFrom(direct, headers...))
		assert.Equal(t, 429, w.Code)
		var body struct {
			Error      string
			RetryAfter int
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
		assert.Equal(t, "Too many requests", body.Error)
		assert.Equal(t, 1, body.RetryAfter)
	}
	assert.Equal(t, 200, serve(h, getFrom(proxy)).Code, "another address")
}

func TestBehindALoadBalancerEachClientHasItsBucket(t *testing.T) {
	ip := clientIP(t, httplimit.TrustProxies("10.0.0.0/8"))
	h := one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 1), Key: ip.Key}).Handler(hello)
	for i := range 10 {
		client := fmt.Sprintf("203.0.113.%d", i)
		assert.Equal(t, 200, serve(h, getFrom(proxy, "X-Forwarded-For", client)).Code)
		assert.Equal(t, 429, serve(h, getFrom("10.0.0.2:1", "X-Forwarded-For", client)).Code)
	}
}

// httprate 61 and three advisories, tollbooth 99: any client could choose its bucket by a header field.
func TestClientIPCannotBeSpoofed(t *testing.T) {
	for name, ip := range map[string]*httplimit.ClientIP{
		"no proxies": clientIP(t),
		"a proxy":    clientIP(t, httplimit.TrustProxies("10.0.0.1")),
		"Forwarded":  clientIP(t, httplimit.TrustProxies("10.0.0.1"), httplimit.IPHeader("Forwarded")),
		"X-Real-IP":  clientIP(t, httplimit.TrustProxies("10.0.0.1"), httplimit.IPHeader("X-Real-IP")),
	} {
		h := one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 1), Key: ip.Key}).Handler(hello)
		for i := range 20 {
			forged := fmt.Sprintf("203.0.113.%d", i)
			r := getFrom(direct, "X-Forwarded-For", forged, "X-Real-IP", forged, "True-Client-IP", forged,
				"CF-Connecting-IP", forged, "Forwarded", "for="+forged, "X-Client-IP", forged)
			assert.Equal(t, i == 0, serve(h, r).Code == 200, name)
		}
	}
}

// traefik 9721, caddy-ratelimit 23: one customer with an IPv6 network has 2^64 addresses.
func TestIPv6ClientsHaveOneKeyForTheir64(t *testing.T) {
	h := one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 1)}).Handler(hello)
	assert.Equal(t, 200, serve(h, getFrom("[2001:db8:1:2::1]:1")).Code)
	assert.Equal(t, 429, serve(h, getFrom("[2001:db8:1:2:ffff:ffff:ffff:ffff]:1")).Code)
	assert.Equal(t, 200, serve(h, getFrom("[2001:db8:1:3::1]:1")).Code)
}

// go-limiter 46.
func TestCostN(t *testing.T) {
	l := shared("bytes", testclock.New().Burst(t, 10))
	l.Cost = func(r *http.Request) uint64 {
		n, _ := strconv.ParseUint(r.Header.Get("Cost"), 10, 64)
		return n
	}
	h := one(t, l).Handler(hello)
	for _, step := range []struct {
		cost   string
		status int
		left   uint64
	}{{"7", 200, 3}, {"4", 429, 3}, {"0", 200, 3}, {"3", 200, 0}, {"0", 200, 0}, {"1", 429, 0},
		{"18446744073709551615", 429, 0}} {
		assert.Equal(t, step.status, serve(h, getFrom(direct, "Cost", step.cost)).Code, step.cost)
		assert.Equal(t, step.left, left(l.Limiter), step.cost)
	}
}

func TestTheFirstRequestIsRefusedIfItCostsMoreThanTheLimit(t *testing.T) {
	l := shared("small", testclock.New().Burst(t, 10))
	l.Cost = func(*http.Request) uint64 { return 11 }
	w := serve(one(t, l).Handler(hello), get("/"))
	assert.Equal(t, 429, w.Code)
	assert.NotContains(t, w.Header(), "Retry-After")
	assert.EqualValues(t, 10, left(l.Limiter))
}

// uber ratelimit 69 and 107, tollbooth 68.
func TestAChangedLimitHandsOutNoFreshBucket(t *testing.T) {
	l := shared("changed", testclock.New().Limiter(t, engine.FixedWindow(4, time.Minute)))
	h := one(t, l).Handler(hello)
	statuses(h, 4)
	require.NoError(t, l.Limiter.SetPolicy(engine.FixedWindow(8, time.Minute)))
	statuses(h, 4)
	w := serve(h, get("/"))
	assert.Equal(t, 429, w.Code)
	assert.Equal(t, `"changed";q=8;w=60`, w.Header().Get("RateLimit-Policy"))
}

// throttled 108. In other limiters, too, Retry-After was a malformed date or was missing. In some, it was always the
// complete window.
func TestRetryAfterIsNeitherMissingNorADateNorTheWholeWindow(t *testing.T) {
	c := testclock.New()
	h := one(t, httplimit.Limit{Limiter: c.Limiter(t, engine.FixedWindow(2, time.Minute))},
		httplimit.Headers(httplimit.NoHeaders)).Handler(hello)
	statuses(h, 2)
	for wait := 60; wait > 0; wait-- {
		assert.Equal(t, strconv.Itoa(wait), serve(h, get("/")).Header().Get("Retry-After"))
		c.Advance(time.Second)
	}
	assert.Equal(t, 200, serve(h, get("/")).Code)
}

// caddy-ratelimit 79, envoy ratelimit 1132.
func TestMetricsHaveAsManyLabelsAsLimits(t *testing.T) {
	var seen counts
	h := one(t, httplimit.Limit{Name: "clients", Limiter: testclock.New().Burst(t, 1)},
		httplimit.ObserveWith(&seen)).Handler(hello)
	for i := range 100 {
		serve(h, getFrom(fmt.Sprintf("203.0.113.%d:1", i)))
		assert.Equal(t, "clients", *seen.name.Load())
	}
	serve(h, getFrom("203.0.113.1:1"))
	assert.Equal(t, 100, seen.of(limits.Allowed))
	assert.Equal(t, 1, seen.of(limits.Refused))
}

// envoy ratelimit 293.
func TestShadowModeNeverRefuses(t *testing.T) {
	l := shared("trial", testclock.New().Burst(t, 1))
	l.Shadow = true
	var seen counts
	h := one(t, l, httplimit.ObserveWith(&seen)).Handler(hello)
	assert.Equal(t, []int{200, 200, 200, 200}, statuses(h, 4))
	assert.Equal(t, 3, seen.of(limits.ShadowRefused))
	gone := httplimit.Limit{Name: "gone", Source: source(t, &backend{err: errors.New("gone")}), OnLoss: limits.Closed,
		Shadow: true}
	assert.Equal(t, []int{200, 200}, statuses(one(t, gone).Handler(hello), 2))
}

// httprate-redis 15, traefik 12043 and 12091. The default handler of another limiter panicked on a backend error.
func TestABackendThatFailsDoesWhatTheCallerChose(t *testing.T) {
	gone := errors.New("gone")
	c := testclock.New()
	local := c.Burst(t, 2)
	for _, k := range []struct {
		policy  limits.FailurePolicy
		limiter *engine.Limiter
		want    []int
	}{
		{limits.Open, nil, []int{200, 200, 200}},
		{limits.Closed, nil, []int{503, 503, 503}},
		{limits.Local, local, []int{200, 200, 429}},
	} {
		var seen counts
		var told []error
		before := shared("before", c.Burst(t, 9))
		m := newMiddleware(t, []httplimit.Limit{before,
			{Name: "shared", Source: source(t, &backend{err: gone}), OnLoss: k.policy, Limiter: k.limiter}},
			httplimit.ObserveWith(&seen), httplimit.OnError(func(limit string, err error) {
				assert.Equal(t, "shared", limit)
				told = append(told, err)
			}))
		assert.Equal(t, k.want, statuses(m.Handler(hello), 3))
		assert.Equal(t, []error{gone, gone, gone}, told)
		assert.EqualValues(t, 3, m.Failures())
		assert.Equal(t, 3, seen.of(limits.Failed))
		passed := uint64(0)
		for _, status := range k.want {
			if status == 200 {
				passed++
			}
		}
		assert.Equal(t, 9-passed, left(before.Limiter), "a refused request is not charged")
		w := serve(m.Handler(hello), get("/"))
		requireHeadersHold(t, w.Result())
	}
}

// envoy ratelimit 427 and 440, upstash 161.
func TestRefusedRequestsConsumeNothing(t *testing.T) {
	c := testclock.New()
	for _, policy := range []engine.Policy{
		engine.TokenBucket(engine.Per(1, time.Minute), 1), engine.BatchRefill(1, time.Minute, 1),
		engine.FixedWindow(1, time.Minute),
		engine.SlidingWindow(1, time.Minute), engine.SlidingLog(1, time.Minute),
	} {
		h := one(t, httplimit.Limit{Limiter: c.Limiter(t, policy)}).Handler(hello)
		statuses(h, 1)
		first := serve(h, get("/")).Header()
		for range 100 {
			assert.Equal(t, first, serve(h, get("/")).Header(), policy)
		}
	}
}

// fiber 3867.
func TestCountingOnlyFailures(t *testing.T) {
	l := shared("logins", testclock.New().Burst(t, 3))
	l.Refund = httplimit.RefundStatus(200, 299)
	h := one(t, l).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wrong" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	for range 50 {
		assert.Equal(t, 200, serve(h, get("/right")).Code)
	}
	for _, want := range []int{401, 401, 401, 429} {
		assert.Equal(t, want, serve(h, get("/wrong")).Code)
	}
	assert.Equal(t, 429, serve(h, get("/right")).Code)
}

// Two middlewares take from the same two limits in opposite orders. A third has one limit twice. They must not
// deadlock.
func TestOppositeOrdersAndTheSameLimitTwiceDoNotDeadlock(t *testing.T) {
	c := testclock.New()
	a, b := shared("a", c.Burst(t, 1000)), shared("b", c.Burst(t, 1000))
	again := shared("again", a.Limiter)
	forth := newMiddleware(t, []httplimit.Limit{a, b}).Handler(hello)
	back := newMiddleware(t, []httplimit.Limit{b, a}).Handler(hello)
	var wg sync.WaitGroup
	for _, h := range []http.Handler{forth, back, forth, back} {
		wg.Go(func() { statuses(h, 100) })
	}
	wg.Wait()
	assert.EqualValues(t, 600, left(a.Limiter))
	assert.EqualValues(t, 600, left(b.Limiter))

	twice := newMiddleware(t, []httplimit.Limit{a, again}).Handler(hello)
	assert.Equal(t, 200, serve(twice, get("/")).Code)
	assert.EqualValues(t, 598, left(a.Limiter), "both names take")
	last := shared("last", c.Burst(t, 1))
	w := serve(newMiddleware(t, []httplimit.Limit{last, shared("same", last.Limiter)}).Handler(hello), get("/"))
	assert.Equal(t, 429, w.Code)
	assert.EqualValues(t, 1, left(last.Limiter), "all or nothing")
}

// httprate: a request that took longer than the rest of the window deleted the counters of all keys.
func TestARequestAcrossTheWindowsEdgeWipesNothing(t *testing.T) {
	c := testclock.New()
	var h http.Handler
	l := httplimit.Limit{Limiter: c.Limiter(t, engine.FixedWindow(2, time.Second).Aligned()),
		Refund: httplimit.RefundStatus(200, 299)}
	h = one(t, l).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fails" {
			w.WriteHeader(500)
			return
		}
		c.Advance(time.Second) // meanwhile, in the new window, other requests come
		for i := range 20 {
			failing := get("/fails")
			failing.RemoteAddr = fmt.Sprintf("203.0.113.%d:1", i/2)
			assert.Equal(t, 500, serve(h, failing).Code)
		}
	}))
	assert.Equal(t, 200, serve(h, getFrom(direct)).Code)
	for i := range 10 {
		assert.Equal(t, 429, serve(h, getFrom(fmt.Sprintf("203.0.113.%d:1", i))).Code)
	}
}
