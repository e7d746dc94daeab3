package metrics

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/weir-go/weir/cmd/internal/envoy"
	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

// TestEveryTableHasANameOfItsOwn: no two tables have the same name. Otherwise the complete scrape would fail.
func TestEveryTableHasANameOfItsOwn(t *testing.T) {
	service := serving(t, `
domain: d
descriptors:
  - {key: a, rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: b, rate_limit: {unit: second, requests_per_unit: 2}}
  - {key: c, rate_limit: {unit: second, requests_per_unit: 2, algorithm: token-bucket}}
  - {key: d, rate_limit: {unit: second, requests_per_unit: 3, algorithm: token-bucket}}
  - {key: e, rate_limit: {unit: second, requests_per_unit: 3, algorithm: token-bucket, burst: 9}}
  - {key: f, rate_limit: {unit: second, requests_per_unit: 3, algorithm: sliding-log}}
  - {key: g, rate_limit: {unit: second, requests_per_unit: 4, algorithm: sliding-log}}
`)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Collector(service, mappingOf(t, ""), nil))
	n, err := testutil.GatherAndCount(registry, "weir_envoy_table_no_room_total")
	require.NoError(t, err)
	assert.Equal(t, 6, n)
}

func serving(t *testing.T, rules string) *envoy.Service {
	t.Helper()
	document, err := config.Parse("a.yaml", []byte(rules))
	require.NoError(t, err)
	compiled, err := config.Compile([]*config.Document{document}, config.Options{})
	require.NoError(t, err)
	service, err := envoy.New(envoy.Options{MaxKeys: 10})
	require.NoError(t, err)
	t.Cleanup(func() { service.Close() })
	require.NoError(t, service.SetConfig(compiled))
	return service
}

func mappingOf(t *testing.T, text string) *Mapping {
	t.Helper()
	if text == "" {
		m, err := DefaultMapping(false)
		require.NoError(t, err)
		return m
	}
	path := filepath.Join(t.TempDir(), "conf.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	m, err := MappingOf(path)
	require.NoError(t, err)
	return m
}

const deep = `
domain: d
descriptors:
  - key: a
    value: v
    rate_limit: {unit: minute, requests_per_unit: 7}
    descriptors:
      - key: b
        descriptors:
          - key: c
            rate_limit: {unit: hour, requests_per_unit: 9}
            descriptors:
              - {key: e, rate_limit: {unit: hour, requests_per_unit: 5}}
`

func ask(t *testing.T, service *envoy.Service, calls *Calls, domain string, keys ...string) {
	t.Helper()
	descriptor := &commonv3.RateLimitDescriptor{}
	for _, key := range keys {
		descriptor.Entries = append(descriptor.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: "v"})
	}
	request := &rlsv3.RateLimitRequest{Domain: domain, Descriptors: []*commonv3.RateLimitDescriptor{descriptor}}
	_, err := calls.Intercept(t.Context(), request, &grpc.UnaryServerInfo{FullMethod: "/a.b/ShouldRateLimit"},
		func(ctx context.Context, request any) (any, error) {
			return service.ShouldRateLimit(ctx, request.(*rlsv3.RateLimitRequest))
		})
	require.NoError(t, err)
}

// TestMilliseconds: a time is observed in seconds, and again in milliseconds. The number is larger, but it is counted
// in the same bucket of the histogram.
func TestMilliseconds(t *testing.T) {
	written := func(milliseconds bool) (sum float64, counts []uint64) {
		mapping, err := DefaultMapping(milliseconds)
		require.NoError(t, err)
		metric, scale := mapping.observer("ratelimit_server.ShouldRateLimit.response_time")
		metric.Observe(30 * scale)
		var w dto.Metric
		require.NoError(t, metric.Write(&w))
		for _, bucket := range w.GetHistogram().GetBucket() {
			counts = append(counts, bucket.GetCumulativeCount())
		}
		return w.GetHistogram().GetSampleSum(), counts
	}
	seconds, ranks := written(false)
	assert.InDelta(t, 0.03, seconds, 1e-9)
	milliseconds, same := written(true)
	assert.InDelta(t, 30, milliseconds, 1e-9)
	assert.Equal(t, ranks, same)
	assert.Contains(t, ranks, uint64(0))
}

