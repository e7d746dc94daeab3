package zone

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/limits/live"
	"github.com/weir-go/weir/redislimit"
)

var names atomic.Int64

// newID returns the id of a zone that no other test uses.
func newID() id { return id{"test", strconv.FormatInt(names.Add(1), 10)} }

// alone is the host of a configuration without a store.
var alone = host{
	open: func(string, ...redislimit.ClientOption) (*redislimit.Client, error) {
		return nil, errors.New("no store here")
	},
	log: slog.New(slog.DiscardHandler),
}

// provision returns a use of a provisioned configuration that is not started.
func provision(t *testing.T, id id, policy engine.Policy) *Use {
	t.Helper()
	u, err := newUse(id, Spec{Policy: policy, MaxKeys: 100}, alone)
	require.NoError(t, err)
	return u
}

// replace starts a use and stops the previous one, as Caddy does.
func replace(t *testing.T, before, after *Use) {
	t.Helper()
	require.NoError(t, after.start())
	require.NoError(t, before.stop())
	require.NoError(t, before.drop())
}

func end(t *testing.T, u *Use) {
	require.NoError(t, u.stop())
	require.NoError(t, u.drop())
}

func admitted(t *testing.T, u *Use, n int) (passed int) {
	t.Helper()
	m, err := httplimit.New([]httplimit.Limit{u.Limit(httplimit.Limit{Name: "l"})})
	require.NoError(t, err)
	for range n {
		res := m.Decide(httptest.NewRequest(http.MethodGet, "/", nil))
		if res.Allowed() {
			passed++
		}
	}
	return passed
}

// TestNumbersChangeWithoutAFreshBucket: for every new policy of a zone, the tokens of the last window still count.
func TestNumbersChangeWithoutAFreshBucket(t *testing.T) {
	const window = time.Minute
	for name, c := range map[string]struct {
		from, to  engine.Policy
		more      int // requests that pass immediately after the change, if 3 have passed before it
		renewed   bool
		afterward int // requests that pass when the windows are over
	}{
		"the same":              {engine.SlidingLog(5, window), engine.SlidingLog(5, window), 2, false, 5},
		"a lower log":           {engine.SlidingLog(5, window), engine.SlidingLog(3, window), 0, false, 3},
		"a log above its ring":  {engine.SlidingLog(5, window), engine.SlidingLog(50, window), 10, true, 50},
		"a log becomes counter": {engine.SlidingLog(5, window), engine.SlidingWindow(5000, window), 10, true, 5000},
		"a longer log":          {engine.SlidingLog(5, window), engine.SlidingLog(5, 1000*window), 2, true, 0},
		"a bucket":              {engine.TokenBucket(engine.Per(5, window), 5), engine.FixedWindow(40, window), 10, true, 40},
		"a faster bucket":       {engine.TokenBucket(engine.Per(5, window), 5), engine.TokenBucket(engine.Per(50, window), 5), 2, false, 5},
		"refuses all":           {engine.SlidingLog(5, window), engine.Blocked(), 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				id := newID()
				before := provision(t, id, c.from)
				require.NoError(t, before.start())
				require.Equal(t, 3, admitted(t, before, 3))
				after := provision(t, id, c.to)
				assert.Equal(t, c.renewed, after.Renewed)
				replace(t, before, after)
				assert.Equal(t, c.more, admitted(t, after, 10))
				time.Sleep(2 * window)
				assert.Equal(t, c.afterward, admitted(t, after, 10_000))
				end(t, after)
			})
		})
	}
}

// TestTwoChangesWithinAWindow: tokens taken before several changes of the limit still count.
func TestTwoChangesWithinAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := newID()
		use := provision(t, id, engine.SlidingLog(5, time.Minute))
		require.NoError(t, use.start())
		require.Equal(t, 5, admitted(t, use, 10))
		for _, limit := range []uint64{50, 500, 4000} { // a higher limit provides the difference immediately
			next := provision(t, id, engine.SlidingLog(limit, time.Minute))
			replace(t, use, next)
			use = next
		}
		assert.Equal(t, 4000-5, admitted(t, use, 5000))
		time.Sleep(time.Minute + time.Millisecond)
		assert.Equal(t, 4000, admitted(t, use, 5000))
		end(t, use)
	})
}

