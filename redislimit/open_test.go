//go:build unix

package redislimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// TestWhatNothingCountedIsNotGivenBack: settling a request that FailOpen admitted without the store gives nothing back.
func TestWhatNothingCountedIsNotGivenBack(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	store := open(t, proxy.URL())
	list, all := []limits.Limit[errand]{}, map[string]*redislimit.Limiter{}
	for name, policy := range map[string]engine.Policy{
		"one": engine.FixedWindow(20, time.Hour), "two": engine.TokenBucket(engine.Per(1, time.Hour), 20),
		"hold": engine.FixedWindow(20, time.Hour), "least": engine.FixedWindow(20, time.Hour), "busy": engine.Concurrency(20, time.Hour),
	} {
		l, err := redislimit.New(store, name, policy, redislimit.OnLoss(redislimit.FailOpen))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, l.Close()) })
		limit := limitOf(name, l)
		switch name {
		case "least":
			limit.Least = func(errand) uint64 { return 1 }
			fallthrough
		case "hold":
			limit.Hold, limit.Cost = true, func(errand) uint64 { return 3 }
		case "busy":
			limit.Refund = nil
		}
		list, all[name] = append(list, limit), l
	}
	closed, err := redislimit.New(store, "closed", engine.FixedWindow(20, time.Hour), redislimit.OnLoss(redislimit.FailClosed))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, closed.Close()) })
	set, err := limits.New(append(list, limitOf("closed", closed)), limits.Options[errand]{})
	require.NoError(t, err)
	admit := func(key string, names ...string) *limits.Result[errand] {
		e := errand{}
		for _, name := range names {
			e[name] = key
		}
		res := set.Decide(t.Context(), e)
		return &res
	}
	counted := func(key, name string) bool {
		before := all[name].Stats().Fallbacks
		res := admit(key, name)
		res.Finish(t.Context(), errand{}, 1)
		return all[name].Stats().Fallbacks == before
	}
	ways := map[string][]string{
		"one": {"one"}, "two": {"one", "two"}, "hold": {"hold"},
		"least": {"least"}, "holds": {"hold", "least", "two"}, "busy": {"busy"}, "busy and one": {"busy", "one"},
	}
	for key, names := range ways {
		for _, name := range names {
			require.Eventually(t, func() bool { return counted("before "+key, name) }, backSoon, time.Millisecond)
		}
		for range 3 {
			require.Equal(t, limits.Admitted, admit(key, names...).Verdict())
		}
	}
	before := map[string]uint64{}
	for key, names := range ways {
		for _, name := range names {
			require.Eventually(t, func() bool {
				before[key+name] = used(t, all[name], key)
				return before[key+name] >= 3
			}, backSoon, time.Millisecond)
		}
	}

	proxy.BlackHole()
	require.Eventually(t, func() bool { return !counted("lost", "one") && store.Health().Lost > 0 }, backSoon, time.Millisecond)
	open := map[string]*limits.Result[errand]{}
	for key, names := range ways {
		open[key] = admit(key, names...)
		require.Equal(t, limits.Admitted, open[key].Verdict(), key)
		require.NotEqual(t, limits.Admitted, admit(key, append(names, "closed")...).Verdict(), "%s: and it is undone", key)
	}
	proxy.Clear()
	for key, names := range ways {
		for _, name := range names {
			require.Eventually(t, func() bool { return counted("after "+key, name) }, backSoon, time.Millisecond)
		}
		open[key].Finish(t.Context(), errand{}, 1)
	}
	for key, names := range ways {
		for _, name := range names {
			assert.GreaterOrEqual(t, used(t, all[name], key), before[key+name], "%s: %s", key, name)
		}
	}
}
