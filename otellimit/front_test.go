package otellimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testrace"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/otellimit"
	"github.com/weir-go/weir/otellimit/internal/collected"
	"github.com/weir-go/weir/rpclimit"
)

// broken is a backend that always fails.
type broken struct{}

// brokenSource returns a source of a broken backend.
func brokenSource(t testing.TB) limits.Source {
	s, err := limits.NewSource(broken{}, engine.TokenBucket(engine.PerSecond(1), 1), nil)
	require.NoError(t, err)
	return s
}

func (broken) Take(context.Context, string, uint64) (engine.Decision, error) {
	return engine.Decision{}, errors.New("no answer")
}

func (broken) Refund(context.Context, string, uint64) error { return errors.New("no answer") }

func get(path string) *http.Request {
	r := httptest.NewRequest("GET", path, nil)
	r.RemoteAddr = "192.0.2.1:1"
	return r
}

// The function on returns a function that matches the requests to a path.
func on(path string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.URL.Path == path }
}

// TestHTTP: the test sends requests with known outcomes. The metrics must show the number of every outcome.
func TestHTTP(t *testing.T) {
	p, collect := provider(t)
	shared := bucket(t, 100)
	list := []httplimit.Limit{
		{Name: "clients", Limiter: bucket(t, 3), Match: on("/"), Refund: httplimit.RefundStatus(503, 503)},
		{Name: "trial", Limiter: bucket(t, 1), Match: on("/"), Shadow: true},
		{Name: "open", Source: brokenSource(t), Match: on("/open")},
		{Name: "closed", Source: brokenSource(t), Match: on("/closed"), OnLoss: limits.Closed},
		{Name: "local", Source: brokenSource(t), Match: on("/local"), OnLoss: limits.Local, Limiter: shared},
		{Name: "same limiter", Limiter: shared, Match: on("/none")},
	}
	front, err := otellimit.RegisterHTTP(p, list)
	require.NoError(t, err)
	m, err := httplimit.New(list, httplimit.ObserveWith(front))
	require.NoError(t, err)
	status := http.StatusOK
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	var got []int
	serve := func(path string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, get(path))
		got = append(got, w.Code)
	}
	for range 5 { // "clients" allows 3 and refuses 2; of the 3, "trial" allows 1
		serve("/")
	}
	require.Equal(t, []int{200, 200, 200, 429, 429}, got)
	serve("/open")
	serve("/open")
	serve("/closed")
	serve("/local")

	s := collect()
	const requests = "weir.limit.requests weir.limit.name="
	assert.Equal(t, map[string]float64{
		"clients,weir.limit.outcome=allowed": 3, "clients,weir.limit.outcome=refused": 2, "clients,weir.limit.outcome=shadow_refused": 0,
		"trial,weir.limit.outcome=allowed": 1, "trial,weir.limit.outcome=refused": 0, "trial,weir.limit.outcome=shadow_refused": 2,
		"open,weir.limit.outcome=allowed": 0, "open,weir.limit.outcome=refused": 0, "open,weir.limit.outcome=shadow_refused": 0,
		"closed,weir.limit.outcome=allowed": 0, "closed,weir.limit.outcome=refused": 0, "closed,weir.limit.outcome=shadow_refused": 0,
		"local,weir.limit.outcome=allowed": 1, "local,weir.limit.outcome=refused": 0, "local,weir.limit.outcome=shadow_refused": 0,
		"same limiter,weir.limit.outcome=allowed": 0, "same limiter,weir.limit.outcome=refused": 0, "same limiter,weir.limit.outcome=shadow_refused": 0,
	}, s.Of(requests))
	assert.Equal(t, map[string]float64{"clients": 0, "trial": 0, "open": 2, "closed": 1, "local": 1, "same limiter": 0},
		s.Of("weir.limit.failures weir.limit.name="))
	assert.Equal(t, map[string]float64{"clients": 1, "trial": 1, "local": 1}, tables(s), "each table once, none without a limiter")

	status = http.StatusServiceUnavailable
	serve("/") // refused, so nothing is given back
	m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })).ServeHTTP(httptest.NewRecorder(), other())
	s = collect()
	assert.Equal(t, 1.0, s["weir.limit.refunds weir.limit.name=clients"])
	assert.Equal(t, 4.0, s[requests+"clients,weir.limit.outcome=allowed"], "a refunded request was allowed")
	assert.Equal(t, 3.0, s[requests+"clients,weir.limit.outcome=refused"])

	require.NoError(t, front.Unregister())
	require.NoError(t, front.Unregister())
	assert.Empty(t, collect())
	serve("/") // the middleware still works
	again, err := otellimit.RegisterHTTP(p, list)
	require.NoError(t, err, "the names are free")
	require.NoError(t, again.Unregister())
}

