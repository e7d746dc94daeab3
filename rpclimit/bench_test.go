package rpclimit_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/internal/testrace"
	"github.com/weir-go/weir/rpclimit"
)

func plenty(t testing.TB, name string, key rpclimit.KeyFunc) rpclimit.Limit {
	return rpclimit.Limit{Name: name, Limiter: testclock.New().Limiter(t, engine.TokenBucket(engine.PerSecond(1), 1<<32)), Key: key}
}

// decisions returns functions that decide a call without an allocation. The key names the feature that the limits of
// the call use.
func decisions(t testing.TB) map[string]func() {
	t.Helper()
	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("10.0.0.0/8"))
	require.NoError(t, err)
	client, err := rpclimit.ClientAddr(ip)
	require.NoError(t, err)
	apiKey, err := rpclimit.MetadataValue("x-api-key", client)
	require.NoError(t, err)
	costs, err := rpclimit.MethodCosts(map[string]uint64{"/test.Service/*": 2}, 1)
	require.NoError(t, err)
	costly := plenty(t, "costs", nil)
	costly.Cost, costly.Refund = costs, rpclimit.RefundCodes(rpclimit.Unavailable)
	empty := plenty(t, "empty", rpclimit.Everyone)
	empty.Limiter = testclock.New().Burst(t, 1)
	empty.Limiter.TakeKey(empty.Limiter.KeyUint64(0), 1)
	var eight []rpclimit.Limit
	for i := range 8 {
		eight = append(eight, plenty(t, fmt.Sprint(i), nil))
	}
	call := from("10.0.0.1", "x-forwarded-for", "203.0.113.9", "x-api-key", "0123456789abcdef")
	all := map[string]func(){}
	for name, set := range map[string][]rpclimit.Limit{
		"peer":     {plenty(t, "a", nil)},
		"client":   {plenty(t, "a", client)},
		"metadata": {plenty(t, "a", apiKey)},
		"join":     {plenty(t, "a", rpclimit.Join(apiKey, rpclimit.Method))},
		"costs":    {costly},
		"refused":  {plenty(t, "a", client), empty},
		"eight":    eight,
	} {
		l := newLimits(t, set, rpclimit.ObserveWith(&counts{}), rpclimit.OnLimited(func(rpclimit.Call, rpclimit.Check) {}))
		all[name] = func() {
			res := l.Decide(call)
			res.Finish(rpclimit.OK)
		}
	}
	return all
}

func TestADecisionAllocatesNothing(t *testing.T) {
	if testrace.Enabled {
		t.Skip("a sync.Pool drops things under the race detector")
	}
	for name, decide := range decisions(t) {
		assert.Zero(t, testalloc.PerCall(decide), name)
	}
}

func BenchmarkDecide(b *testing.B) {
	for name, decide := range decisions(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decide()
			}
		})
	}
}