// TestPreviousLimitersAreFew: a change that needs too many previous limiters is refused, and the zone stays as it is.
func TestPreviousLimitersAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := newID()
		policies := []engine.Policy{engine.SlidingLog(5, time.Minute), engine.FixedWindow(5, time.Minute)}
		use := provision(t, id, policies[0])
		require.NoError(t, use.start())
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		for i := range live.MaxFormers + 1 {
			m, err := httplimit.New([]httplimit.Limit{use.Limit(httplimit.Limit{Name: "l"})})
			require.NoError(t, err)
			request.RemoteAddr = "192.0.2." + strconv.Itoa(100+i) + ":1"
			res := m.Decide(request) // this makes a key owe tokens to this limiter
			require.True(t, res.Allowed())
			if i == live.MaxFormers {
				break
			}
			next := provision(t, id, policies[(i+1)%2])
			replace(t, use, next)
			use = next
		}
		_, err := newUse(id, Spec{Policy: policies[1], MaxKeys: 100}, alone)
		require.ErrorContains(t, err, "want at most 4 tables")
		require.NoError(t, use.start())
		time.Sleep(2 * time.Minute)
		again := provision(t, id, policies[1])
		assert.True(t, again.Renewed)
		assert.Equal(t, 5, admitted(t, again, 10))
		require.NoError(t, again.drop())
		end(t, use)
	})
}

// TestInFlightIsNotCarried: a change between a rate and a concurrency carries no counts over, because tokens are not
// places in flight.
func TestInFlightIsNotCarried(t *testing.T) {
	rate := engine.TokenBucket(engine.Per(2, time.Hour), 2)
	id := newID()
	use := provision(t, id, rate)
	require.NoError(t, use.start())
	require.Equal(t, 2, admitted(t, use, 5))
	for _, policy := range []engine.Policy{engine.Concurrency(5, time.Hour), rate} {
		next := provision(t, id, policy)
		replace(t, use, next)
		use = next
		assert.Nil(t, use.Limit(httplimit.Limit{Name: "l"}).Formers, "%v", policy)
	}
	end(t, use)
}

// TestQuotasAndRates: used tokens still count if a limit gets or loses its quotas.
func TestQuotasAndRates(t *testing.T) {
	rate := engine.TokenBucket(engine.Per(5, time.Hour), 5)
	of := func(u *Use) httplimit.Limit {
		l := u.Limit(httplimit.Limit{Name: "l"})
		if u.Spec.Policy.Longest() != 0 {
			l.Quota = func(*http.Request) (engine.Policy, error) { return rate, nil }
		}
		return l
	}
	id := newID()
	use := provision(t, id, rate)
	require.NoError(t, use.start())
	taken := 0
	for i, policy := range []engine.Policy{rate, engine.TokenBuckets(100 * time.Hour), engine.TokenBuckets(time.Hour),
		engine.TokenBuckets(2 * time.Hour), engine.FixedWindow(5, time.Hour)} {
		if i > 0 {
			next := provision(t, id, policy)
			replace(t, use, next)
			use = next
		}
		m, err := httplimit.New([]httplimit.Limit{of(use)})
		require.NoError(t, err)
		for range 1 + 10*(i/4) {
			if res := m.Decide(httptest.NewRequest(http.MethodGet, "/", nil)); res.Allowed() {
				taken++
			}
		}
	}
	assert.Equal(t, 5, taken)
	end(t, use)
}

// TestShadowsCountWhatAPreviousLimiterCounted: if a previous limiter would refuse, a limit in shadow mode counts one
// refusal.
func TestShadowsCountWhatAPreviousLimiterCounted(t *testing.T) {
	id := newID()
	use := provision(t, id, engine.SlidingLog(2, time.Hour))
	require.NoError(t, use.start())
	require.Equal(t, 2, admitted(t, use, 2))
	next := provision(t, id, engine.FixedWindow(2, time.Hour))
	replace(t, use, next)
	m, err := httplimit.New([]httplimit.Limit{next.Limit(httplimit.Limit{Name: "l", Shadow: true})})
	require.NoError(t, err)
	res := m.Decide(httptest.NewRequest(http.MethodGet, "/", nil))
	assert.True(t, res.Allowed())
	Count(&res, func(string) *Use { return next })
	assert.EqualValues(t, 1, next.Counted(limits.ShadowRefused))
	assert.Zero(t, next.Counted(limits.Allowed))
	end(t, next)
}

// TestZonesOfTwoModulesAreTwoInAStore: zones of two modules with the same name are different zones in a store.
func TestZonesOfTwoModulesAreTwoInAStore(t *testing.T) {
	assert.Equal(t, "login", id{"weir", "login"}.storeName())
	assert.Equal(t, "rate_limit/login", id{"rate_limit", "login"}.storeName())
}

// TestAConfigurationThatFailsChangesNothing: a configuration changes nothing if it is given up before it starts, or
// stopped because another part does not start.
func TestAConfigurationThatFailsChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := newID()
		use := provision(t, id, engine.SlidingLog(5, time.Minute))
		require.NoError(t, use.start())
		require.Equal(t, 3, admitted(t, use, 3))
		for _, other := range []engine.Policy{engine.SlidingLog(1, time.Minute), engine.SlidingLog(50, time.Minute), engine.Blocked()} {
			provisioned := provision(t, id, other)
			assert.Equal(t, engine.SlidingLog(5, time.Minute), use.gen.limiter.Policy(0), "provisioned: %v", other)
			require.NoError(t, provisioned.drop())

			started := provision(t, id, other)
			require.NoError(t, started.start())
			end(t, started)
			assert.Equal(t, engine.SlidingLog(5, time.Minute), use.gen.limiter.Policy(0), "started: %v", other)
		}
		assert.Equal(t, 2, admitted(t, use, 10))
		end(t, use)
	})
}