func other() *http.Request {
	r := get("/")
	r.RemoteAddr = "192.0.2.2:1"
	return r
}

// tables returns the limits whose tables are reported.
func tables(s collected.Series) map[string]float64 {
	found := map[string]float64{}
	for name := range s.Of("weir.table.slot.limit weir.limit.name=") {
		found[name] = 1
	}
	return found
}

// TestRPC: the metrics that count requests of HTTP also count calls and messages.
func TestRPC(t *testing.T) {
	p, collect := provider(t)
	quota, err := rpclimit.MatchMethods("/s.S/Quota")
	require.NoError(t, err)
	messages := rpclimit.Limit{Name: "messages", Limiter: bucket(t, 1), Shadow: true}
	calls := []rpclimit.Limit{
		{Name: "calls", Limiter: bucket(t, 2)},
		{Name: "quota", Limiter: bucket(t, 9), Match: quota,
			Quota: func(rpclimit.Call) (engine.Policy, error) { return engine.FixedWindow(1, time.Second), nil }},
	}
	front, err := otellimit.RegisterRPC(p, append(calls, messages))
	require.NoError(t, err)
	l, err := rpclimit.New(calls, rpclimit.Messages(messages), rpclimit.ObserveWith(front))
	require.NoError(t, err)
	call := rpclimit.Call{Method: "/s.S/M", Peer: netip.MustParseAddr("192.0.2.1")}
	allowed := 0
	for range 5 {
		res := l.Decide(call)
		if res.Allowed() {
			allowed++
		}
	}
	require.Equal(t, 2, allowed)
	call.Method, call.Peer = "/s.S/Quota", netip.MustParseAddr("192.0.2.2")
	res := l.Decide(call)
	require.False(t, res.Allowed(), "a quota that cannot be applied")

	const requests = "weir.limit.requests weir.limit.name="
	s := collect()
	assert.Equal(t, map[string]float64{
		"calls,weir.limit.outcome=allowed": 2, "calls,weir.limit.outcome=refused": 3, "calls,weir.limit.outcome=shadow_refused": 0,
		"messages,weir.limit.outcome=allowed": 1, "messages,weir.limit.outcome=refused": 0, "messages,weir.limit.outcome=shadow_refused": 1,
		"quota,weir.limit.outcome=allowed": 0, "quota,weir.limit.outcome=refused": 0, "quota,weir.limit.outcome=shadow_refused": 0,
	}, s.Of(requests))
	assert.Equal(t, map[string]float64{"calls": 0, "messages": 0, "quota": 1}, s.Of("weir.limit.failures weir.limit.name="))
	assert.Len(t, tables(s), 3)
	require.NoError(t, front.Unregister())
	assert.Empty(t, collect())
}

// TestFrontsBeside: two fronts with the same names of limits need different attributes. A failed registration registers
// nothing.
func TestFrontsBeside(t *testing.T) {
	p, collect := provider(t)
	list := []httplimit.Limit{{Name: "a", Limiter: bucket(t, 1)}, {Name: "default", Limiter: bucket(t, 1)}}
	_, err := otellimit.RegisterHTTP(p, list[1:])
	require.NoError(t, err)
	before := collect()
	for range 2 {
		_, err = otellimit.RegisterHTTP(p, list)
		assert.ErrorContains(t, err, `otellimit.RegisterHTTP("default"): the limit of that name and these attributes is registered already`)
		assert.Equal(t, before, collect(), "of limit a nothing is left")
	}
	calls := otellimit.Attributes(attribute.String("server", "grpc"))
	_, err = otellimit.RegisterRPC(p, []rpclimit.Limit{{Name: "default", Limiter: bucket(t, 1)}}, calls)
	require.NoError(t, err)
	assert.Len(t, collect(), 2*len(before))

	_, err = otellimit.Register(p, "table", list[0].Limiter)
	require.NoError(t, err)
	_, err = otellimit.RegisterHTTP(p, []httplimit.Limit{{Name: "table", Limiter: list[0].Limiter}})
	assert.ErrorContains(t, err, `otellimit.RegisterHTTP("table"): the limiter of that name`)

	for want, register := range map[string]func() (*otellimit.Front, error){
		"otellimit.RegisterHTTP: no limits: want at least one": func() (*otellimit.Front, error) { return otellimit.RegisterHTTP(p, nil) },
		"otellimit.RegisterRPC: no limits: want at least one":  func() (*otellimit.Front, error) { return otellimit.RegisterRPC(p, nil) },
		`otellimit.RegisterRPC("x"): the limit of that name`: func() (*otellimit.Front, error) {
			return otellimit.RegisterRPC(p, []rpclimit.Limit{{Name: "x"}, {Name: "x"}})
		},
		`otellimit.RegisterHTTP(""): a name of 0 characters`: func() (*otellimit.Front, error) {
			return otellimit.RegisterHTTP(p, []httplimit.Limit{{}})
		},
		`otellimit.RegisterHTTP("x"): a MeterProvider of type <nil>`: func() (*otellimit.Front, error) {
			return otellimit.RegisterHTTP(nil, []httplimit.Limit{{Name: "x"}})
		},
	} {
		front, err := register()
		assert.ErrorContains(t, err, want)
		assert.Nil(t, front)
	}
}