// TestDefaultNames: the default names are envoyproxy/ratelimit's, except that the third level of a descriptor also has
// a label.
func TestDefaultNames(t *testing.T) {
	service, mapping := serving(t, deep), mappingOf(t, "")
	calls := NewCalls(mapping)
	ask(t, service, calls, "d", "a")
	ask(t, service, calls, "d", "a", "b", "c")
	ask(t, service, calls, "d", "a", "b", "c", "e")
	ask(t, service, calls, "not.here", "a")
	all := Collector(service, mapping, calls)
	require.NoError(t, testutil.CollectAndCompare(all, strings.NewReader(`
# HELP ratelimit_service_rate_limit_total_hits Hits that requests asked for.
# TYPE ratelimit_service_rate_limit_total_hits counter
ratelimit_service_rate_limit_total_hits{domain="d",key1="a_v"} 1
ratelimit_service_rate_limit_total_hits{domain="d",key1="a_v",key2="b",key3="c"} 1
ratelimit_service_rate_limit_total_hits{domain="d",key1="a_v",key2="b",key3="c.e"} 1
# HELP ratelimit_service_total_requests Calls by gRPC.
# TYPE ratelimit_service_total_requests counter
ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 4
# HELP ratelimit_service_rate_limit_not_here_domain_not_found Counter ratelimit_service_rate_limit_not_here_domain_not_found.
# TYPE ratelimit_service_rate_limit_not_here_domain_not_found counter
ratelimit_service_rate_limit_not_here_domain_not_found 1
# HELP ratelimit_service_should_rate_limit_error Requests that were answered with an error.
# TYPE ratelimit_service_should_rate_limit_error counter
ratelimit_service_should_rate_limit_error{err_type="redis_error"} 0
ratelimit_service_should_rate_limit_error{err_type="service_error"} 0
# HELP ratelimit_service_config_load_success Counter ratelimit_service_config_load_success.
# TYPE ratelimit_service_config_load_success counter
ratelimit_service_config_load_success 1
# HELP weir_envoy_rule_limit Hits that a rule admits in a window.
# TYPE weir_envoy_rule_limit gauge
weir_envoy_rule_limit{domain="d",key1="a_v",window="1m0s"} 7
weir_envoy_rule_limit{domain="d",key1="a_v",key2="b",key3="c",window="1h0m0s"} 9
weir_envoy_rule_limit{domain="d",key1="a_v",key2="b",key3="c.e",window="1h0m0s"} 5
`), "ratelimit_service_rate_limit_total_hits", "ratelimit_service_total_requests",
		"ratelimit_service_rate_limit_not_here_domain_not_found", "ratelimit_service_should_rate_limit_error",
		"ratelimit_service_config_load_success", "weir_envoy_rule_limit"))
	assert.Equal(t, 1, testutil.CollectAndCount(all, "ratelimit_service_response_time_seconds"))
	families := gathered(t, all)
	assert.EqualValues(t, 4, families["ratelimit_service_response_time_seconds"].GetMetric()[0].GetHistogram().GetSampleCount())
	assert.Less(t, families["ratelimit_service_response_time_seconds"].GetMetric()[0].GetHistogram().GetSampleSum(), 60.0)
}

func gathered(t *testing.T, c prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	all, err := registry.Gather()
	require.NoError(t, err)
	byName := map[string]*dto.MetricFamily{}
	for _, one := range all {
		byName[one.GetName()] = one
	}
	return byName
}

// TestMappingFile: a file sets names and labels and drops values. If it maps several values to one metric, they are
// added.
func TestMappingFile(t *testing.T) {
	service, mapping := serving(t, deep), mappingOf(t, `
mappings:
  - match: ratelimit.service.rate_limit.*.*.total_hits
    name: hits
    labels: {domain: "$1", key1: "$2"}
  - match: "ratelimit\\.service\\.rate_limit\\.([^.]*)\\.([^.]*)\\.([^.]*)(\\..*)?\\.total_hits"
    match_type: regex
    name: hits
    labels: {domain: "$1", key1: "$2", key2: "$3"}
  - match: ratelimit_server.*.response_time
    name: took
    timer_type: histogram
    labels: {method: "$1"}
  - match: "."
    match_type: regex
    action: drop
    name: dropped
`)
	calls := NewCalls(mapping)
	ask(t, service, calls, "d", "a")
	ask(t, service, calls, "d", "a", "b", "c")
	ask(t, service, calls, "d", "a", "b", "c", "e")
	all := Collector(service, mapping, calls)
	require.NoError(t, testutil.CollectAndCompare(all, strings.NewReader(`
# HELP hits Counter hits.
# TYPE hits counter
hits{domain="d",key1="a_v"} 1
hits{domain="d",key1="a_v",key2="b"} 2
`), "hits"))
	families := gathered(t, all)
	assert.EqualValues(t, 3, families["took"].GetMetric()[0].GetHistogram().GetSampleCount())
	assert.NotContains(t, families, "ratelimit_service_total_requests")
	assert.NotContains(t, families, "dropped")

	_, err := MappingOf(filepath.Join(t.TempDir(), "none.yaml"))
	assert.ErrorIs(t, err, ErrNoMapping)
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("mappings: [{match: a.b, name: '1 2'}]"), 0o644))
	_, err = MappingOf(bad)
	assert.ErrorContains(t, err, "PROMETHEUS_MAPPER_YAML="+bad+": ")
}
