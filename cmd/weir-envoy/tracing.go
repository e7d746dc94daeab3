package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
)

// tracingFlags says whether calls are traced. OpenTelemetry's variables, such as OTEL_EXPORTER_OTLP_ENDPOINT, say where
// the spans are sent.
type tracingFlags struct {
	TracingEnabled  bool    `env:"TRACING_ENABLED" help:"Trace calls with OpenTelemetry. Its variables OTEL_EXPORTER_OTLP_... say where the spans go."`
	TracingProtocol string  `env:"TRACING_EXPORTER_PROTOCOL" default:"http" enum:"http,grpc" help:"http or grpc."`
	TracingName     string  `env:"TRACING_SERVICE_NAME" default:"RateLimit" help:"service.name of the spans."`
	TracingSpace    string  `env:"TRACING_SERVICE_NAMESPACE" help:"service.namespace of the spans."`
	TracingInstance string  `env:"TRACING_SERVICE_INSTANCE_ID" help:"service.instance.id of the spans."`
	TracingRate     float64 `env:"TRACING_SAMPLING_RATE" default:"1" help:"Share of the calls to trace, 0 to 1, if the caller has not decided."`
}

// serverOption returns the option that traces the calls of a server, and a function that sends the last spans. Both are
// nil if calls are not traced.
func (f *tracingFlags) serverOption(ctx context.Context) (grpc.ServerOption, func(context.Context) error, error) {
	if !f.TracingEnabled {
		return nil, nil, nil
	}
	if !(f.TracingRate >= 0 && f.TracingRate <= 1) {
		return nil, nil, fmt.Errorf("TRACING_SAMPLING_RATE=%v: want 0 to 1", f.TracingRate)
	}
	var exporter *otlptrace.Exporter
	var err error
	if f.TracingProtocol == "grpc" {
		exporter, err = otlptracegrpc.New(ctx)
	} else {
		exporter, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	attributes := []attribute.KeyValue{attribute.String("service.name", f.TracingName)}
	if f.TracingSpace != "" {
		attributes = append(attributes, attribute.String("service.namespace", f.TracingSpace))
	}
	if f.TracingInstance != "" {
		attributes = append(attributes, attribute.String("service.instance.id", f.TracingInstance))
	}
	provider := trace.NewTracerProvider(
		trace.WithBatcher(exporter),
		trace.WithResource(resource.NewSchemaless(attributes...)),
		trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(f.TracingRate))),
	)
	handler := otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(provider),
		otelgrpc.WithPropagators(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})),
	)
	return grpc.StatsHandler(handler), provider.Shutdown, nil
}
