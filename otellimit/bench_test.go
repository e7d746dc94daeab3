package otellimit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testrace"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/otellimit"
)

// BenchmarkAllow measures Allow before, during and after the registration of the limiter.
func BenchmarkAllow(b *testing.B) {
	l, err := engine.New(engine.TokenBucket(engine.PerSecond(1e9), 1<<20))
	require.NoError(b, err)
	defer l.Close()
	allow := func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.Allow("203.0.113.7")
		}
	}
	b.Run("before", allow)
	p, _ := provider(b)
	r, err := otellimit.Register(p, "a", l)
	require.NoError(b, err)
	b.Run("registered", allow)
	require.NoError(b, r.Unregister())
	b.Run("after", allow)
}

// BenchmarkObserve measures the time that a front adds to a request for each limit that applies to it.
func BenchmarkObserve(b *testing.B) {
	p, _ := provider(b)
	front, err := otellimit.RegisterHTTP(p, []httplimit.Limit{{Name: "clients"}, {Name: "logins"}})
	require.NoError(b, err)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			front.Observe("logins", limits.Allowed)
		}
	})
}

// BenchmarkCollect measures one collection. A collection has 11 series for each limiter.
func BenchmarkCollect(b *testing.B) {
	for _, limiters := range []int{0, 1, 100} {
		b.Run(fmt.Sprintf("limiters=%d", limiters), func(b *testing.B) {
			reader := sdk.NewManualReader()
			p := sdk.NewMeterProvider(sdk.WithReader(reader))
			defer func() { require.NoError(b, p.Shutdown(b.Context())) }()
			for i := range limiters {
				_, err := otellimit.Register(p, fmt.Sprint("limit ", i), bucket(b, 1))
				require.NoError(b, err)
			}
			var all metricdata.ResourceMetrics
			require.NoError(b, reader.Collect(b.Context(), &all))
			b.ReportAllocs()
			for b.Loop() {
				_ = reader.Collect(context.Background(), &all)
			}
		})
	}
}

// capturing is a meter that stores the callbacks that are registered with it.
type capturing struct {
	noop.Meter
	callbacks []metric.Callback
}

func (c *capturing) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	c.callbacks = append(c.callbacks, f)
	return noop.Registration{}, nil
}

// counting is an observer that counts its calls, and allocates nothing.
type counting struct {
	noop.Observer
	observations int
}

func (c *counting) ObserveInt64(metric.Int64Observable, int64, ...metric.ObserveOption) {
	c.observations++
}

// TestTheCallbackDoesNotAllocate: in a collection, only the SDK allocates. A limiter has one callback for all of its
// series.
func TestTheCallbackDoesNotAllocate(t *testing.T) {
	meter := &capturing{}
	_, err := otellimit.Register(&fixed{meter: meter}, "a", bucket(t, 1))
	require.NoError(t, err)
	require.Len(t, meter.callbacks, 1)
	observer := &counting{}
	require.NoError(t, meter.callbacks[0](t.Context(), observer))
	assert.Equal(t, 11, observer.observations)
	if !testrace.Enabled {
		assert.Zero(t, testalloc.PerCall(func() { _ = meter.callbacks[0](context.Background(), observer) }))
	}
}
