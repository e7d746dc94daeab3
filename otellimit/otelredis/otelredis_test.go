package otelredis_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/otellimit"
	"github.com/weir-go/weir/otellimit/internal/collected"
	"github.com/weir-go/weir/otellimit/otelredis"
	"github.com/weir-go/weir/redislimit"
)

// patience is how long the tests wait for a change by another goroutine. Only failing tests wait that long.
const patience = 20 * time.Second

func provider(t *testing.T) (*sdk.MeterProvider, func() collected.Series) {
	t.Helper()
	reader := sdk.NewManualReader()
	p := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(t.Context())) })
	return p, func() collected.Series { return collected.From(t, reader) }
}

// open starts a store whose time stands still, and a client. The client treats the store as a cluster. The parts of a
// cluster fail independently.
func open(t *testing.T, options ...redislimit.ClientOption) (*miniredis.Miniredis, *redislimit.Client) {
	t.Helper()
	server := miniredis.RunT(t)
	server.SetTime(time.Unix(1_800_000_000, 0))
	client, err := redislimit.Open(t.Context(), "redis://"+server.Addr(), append(options, redislimit.Timeout(10*time.Second))...)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return server, client
}

func limiter(t *testing.T, client *redislimit.Client, policy engine.Policy, options ...redislimit.Option) *redislimit.Limiter {
	t.Helper()
	l, err := redislimit.New(client, "logins", policy, options...)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

const (
	calls     = "weir.store.calls weir.store.name=main"
	others    = "weir.store.failures error.type=_OTHER,weir.store.name=main"
	timeouts  = "weir.store.failures error.type=timeout,weir.store.name=main"
	available = "weir.store.part.count weir.store.name=main,weir.store.part.state=available"
	lost      = "weir.store.part.count weir.store.name=main,weir.store.part.state=lost"
	lostTime  = "weir.store.lost.time weir.store.name=main"
	fallbacks = "weir.limit.fallbacks weir.limit.name=logins"
)

// TestStore: the metrics show a client's calls, its failed calls, and the beginning and end of an outage.
func TestStore(t *testing.T) {
	server, client := open(t, redislimit.BreakAfter(time.Millisecond), redislimit.Partitions(3))
	l := limiter(t, client, engine.TokenBucket(engine.Per(5, time.Minute), 3), redislimit.InMode(redislimit.Strict),
		redislimit.TrustRefusals(0))
	p, collect := provider(t)
	store, err := otelredis.RegisterStore(p, "main", client)
	require.NoError(t, err)
	logins, err := otelredis.Register(p, "logins", l)
	require.NoError(t, err)

	begin := collect()[calls]
	for range 5 {
		_, err := l.Take(t.Context(), "k", 1)
		require.NoError(t, err)
	}
	s := collect()
	assert.Equal(t, collected.Series{
		calls: begin + 5, others: 0, timeouts: 0, available: 3, lost: 0, lostTime: 0, fallbacks: 0,
		"weir.lease.count weir.limit.name=logins":      0,
		"weir.lease.token.held weir.limit.name=logins": 0,
		"weir.lease.token.debt weir.limit.name=logins": 0,
	}, s)

	server.SetError("LOADING the data set")
	decided := 0
	require.Eventually(t, func() bool {
		decided++
		_, err := l.Take(t.Context(), "k", 1)
		require.NoError(t, err, "the share decides")
		return client.Health().Lost == 1
	}, patience, time.Millisecond)
	var failed int64
	require.Eventually(t, func() bool { // the client probes a lost part from time to time
		failed, s = client.Health().Failures, collect()
		return client.Health().Failures == failed
	}, patience, time.Millisecond)
	assert.Equal(t, float64(decided), s[fallbacks])
	assert.Equal(t, float64(failed), s[others])
	assert.Positive(t, s[others])
	assert.Zero(t, s[timeouts])
	assert.Equal(t, []float64{2, 1}, []float64{s[available], s[lost]})
	require.Eventually(t, func() bool { return collect()[lostTime] > s[lostTime] }, patience, time.Millisecond, "it goes on")

	server.SetError("")
	require.Eventually(t, func() bool { return client.Health().Lost == 0 }, patience, time.Millisecond)
	var first, second collected.Series
	require.Eventually(t, func() bool { // the lost time is written after the number of lost parts
		first, second = collect(), collect()
		return first[lostTime] == second[lostTime]
	}, patience, time.Millisecond)
	assert.Equal(t, []float64{3, 0}, []float64{second[available], second[lost]})
	assert.Positive(t, second[lostTime])

	require.NoError(t, store.Unregister())
	assert.Len(t, collect(), 4)
	require.NoError(t, logins.Unregister())
	assert.Empty(t, collect())
}

func TestLeases(t *testing.T) {
	_, client := open(t)
	l := limiter(t, client, engine.TokenBucket(engine.PerSecond(1000), 1000), redislimit.InMode(redislimit.Leased))
	p, collect := provider(t)
	_, err := otelredis.Register(p, "logins", l)
	require.NoError(t, err)
	var got collected.Series
	var want redislimit.Stats
	require.Eventually(t, func() bool { // answers of the store may change the numbers at any time
		l.Allow("k")
		before := l.Stats()
		got, want = collect(), l.Stats()
		return before == want && want.Leases == 1 && want.Held > 0
	}, patience, time.Millisecond)
	assert.Equal(t, collected.Series{
		"weir.lease.count weir.limit.name=logins":      1,
		"weir.lease.token.held weir.limit.name=logins": float64(want.Held),
		"weir.lease.token.debt weir.limit.name=logins": float64(want.Debt),
		fallbacks: 0,
	}, got)
}

// TestBadInput: each error names what is wrong.
func TestBadInput(t *testing.T) {
	_, client := open(t)
	l := limiter(t, client, engine.TokenBucket(engine.Per(5, time.Minute), 3))
	p, collect := provider(t)
	for want, register := range map[string]func() (metric.Registration, error){
		`otelredis.Register("a"): a nil *redislimit.Limiter`:       func() (metric.Registration, error) { return otelredis.Register(p, "a", nil) },
		`otelredis.Register(""): a name of 0 characters`:           func() (metric.Registration, error) { return otelredis.Register(p, "", l) },
		`otelredis.Register("a"): a MeterProvider of type <nil>`:   func() (metric.Registration, error) { return otelredis.Register(nil, "a", l) },
		`otelredis.RegisterStore("a"): a nil *redislimit.Client`:   func() (metric.Registration, error) { return otelredis.RegisterStore(p, "a", nil) },
		`otelredis.RegisterStore("\t"): want a name of 1 to 1,024`: func() (metric.Registration, error) { return otelredis.RegisterStore(p, "\t", client) },
		`otelredis.RegisterStore("a"): option 1 of 1 is nil`:       func() (metric.Registration, error) { return otelredis.RegisterStore(p, "a", client, nil) },
	} {
		r, err := register()
		assert.ErrorContains(t, err, want)
		assert.Nil(t, r)
	}
	assert.Empty(t, collect())
	for range 2 {
		_, _ = otelredis.Register(p, "a", l)
		_, _ = otelredis.RegisterStore(p, "a", client)
	}
	_, err := otelredis.Register(p, "a", l)
	assert.ErrorContains(t, err, "the limiter in a store of that name and these attributes is registered already")
	_, err = otelredis.RegisterStore(p, "a", client)
	assert.ErrorContains(t, err, "the store of that name and these attributes is registered already")
	_, err = otellimit.RegisterRefusals(p, "a", new(otellimit.Refusals))
	assert.NoError(t, err, "another kind")
	assert.Len(t, collect(), 4+6+1)
}
