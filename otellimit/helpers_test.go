package otellimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/otellimit/internal/collected"
)

// provider returns a MeterProvider with a reader, and a function that returns what the reader collects.
func provider(t testing.TB) (*sdk.MeterProvider, func() collected.Series) {
	t.Helper()
	reader := sdk.NewManualReader()
	p := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(t.Context())) })
	return p, func() collected.Series { return collected.From(t, reader) }
}

// still is a clock that stands still, so that no tokens come back.
func still() time.Time { return time.Unix(1_800_000_000, 0) }

func limiter(t testing.TB, policy engine.Policy, options ...engine.Option) *engine.Limiter {
	t.Helper()
	options = append([]engine.Option{engine.ClockFunc(still), engine.MaxKeys(1000), engine.SweepInterval(24 * time.Hour)}, options...)
	l, err := engine.New(policy, options...)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func bucket(t testing.TB, burst uint64) *engine.Limiter {
	t.Helper()
	return limiter(t, engine.TokenBucket(engine.Per(1, time.Hour), burst))
}
