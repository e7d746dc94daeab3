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
	"github.com/weir-go/weir/redislimit"
)

var names atomic.Int64

// newID returns the id of a zone that no other test has.
func newID() id { return id{"test", strconv.FormatInt(names.Add(1), 10)} }

// alone is what a configuration without a store gives its zones.
var alone = host{
	open: func(string, ...redislimit.ClientOption) (*redislimit.Client, error) {
		return nil, errors.New("no store here")
	},
	log: slog.New(slog.DiscardHandler), now: time.Now,
}

// provision returns a use as a configuration would have it before it starts.
func provision(t *testing.T, id id, policy engine.Policy) *Use {
	t.Helper()
	u, err := newUse(id, Spec{Policy: policy, MaxKeys: 100}, alone)
	require.NoError(t, err)
	return u
}

// replace starts a use and stops the one before, as Caddy does.
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

// admitted returns how many of n requests the use admits.
func admitted(t *testing.T, u *Use, n int) (passed int) {
	t.Helper()
	m, err := httplimit.New(u.Limits(httplimit.Limit{Name: "l"}))
	require.NoError(t, err)
	for range n {
		res := m.Decide(httptest.NewRequest(http.MethodGet, "/", nil))
		if res.Allowed() {
			passed++
		}
	}
	return passed
}

// TestNumbersChangeWithoutAFreshBucket: whatever a zone changes to, what was admitted in the last window counts.
func TestNumbersChangeWithoutAFreshBucket(t *testing.T) {
	const window = time.Minute
	for name, c := range map[string]struct {
		from, to  engine.Policy
		more      int // requests that pass at once after the change, when 3 have passed before
		renewed   bool
		afterward int // and when the windows are over
	}{
		"the same":              {engine.SlidingLog(5, window), engine.SlidingLog(5, window), 2, false, 5},
		"a lower log":           {engine.SlidingLog(5, window), engine.SlidingLog(3, window), 0, false, 3},
		"a log above its ring":  {engine.SlidingLog(5, window), engine.SlidingLog(50, window), 2, true, 50},
		"a log becomes counter": {engine.SlidingLog(5, window), engine.SlidingWindow(5000, window), 2, true, 5000},
		"a longer log":          {engine.SlidingLog(5, window), engine.SlidingLog(5, 1000*window), 2, true, 3},
		"a bucket":              {engine.TokenBucket(engine.Per(5, window), 5), engine.FixedWindow(40, window), 2, true, 40},
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

// TestTwoChangesWithinAWindow: the limiter before the last one counts, too.
func TestTwoChangesWithinAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := newID()
		use := provision(t, id, engine.SlidingLog(5, time.Minute))
		require.NoError(t, use.start())
		require.Equal(t, 5, admitted(t, use, 10))
		for _, limit := range []uint64{50, 500, 4000} {
			next := provision(t, id, engine.SlidingLog(limit, time.Minute))
			replace(t, use, next)
			use = next
			assert.Zero(t, admitted(t, use, 10), "%d", limit)
		}
		time.Sleep(time.Minute + time.Millisecond)
		assert.Equal(t, 4000, admitted(t, use, 5000))
		end(t, use)
	})
}

// TestLimitersOfEarlierConfigurationsAreFew: however often a zone has another limiter within a window, requests are
// held against few, the names of those go into headers, and one that has forgotten is let go with the next change.
func TestLimitersOfEarlierConfigurationsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := newID()
		policies := []engine.Policy{engine.SlidingLog(5, time.Minute), engine.FixedWindow(5, time.Minute)}
		use := provision(t, id, policies[0])
		require.NoError(t, use.start())
		for i := range 12 {
			next := provision(t, id, policies[(i+1)%2])
			assert.Equal(t, i >= mostFormers, next.Forgot)
			replace(t, use, next)
			use = next
			limits := use.Limits(httplimit.Limit{Name: strings.Repeat("n", 128)})
			require.Len(t, limits, 1+min(i+1, mostFormers))
			_, err := httplimit.New(limits)
			require.NoError(t, err)
		}
		assert.Equal(t, 5, admitted(t, use, 10))
		time.Sleep(time.Minute)
		again := provision(t, id, policies[0])
		replace(t, use, again)
		assert.Empty(t, again.gen.formers)
		end(t, again)
	})
}

