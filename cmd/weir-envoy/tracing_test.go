package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestTracing: the collector in OpenTelemetry's variables gets a span for each call.
func TestTracing(t *testing.T) {
	spans := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := &collectorv1.ExportTraceServiceRequest{}
		if assert.NoError(t, err) && assert.NoError(t, proto.Unmarshal(body, request)) {
			for _, resource := range request.GetResourceSpans() {
				name := resource.GetResource().GetAttributes()[0].GetValue().GetStringValue()
				for _, scope := range resource.GetScopeSpans() {
					for _, span := range scope.GetSpans() {
						spans <- name + " " + span.GetName()
					}
				}
			}
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	r := start(t, nil, "--runtime-root="+write(t, map[string]string{"a.yaml": file}), "--tracing-enabled", "--tracing-name=limits")
	r.left("day", "x")
	require.NoError(t, r.end()) // sends the spans
	for span := range spans {
		if span == "limits envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit" {
			return
		}
	}
}

func TestTracingRate(t *testing.T) {
	f := tracingFlags{TracingEnabled: true, TracingRate: 2}
	_, _, err := f.serverOption(t.Context())
	assert.EqualError(t, err, "TRACING_SAMPLING_RATE=2: want 0 to 1")
}
