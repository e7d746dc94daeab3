package httplimit_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/internal/testrace"
	"github.com/weir-go/weir/limits"
)

func plenty(t testing.TB, name string, key httplimit.KeyFunc) httplimit.Limit {
	return httplimit.Limit{Name: name, Limiter: testclock.New().Limiter(t, engine.TokenBucket(engine.PerSecond(1), 1<<32)),
		Key: key}
}

// budgets returns requests. For each request, it also returns how many allocations the decision may make.
func budgets(t testing.TB) (cases []budget) {
	t.Helper()
	trusting := clientIP(t, httplimit.TrustProxies("10.0.0.0/8", "2001:db8:ffff::/48"))
	apiKey := header(t, "X-API-Key", trusting.Key)
	empty := plenty(t, "empty", httplimit.Everyone)
	empty.Limiter = testclock.New().Burst(t, 1)
	empty.Limiter.TakeKey(empty.Limiter.KeyUint64(0), 1)
	shadow := plenty(t, "shadow", httplimit.Everyone)
	shadow.Shadow = true
	refund := plenty(t, "refund", nil)
	refund.Refund = httplimit.RefundStatus(200, 299)
	var eight []httplimit.Limit
	for i := range 8 {
		eight = append(eight, plenty(t, fmt.Sprint("limit", i), httplimit.Everyone))
	}
	session, err := httplimit.Cookie("session", nil)
	require.NoError(t, err)
	request := getFrom(proxy, "X-Forwarded-For", "1.1.1.1, 203.0.113.9", "X-API-Key",
		"0123456789abcdef0123456789abcdef",
		"Cookie", "theme=dark; session=0123456789abcdef")
	for _, c := range []struct {
		name   string
		limits []httplimit.Limit
	}{
		{"remote-ip", []httplimit.Limit{plenty(t, "a", nil)}},
		{"forwarded-ip", []httplimit.Limit{plenty(t, "a", trusting.Key)}},
		{"header", []httplimit.Limit{plenty(t, "a", apiKey)}},
		{"cookie", []httplimit.Limit{plenty(t, "a", session)}},
		{"join", []httplimit.Limit{plenty(t, "a", httplimit.Join(apiKey, httplimit.Method, httplimit.Path))}},
		{"refund", []httplimit.Limit{refund}},
		{"ip+user+global", []httplimit.Limit{plenty(t, "a", trusting.Key), plenty(t, "b", apiKey),
			plenty(t, "c", httplimit.Everyone)}},
		{"ip+user+global-refused", []httplimit.Limit{plenty(t, "a", trusting.Key), plenty(t, "b", apiKey), empty}},
		{"ip+shadow", []httplimit.Limit{plenty(t, "a", trusting.Key), shadow}},
		{"eight", eight},
	} {
		cases = append(cases, budget{c.name, newMiddleware(t, c.limits, httplimit.ObserveWith(new(ignore))), request})
	}
	return cases
}

type budget struct {
	name    string
	m       *httplimit.Middleware
	request *http.Request
}

// ignore implements Metrics and ignores all outcomes.
type ignore struct{}

func (*ignore) Observe(string, limits.Outcome) {}

// TestDecisionsDoNotAllocate: a decision with up to eight limits does not allocate, for any key, whether it admits or
// refuses.
func TestDecisionsDoNotAllocate(t *testing.T) {
	for _, c := range budgets(t) {
		if testrace.Enabled && c.name == "join" {
			continue
		}
		assert.Zero(t, testalloc.PerCall(func() { c.m.Decide(c.request) }), c.name)
	}
}

// TestHeadersAllocateLittle: headers allocate one string for each changed header, and one array for all values.
func TestHeadersAllocateLittle(t *testing.T) {
	for styles, want := range map[httplimit.HeaderStyle]float64{
		httplimit.IETF:      2, // RateLimit, and the array
		httplimit.Legacy:    4, // three numbers, and the array
		httplimit.NoHeaders: 0,
	} {
		m := one(t, plenty(t, "default", nil), httplimit.Headers(styles))
		r := get("/")
		h := http.Header{}
		assert.LessOrEqual(t, testalloc.PerCall(func() {
			clear(h)
			res := m.Decide(r)
			res.WriteHeaders(h)
		}), want, "style %d", styles)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, c := range budgets(b) {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.m.Decide(c.request)
			}
		})
	}
}

// BenchmarkKey compares two times: finding and hashing the client's address, and a decision of the engine alone.
func BenchmarkKey(b *testing.B) {
	l := plenty(b, "a", nil).Limiter
	b.Run("take-alone", func(b *testing.B) {
		for b.Loop() {
			l.TakeKey(l.KeyUint64(0), 1)
		}
	})
	ip := clientIP(b, httplimit.TrustProxies("10.0.0.0/8", "2001:db8:ffff::/48"))
	for _, c := range []struct {
		name string
		key  httplimit.KeyFunc
	}{{"remote-ip", httplimit.RemoteIP}, {"forwarded-ip", ip.Key}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			r := getFrom(proxy, "X-Forwarded-For", "1.1.1.1, 203.0.113.9")
			for b.Loop() {
				c.key(limits.HasherOf(l), r)
			}
		})
	}
}

// writer is a ResponseWriter that stores only the header. So it costs almost nothing.
type writer http.Header

func (w writer) Header() http.Header         { return http.Header(w) }
func (w writer) Write(b []byte) (int, error) { return len(b), nil }
func (w writer) WriteHeader(int)             {}

// BenchmarkHandler compares two handlers: an empty handler in the middleware, and a handler that sets the same headers
// by http.Header.Set.
func BenchmarkHandler(b *testing.B) {
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	refund := plenty(b, "default", nil)
	refund.Refund = httplimit.RefundStatus(200, 299)
	empty := plenty(b, "default", httplimit.Everyone)
	empty.Limiter = testclock.New().Burst(b, 1)
	empty.Limiter.TakeKey(empty.Limiter.KeyUint64(0), 1)
	remaining := uint64(1 << 32)
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{
		{"nothing", nothing},
		{"by-hand", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			remaining--
			w.Header().Set("RateLimit-Policy", `"default";q=4294967296;w=4294967296`)
			w.Header().Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, remaining, 1))
		})},
		{"ietf", one(b, plenty(b, "default", nil)).Handler(nothing)},
		{"legacy", one(b, plenty(b, "default", nil), httplimit.Headers(httplimit.Legacy)).Handler(nothing)},
		{"none", one(b, plenty(b, "default", nil), httplimit.Headers(httplimit.NoHeaders)).Handler(nothing)},
		{"refund", one(b, refund).Handler(nothing)},
		{"refused", one(b, empty).Handler(nothing)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			w, r := writer{}, get("/")
			for b.Loop() {
				clear(w)
				c.handler.ServeHTTP(w, r)
			}
		})
	}
}
