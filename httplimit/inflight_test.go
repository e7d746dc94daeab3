package httplimit_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

func inFlight(t testing.TB, c *testclock.Clock, limit uint64) httplimit.Limit {
	return shared("in flight", c.Limiter(t, engine.Concurrency(limit, time.Hour)))
}

// TestARequestIsInFlightUntilItsHandlerReturns: a request is in flight until its handler returns or panics. What the
// handler does with the answer does not matter.
func TestARequestIsInFlightUntilItsHandlerReturns(t *testing.T) {
	l := inFlight(t, testclock.New(), 2)
	var during uint64
	for name, handler := range map[string]http.HandlerFunc{
		"nothing":         func(http.ResponseWriter, *http.Request) {},
		"a body":          func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") },
		"an error":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"a panic":         func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a broken answer": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x"); panic(http.ErrAbortHandler) },
	} {
		m := one(t, l)
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			during = left(l.Limiter)
			handler(w, r)
		}))
		func() {
			defer func() { _ = recover() }()
			serve(h, get("/"))
		}()
		assert.EqualValues(t, 1, during, name)
		assert.EqualValues(t, 2, left(l.Limiter), name)
	}
}

// TestAHijackedConnectionIsInFlight: a hijacked connection is in flight until its handler returns.
func TestAHijackedConnectionIsInFlight(t *testing.T) {
	l := inFlight(t, testclock.New(), 1)
	s := startServer(t, one(t, l).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffer, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		fmt.Fprint(buffer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		buffer.Flush()
		line, _ := buffer.ReadString('\n')
		fmt.Fprint(buffer, line)
		buffer.Flush()
	})))
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	other, err := s.Client().Get(s.URL)
	require.NoError(t, err)
	other.Body.Close()
	assert.Equal(t, http.StatusTooManyRequests, other.StatusCode, "the connection is alive")
	fmt.Fprint(conn, "bye\n")
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "bye\n", line)
	require.Eventually(t, func() bool { return left(l.Limiter) == 1 }, time.Minute, time.Millisecond)
}

