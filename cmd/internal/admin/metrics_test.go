package admin

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/limits"
)

func TestMetricsPassTheLinter(t *testing.T) {
	d := newDemo(t, KeysHashed, 0)
	d.run(t)
	d.slice()
	registry, err := newRegistry(d.admin)
	require.NoError(t, err)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// TestSeriesDoNotGrowWithKeys: neither keys nor names that are not rules add series.
func TestSeriesDoNotGrowWithKeys(t *testing.T) {
	d := newDemo(t, KeysFull, 0)
	d.run(t)
	registry, err := newRegistry(d.admin)
	require.NoError(t, err)
	series := func() (n int) {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if len(f.GetName()) > 5 && f.GetName()[:5] == "weir_" {
				n += len(f.GetMetric())
			}
		}
		return n
	}
	before := series()
	assert.Equal(t, len(d.rules)*(len(countedOutcomes)+len(newCollector(d.admin).tables))+4, before)
	r := httptest.NewRequest("GET", "/sign-up", nil)
	for i := range 100_000 {
		r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)
		d.limited.Decide(r)
		d.admin.Observe(fmt.Sprint("no rule ", i), limits.Refused)
	}
	assert.Equal(t, before, series())
	assert.LessOrEqual(t, len(*d.admin.counters.current.Load()), maxCounters)
	d.admin.tick(d.time())
	assert.LessOrEqual(t, len(*d.admin.counters.current.Load()), len(d.rules), "names not in use make room")
}

func TestEveryOutcomeIsCountedOnce(t *testing.T) {
	a := start(t, Config{Rules: oneRule})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				for _, o := range countedOutcomes {
					a.Observe("login", o)
				}
				a.Observe("login", limits.Outcome(numOutcomes)) // there is no such outcome
			}
		})
	}
	all.Wait()
	assert.Equal(t, totals{0, 8000, 8000, 8000, 8000, 8000}, a.totals("login"))
	assert.Equal(t, totals{}, a.totals("another"))
}

func TestObserveDoesNotAllocate(t *testing.T) {
	a := start(t, Config{Rules: oneRule})
	a.Observe("login", limits.Allowed)
	assert.Zero(t, testalloc.PerCall(func() { a.Observe("login", limits.Allowed) }))
}

func TestReadiness(t *testing.T) {
	var why error
	a := start(t, Config{Rules: none, Ready: func() error { return why }})
	w := get(a, "/readyz")
	assert.Equal(t, "200 ready\n", fmt.Sprint(w.Code, " ", w.Body))
	why = errors.New("shutting down")
	w = get(a, "/readyz")
	assert.Equal(t, "503 shutting down\n", fmt.Sprint(w.Code, " ", w.Body))
	assert.Equal(t, 200, get(a, "/healthz").Code)
	assert.Contains(t, get(a, "/state.json").Body.String(), `"ready":false,"why_not_ready":"shutting down"`)
}

func TestBadConfigs(t *testing.T) {
	_, err := New(Config{})
	assert.ErrorContains(t, err, "Config.Rules is nil")
	_, err = New(Config{Rules: none, Keys: "some"})
	assert.ErrorContains(t, err, `Config.Keys "some": want full, hashed or off`)
}

func BenchmarkObserve(b *testing.B) {
	a := start(b, Config{Rules: oneRule})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			a.Observe("login", limits.Allowed)
		}
	})
}

// BenchmarkLimited measures the cost of noting a refusal, with new keys and with one key on all processors.
func BenchmarkLimited(b *testing.B) {
	for name, keys := range map[string]int{"one key": 1, "a flood of keys": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			id, r := of(b), newRefusals()
			text := func() string { return "" }
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					r.add(id(i%keys), keyLimit{}, text)
				}
			})
		})
	}
}
