// Package collected turns the metrics that a reader collects into text, for tests.
package collected

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/otellimit/internal/instrument"
)

// Series has the value of each series. A key is the metric and its sorted attributes: "weir.limit.requests
// weir.limit.name=a,weir.limit.outcome=allowed".
type Series map[string]float64

// From lets the reader collect, and returns the series. The test fails if a series occurs twice, or if it is not in
// this module's instrumentation scope.
func From(t testing.TB, reader sdk.Reader) Series {
	t.Helper()
	s := Series{}
	for _, m := range Metrics(t, reader) {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			add(t, s, m.Name, data.DataPoints)
		case metricdata.Sum[float64]:
			add(t, s, m.Name, data.DataPoints)
		default:
			assert.Failf(t, "no sum", "%s is %T", m.Name, data)
		}
	}
	return s
}

// Metrics lets the reader collect, and returns the metrics of this module's scope.
func Metrics(t testing.TB, reader sdk.Reader) []metricdata.Metrics {
	t.Helper()
	var collected metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &collected))
	if len(collected.ScopeMetrics) == 0 {
		return nil
	}
	require.Len(t, collected.ScopeMetrics, 1)
	require.Equal(t, instrument.ScopeName, collected.ScopeMetrics[0].Scope.Name)
	return collected.ScopeMetrics[0].Metrics
}

func add[N int64 | float64](t testing.TB, s Series, name string, points []metricdata.DataPoint[N]) {
	t.Helper()
	for _, p := range points {
		key := name + " " + p.Attributes.Encoded(attribute.DefaultEncoder())
		assert.NotContains(t, s, key)
		s[key] = float64(p.Value)
	}
}

// Of returns the series whose metrics begin with the prefix. The keys of the result do not have the prefix.
func (s Series) Of(prefix string) map[string]float64 {
	found := map[string]float64{}
	for key, value := range s {
		if suffix, ok := strings.CutPrefix(key, prefix); ok {
			found[suffix] = value
		}
	}
	return found
}

// Kind returns the name that the documents use for the kind of a metric.
func Kind(m metricdata.Metrics) string {
	monotonic := false
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		monotonic = data.IsMonotonic
	case metricdata.Sum[float64]:
		monotonic = data.IsMonotonic
	default:
		return fmt.Sprintf("%T", data)
	}
	if monotonic {
		return "Counter"
	}
	return "UpDownCounter"
}