// TestWhatHasNoEndIsNotFollowed: a limit that becomes one of requests in flight, or one with quotas, begins anew, as
// one that ceases to be.
func TestWhatHasNoEndIsNotFollowed(t *testing.T) {
	rate := engine.TokenBucket(engine.PerHour(2), 2)
	for _, other := range []engine.Policy{engine.Concurrency(5, time.Hour), engine.TokenBuckets(time.Hour)} {
		id := newID()
		use := provision(t, id, rate)
		require.NoError(t, use.start())
		require.Equal(t, 2, admitted(t, use, 5))
		for _, policy := range []engine.Policy{other, rate} {
			next := provision(t, id, policy)
			replace(t, use, next)
			use = next
			assert.Len(t, use.Limits(httplimit.Limit{Name: "l"}), 1, "%v", policy)
		}
		end(t, use)
	}
}

// TestShadowsCountWhatAFormerWouldRefuse: the limiters of a zone count as one.
func TestShadowsCountWhatAFormerWouldRefuse(t *testing.T) {
	id := newID()
	use := provision(t, id, engine.SlidingLog(2, time.Hour))
	require.NoError(t, use.start())
	require.Equal(t, 2, admitted(t, use, 2))
	next := provision(t, id, engine.FixedWindow(2, time.Hour))
	replace(t, use, next)
	m, err := httplimit.New(next.Limits(httplimit.Limit{Name: "l", Shadow: true}))
	require.NoError(t, err)
	res := m.Decide(httptest.NewRequest(http.MethodGet, "/", nil))
	assert.True(t, res.Allowed())
	Count(&res, func(string) *Use { return next })
	assert.EqualValues(t, 1, next.Counted(limits.ShadowRefused))
	assert.Zero(t, next.Counted(limits.Allowed))
	end(t, next)
}

// TestZonesOfTwoModulesAreTwoInAStore, as they are in this process.
func TestZonesOfTwoModulesAreTwoInAStore(t *testing.T) {
	assert.Equal(t, "login", id{"weir", "login"}.stored())
	assert.Equal(t, "rate_limit/login", id{"rate_limit", "login"}.stored())
}

// TestAConfigurationThatFailsChangesNothing: one that is given up before it starts, and one that is stopped because
// another part of it does not start.
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

// TestAZoneThatNothingUsesIsForgotten, with its memory.
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

// TestDecisionsTakeNoLockOfTheZones: while every lock of the zones is held, requests are decided.
func TestDecisionsTakeNoLockOfTheZones(t *testing.T) {
	use := provision(t, newID(), engine.SlidingLog(5, time.Minute))
	require.NoError(t, use.start())
	m, err := httplimit.New(use.Limits(httplimit.Limit{Name: "l"}))
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
		"counted in this process":                         {Policy: engine.Concurrency(1, time.Hour), Store: "redis://x"},
		"a store has no table":                            {Policy: log, Store: "redis://x", Overflow: engine.Refuse},
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

// TestTablesWithoutAnOrderedSizeAreBounded: a log of thousands of events for 100,000 keys would take gigabytes.
func TestTablesWithoutAnOrderedSizeAreBounded(t *testing.T) {
	for limit, want := range map[uint64]int{5: DefaultLogKeys, 100: DefaultLogKeys, 1000: 20_000, 4096: 4_900} {
		policy := engine.SlidingLog(limit, time.Hour)
		keys, err := Spec{Policy: policy}.Keys()
		require.NoError(t, err)
		assert.InEpsilon(t, want, keys, 0.02, limit)
		bytes, err := policy.Bytes(keys)
		require.NoError(t, err)
		assert.LessOrEqual(t, bytes, uint64(TableBytes)+TableBytes/100)
	}
}

// The zones of one store and one timeout share a connection; with another timeout they have one of their own, which is
// made with it.
func TestAStoreIsOneForEachTimeout(t *testing.T) {
	opened := 0
	host := alone
	host.open = func(_ string, options ...redislimit.ClientOption) (*redislimit.Client, error) {
		opened++
		_, err := redislimit.Open(t.Context(), "no address", options...)
		if strings.Contains(err.Error(), "Timeout") {
			return nil, err
		}
		return new(redislimit.Client), nil // which has nothing to close
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