// TestALimitThatTheFrontDoesNotKnow: outcomes of an unknown limit add no series. They are reported as an error once.
func TestALimitThatTheFrontDoesNotKnow(t *testing.T) {
	var told []string
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { told = append(told, err.Error()) }))
	defer otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	p, collect := provider(t)
	front, err := otellimit.RegisterHTTP(p, []httplimit.Limit{{Name: "a", Limiter: bucket(t, 1)}})
	require.NoError(t, err)
	before := collect()
	for range 3 {
		front.Observe("b", limits.Allowed)
		front.Observe(strings.Repeat("c", 100), limits.Refused)
	}
	assert.Equal(t, before, collect())
	assert.Equal(t, []string{`otellimit: the limit "b" is not counted: the front was not made with it`}, told)

	front.Observe("a", limits.NotTaken)
	front.Observe("a", limits.Refunded+1)
	front.Observe("a", 255)
	assert.Equal(t, before, collect(), "no outcomes")
}

// TestObserve: many goroutines report outcomes. Each outcome is counted once, and nothing is allocated.
func TestObserve(t *testing.T) {
	p, collect := provider(t)
	front, err := otellimit.RegisterHTTP(p, []httplimit.Limit{{Name: "a", Limiter: bucket(t, 1)}})
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				for o := limits.Allowed; o <= limits.Refunded; o++ {
					front.Observe("a", o)
				}
			}
		})
	}
	all.Wait()
	s := collect().Of("weir.limit.")
	assert.Equal(t, map[string]float64{
		"requests weir.limit.name=a,weir.limit.outcome=allowed":        8000,
		"requests weir.limit.name=a,weir.limit.outcome=refused":        8000,
		"requests weir.limit.name=a,weir.limit.outcome=shadow_refused": 8000,
		"refunds weir.limit.name=a":                                    8000,
		"failures weir.limit.name=a":                                   8000,
	}, s)
	if !testrace.Enabled {
		assert.Zero(t, testalloc.PerCall(func() { front.Observe("a", limits.Allowed) }))
	}
}

// TestWaiting: the metrics show the requests that are waiting.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, collect := provider(t)
		l, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(10), engine.ClockFunc(time.Now))
		require.NoError(t, err)
		defer l.Close()
		m, err := httplimit.New([]httplimit.Limit{{Name: "a", Limiter: l, MaxWait: time.Minute}})
		require.NoError(t, err)
		calls, err := rpclimit.New([]rpclimit.Limit{{Name: "a", Limiter: l, MaxWait: time.Minute}})
		require.NoError(t, err)
		r, err := otellimit.RegisterWaiting(p, "web", m)
		require.NoError(t, err)
		_, err = otellimit.RegisterWaiting(p, "grpc", calls)
		require.NoError(t, err)
		waiting := func(web, grpc float64) {
			t.Helper()
			synctest.Wait()
			assert.Equal(t, collected.Series{
				"weir.front.request.waiting weir.front.name=web":  web,
				"weir.front.request.waiting weir.front.name=grpc": grpc,
			}, collect())
		}
		waiting(0, 0)
		for range 4 { // the first one passes
			go m.Decide(get("/"))
		}
		waiting(3, 0)
		go calls.Decide(rpclimit.Call{Method: "/s.S/M", Peer: netip.MustParseAddr("192.0.2.1")})
		waiting(3, 1)
		time.Sleep(2 * time.Second)
		waiting(1, 1)
		time.Sleep(2 * time.Second)
		waiting(0, 0)
		require.NoError(t, r.Unregister())
		assert.Len(t, collect(), 1)

		for want, w := range map[string]otellimit.Waiter{
			`otellimit.RegisterWaiting("x"): nothing to ask`:             nil,
			`otellimit.RegisterWaiting("x"): nothing to ask: want a`:     (*httplimit.Middleware)(nil),
			`otellimit.RegisterWaiting("x"): nothing to ask: want a mid`: (*rpclimit.Limits)(nil),
		} {
			_, err := otellimit.RegisterWaiting(p, "x", w)
			assert.ErrorContains(t, err, want)
		}
		_, err = otellimit.RegisterWaiting(p, "\x00", m)
		assert.ErrorContains(t, err, "printable ASCII")
		_, err = otellimit.RegisterWaiting(p, "grpc", m)
		assert.ErrorContains(t, err, "the front of that name and these attributes is registered already")
	})
}