// TestNoMoreRequestsInside: the handler never has more requests at the same time than the limit allows. The other
// requests are refused.
func TestNoMoreRequestsInside(t *testing.T) {
	const limit = 3
	l := inFlight(t, testclock.New(), limit)
	var inside, refused atomic.Int64
	h := one(t, l).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if n := inside.Add(1); n > limit {
			t.Errorf("%d are inside", n)
		}
		time.Sleep(time.Microsecond)
		inside.Add(-1)
	}))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 200 {
				if serve(h, get("/")).Code == http.StatusTooManyRequests {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	assert.Positive(t, refused.Load())
	assert.EqualValues(t, limit, left(l.Limiter))
}

// TestARefusalByALimitInFlight: the answer has the name of the limit, but no time to come back, because no one knows
// that time.
func TestARefusalByALimitInFlight(t *testing.T) {
	full := shared("full", testclock.New().Burst(t, 1))
	hold := func(m *httplimit.Middleware) (release func()) {
		res := m.Decide(get("/"))
		require.True(t, res.Allowed())
		return res.Release
	}
	// In draft 10, the parameter qu says what q counts. The parameter w and the field RateLimit are optional.
	policy := []string{`"in flight";q=1;qu="concurrent-requests"`}
	for _, options := range [][]httplimit.Option{nil, {httplimit.Body(httplimit.PlainJSON)}, {httplimit.Headers(httplimit.Legacy | httplimit.Draft06)}, {httplimit.RetryJitter(time.Minute, nil)}} {
		m := one(t, inFlight(t, testclock.New(), 1), options...)
		release := hold(m)
		w := serve(m.Handler(hello), get("/"))
		assert.Equal(t, http.StatusTooManyRequests, w.Code)
		if policies := w.Header().Values("RateLimit-Policy"); policies != nil {
			assert.Equal(t, policy, policies)
		}
		for _, name := range []string{"Retry-After", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Reset", "RateLimit-Limit", "RateLimit-Reset"} {
			assert.Empty(t, w.Header().Values(name), name)
		}
		if len(options) == 0 {
			assert.JSONEq(t, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
				"title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,
				"detail":"Too many requests are in flight: try again when one of them is over.",
				"violated-policies":["in flight"]}`, w.Body.String())
		}
		release()
		w = serve(m.Handler(hello), get("/"))
		assert.Equal(t, http.StatusOK, w.Code)
		if len(options) == 0 {
			assert.Equal(t, policy, w.Header().Values("RateLimit-Policy"))
		}
	}
	m := one(t, inFlight(t, testclock.New(), 1), httplimit.Body(httplimit.PlainJSON))
	hold(m)
	assert.JSONEq(t, `{"error":"Too many requests","retryAfter":null}`, serve(m.Handler(hello), get("/")).Body.String())
	r := get("/")
	r.Method, r.ProtoMajor, r.ProtoMinor = http.MethodPost, 2, 0
	r.Header.Set("Content-Type", "application/grpc")
	w := serve(m.Handler(hello), r)
	assert.Equal(t, []string{"8"}, w.Header()["Grpc-Status"])
	assert.Equal(t, []string{"too many calls are in flight"}, w.Header()["Grpc-Message"])
	assert.Empty(t, w.Header()["Grpc-Status-Details-Bin"])

	dear := inFlight(t, testclock.New(), 2)
	dear.Cost = func(*http.Request) uint64 { return 3 }
	w = serve(newMiddleware(t, []httplimit.Limit{dear, full}).Handler(hello), get("/"))
	assert.Contains(t, w.Body.String(), "This request can never be admitted: it costs 3 and the limit is 2")
	assert.Empty(t, w.Header().Values("RateLimit"))
	assert.EqualValues(t, 1, left(full.Limiter))
}

// TestLimitsInFlightBesideRates: a limit in flight and a limit of the rate apply together. If one of them refuses,
// nothing is taken from the other. Headers describe the rates.
func TestLimitsInFlightBesideRates(t *testing.T) {
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		c := testclock.New()
		limits := []httplimit.Limit{inFlight(t, c, 1), shared("rate", c.Burst(t, 2))}
		gate, rate := limits[0].Limiter, limits[1].Limiter
		m := newMiddleware(t, []httplimit.Limit{limits[order[0]], limits[order[1]]})
		h := m.Handler(hello)
		first := m.Decide(get("/"))
		require.True(t, first.Allowed())
		w := serve(h, get("/"))
		assert.Equal(t, http.StatusTooManyRequests, w.Code, "one is inside")
		assert.Empty(t, w.Header().Values("Retry-After"))
		assert.EqualValues(t, 1, left(rate), "and took nothing from the rate")
		first.Release()
		first.Release()
		w = serve(h, get("/"))
		assert.Equal(t, http.StatusOK, w.Code)
		policies := []string{`"in flight";q=1;qu="concurrent-requests"`, `"rate";q=2;w=2`}
		assert.Equal(t, policies[order[0]]+", "+policies[order[1]], w.Header().Get("RateLimit-Policy"))
		assert.Equal(t, `"rate";r=0;t=1`, w.Header().Get("RateLimit"))
		w = serve(h, get("/"))
		assert.Equal(t, http.StatusTooManyRequests, w.Code)
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
		assert.EqualValues(t, 1, left(gate), "and is not inside")
		c.Advance(time.Second)
		second := m.Decide(get("/"))
		require.True(t, second.Allowed())
		w = serve(h, get("/"))
		assert.Equal(t, "1", w.Header().Get("Retry-After"), "both refuse: that of the rate is known")
		second.Finish(get("/"), 200)
		assert.EqualValues(t, 1, left(gate))
		assert.Zero(t, left(rate))
	}
}

// TestAShadowedLimitInFlight: a limit in flight in shadow mode counts requests while they are in flight, and refuses
// none.
func TestAShadowedLimitInFlight(t *testing.T) {
	l := inFlight(t, testclock.New(), 1)
	l.Shadow = true
	m := one(t, l)
	first, second := m.Decide(get("/")), m.Decide(get("/"))
	assert.True(t, second.Allowed())
	assert.Equal(t, limits.ShadowRefused, second.Check(0).Outcome)
	second.Release()
	assert.Zero(t, left(l.Limiter), "the second has not entered")
	first.Release()
	assert.EqualValues(t, 1, left(l.Limiter))
}

// TestADecisionThatPanicsLeaves: a decision takes a place in flight and then panics. The request gives the place back.
func TestADecisionThatPanicsLeaves(t *testing.T) {
	l := inFlight(t, testclock.New(), 1)
	m := one(t, l, httplimit.ObserveWith(panics{}))
	assert.Panics(t, func() { m.Decide(get("/")) })
	assert.EqualValues(t, 1, left(l.Limiter))
}

type panics struct{}

func (panics) Observe(string, limits.Outcome) { panic("observed") }

// TestLimitsInFlightThatMakeNoSense: New refuses limits in flight that make no sense.
func TestLimitsInFlightThatMakeNoSense(t *testing.T) {
	c := testclock.New()
	for want, change := range map[string]func(*httplimit.Limit){
		"Refund is set, but a limit of requests in flight gets everything back": func(l *httplimit.Limit) {
			l.Refund = httplimit.RefundStatus(200, 299)
		},
		"MaxWait is set, but requests cannot wait for requests in flight, whose end is not known": func(l *httplimit.Limit) { l.MaxWait = time.Second },
		"one of its Limiter and Source counts requests in flight, and the other does not": func(l *httplimit.Limit) {
			l.Source, l.OnLoss = source(t, noBackend{}), limits.Local
		},
	} {
		l := inFlight(t, c, 1)
		require.NoError(t, l.Limiter.SetPolicy(engine.Unlimited())) // the limit still counts requests in flight
		change(&l)
		_, err := httplimit.New([]httplimit.Limit{l})
		assert.ErrorContains(t, err, want)
	}
}

func TestALimitInFlightDoesNotAllocate(t *testing.T) {
	m := one(t, inFlight(t, testclock.New(), 1))
	r := get("/")
	assert.Zero(t, testalloc.PerCall(func() {
		res := m.Decide(r)
		res.Release()
	}))
}

// A server limits how many downloads run at once, in addition to the rate of requests. A download counts until it has
// ended.
func ExampleLimit_concurrency() {
	rate, _ := engine.New(engine.TokenBucket(engine.PerSecond(10), 50), engine.MaxKeys(1000))
	downloads, _ := engine.New(engine.Concurrency(2, 24*time.Hour), engine.MaxKeys(1000))
	defer rate.Close()
	defer downloads.Close()

	m, err := httplimit.New([]httplimit.Limit{{Name: "rate", Limiter: rate}, {Name: "downloads", Limiter: downloads}})
	if err != nil {
		panic(err)
	}
	ask := func(h http.Handler) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/file", nil))
		return w.Code
	}
	var file http.Handler
	inside := 0
	file = m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside++
		fmt.Println("download", inside, "begins")
		if status := ask(file); status != http.StatusOK { // the client asks for another download meanwhile
			fmt.Println("one more:", status)
		}
		inside--
	}))
	ask(file)
	fmt.Println("later:", ask(m.Handler(http.NotFoundHandler())))
	// Output:
	// download 1 begins
	// download 2 begins
	// one more: 429
	// later: 404
}
