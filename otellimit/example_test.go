package otellimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/otellimit"
)

// show prints the series of a metric, like an exporter.
func show(reader *metric.ManualReader, name string) {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		log.Fatal(err)
	}
	var lines []string
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				lines = append(lines, fmt.Sprint(p.Attributes.Encoded(attribute.DefaultEncoder()), ": ", p.Value, " ", m.Unit))
			}
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
}

// The example reports the table of a limiter, and the number of its refusals.
func ExampleRegister() {
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))

	var refusals otellimit.Refusals
	limiter, err := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 2), refusals.Count())
	if err != nil {
		log.Fatal(err)
	}
	defer limiter.Close()
	table, err := otellimit.Register(provider, "logins", limiter)
	if err != nil {
		log.Fatal(err)
	}
	defer table.Unregister()
	counted, err := otellimit.RegisterRefusals(provider, "logins", &refusals)
	if err != nil {
		log.Fatal(err)
	}
	defer counted.Unregister()

	for range 5 {
		limiter.Allow("alice")
		limiter.Allow("bob")
	}
	limiter.Sweep() // counts the keys; otherwise they are counted within ten seconds
	show(reader, "weir.limit.refusals")
	show(reader, "weir.table.key.count")
	// Output:
	// weir.limit.name=logins: 6 {refusal}
	// weir.limit.name=logins: 2 {key}
}

// The example reports the limits of an HTTP server.
func ExampleRegisterHTTP() {
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))

	limiter, err := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 2))
	if err != nil {
		log.Fatal(err)
	}
	defer limiter.Close()
	limits := []httplimit.Limit{{Name: "clients", Limiter: limiter}}
	front, err := otellimit.RegisterHTTP(provider, limits)
	if err != nil {
		log.Fatal(err)
	}
	defer front.Unregister()
	middleware, err := httplimit.New(limits, httplimit.ObserveWith(front))
	if err != nil {
		log.Fatal(err)
	}

	handler := middleware.Handler(http.NotFoundHandler())
	for range 3 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	show(reader, "weir.limit.requests")
	// Output:
	// weir.limit.name=clients,weir.limit.outcome=allowed: 2 {request}
	// weir.limit.name=clients,weir.limit.outcome=refused: 1 {request}
	// weir.limit.name=clients,weir.limit.outcome=shadow_refused: 0 {request}
}