// TestAZoneThatNothingUsesIsForgotten: a zone without a configuration is forgotten and its memory freed.
func TestAZoneThatNothingUsesIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := newID()
		use := provision(t, id, engine.SlidingLog(5, time.Minute))
		require.NoError(t, use.start())
		admitted(t, use, 5)
		end(t, use)
		_, exists := zones.References(id)
		assert.False(t, exists)
		again := provision(t, id, engine.SlidingLog(5, time.Minute))
		require.NoError(t, again.start())
		assert.Equal(t, 5, admitted(t, again, 10))
		end(t, again)
	})
}

// TestDecisionsTakeNoLockOfTheZones: requests are decided while another goroutine holds every lock of the zones.
func TestDecisionsTakeNoLockOfTheZones(t *testing.T) {
	use := provision(t, newID(), engine.SlidingLog(5, time.Minute))
	require.NoError(t, use.start())
	m, err := httplimit.New([]httplimit.Limit{use.Limit(httplimit.Limit{Name: "l"})})
	require.NoError(t, err)
	func() {
		zones.Lock()
		defer zones.Unlock()
		use.mu.Lock()
		defer use.mu.Unlock()
		res := m.Decide(httptest.NewRequest(http.MethodGet, "/", nil))
		assert.True(t, res.Allowed())
		Count(&res, func(string) *Use { return use })
		use.Keys()
	}()
	assert.EqualValues(t, 1, use.Counted(limits.Allowed))
	end(t, use)
}

func TestBadSpecs(t *testing.T) {
	log := engine.SlidingLog(5, time.Minute)
	for want, spec := range map[string]Spec{
		"max_keys -1: want 1 to 2147483647":               {Policy: log, MaxKeys: -1},
		"sweep_interval 25h0m0s: want 1ms":                {Policy: log, Sweep: 25 * time.Hour},
		"the zero Policy limits nothing":                  {},
		"a store has room for every key":                  {Policy: log, Store: "redis://x", Overflow: engine.Refuse},
		"no store here":                                   {Policy: log, Store: "redis://x"},
		"want a token bucket or a window":                 {Policy: engine.Blocked(), Store: "redis://x"},
		"limit of 5000 tokens every 1m0s: want 1 to 4096": {Policy: engine.SlidingLog(5000, time.Minute)},
	} {
		id := newID()
		_, err := newUse(id, spec, alone)
		assert.ErrorContains(t, err, want)
		_, exists := zones.References(id)
		assert.False(t, exists, want)
	}
}

// TestTablesWithoutAnOrderedSizeAreBounded: without MaxKeys, the size of a table is bounded. Otherwise logs of
// thousands of events would take gigabytes.
func TestTablesWithoutAnOrderedSizeAreBounded(t *testing.T) {
	for limit, want := range map[uint64]int{5: DefaultLogKeys, 100: DefaultLogKeys, 1000: 20_000, 4096: 4_900} {
		policy := engine.SlidingLog(limit, time.Hour)
		keys, err := Spec{Policy: policy}.Keys()
		require.NoError(t, err)
		assert.InEpsilon(t, want, keys, 0.02, limit)
		bytes, err := engine.Bytes(policy, engine.MaxKeys(keys))
		require.NoError(t, err)
		assert.LessOrEqual(t, bytes, uint64(TableBytes)+TableBytes/100)
	}
}

// Zones with the same store and timeout share a connection. A zone with another timeout has another connection.
func TestAStoreIsOneForEachTimeout(t *testing.T) {
	opened := 0
	host := alone
	host.open = func(_ string, options ...redislimit.ClientOption) (*redislimit.Client, error) {
		opened++
		_, err := redislimit.Open(t.Context(), "no address", options...)
		if strings.Contains(err.Error(), "Timeout") {
			return nil, err
		}
		return new(redislimit.Client), nil // this client has nothing to close
	}
	for i, timeout := range []time.Duration{0, 2 * time.Second, 2 * time.Second} {
		s, err := host.store("redis://x", timeout, false)
		require.NoError(t, err)
		t.Cleanup(s.release)
		assert.Equal(t, min(i+1, 2), opened)
	}
	_, err := host.store("redis://x", time.Hour, false)
	assert.ErrorContains(t, err, "Timeout(1h0m0s)")
}
