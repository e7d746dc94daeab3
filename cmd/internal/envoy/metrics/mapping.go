package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/statsd_exporter/pkg/mapper"

	"github.com/weir-go/weir/cmd/internal/envoy"
)

// A Mapping maps names of statistics to Prometheus names and labels, as a file of statsd_exporter says. A name that is
// not in the file stays unchanged and gets no labels.
type Mapping struct {
	mapper mapper.MetricMapper
	cache  sync.Map // name -> *mappedMetric; one for each name in the statistics
}

type mappedMetric struct {
	name   string
	labels prometheus.Labels
	desc   *prometheus.Desc // nil: the name is dropped
}

// ErrNoMapping is returned if the mapping file does not exist.
var ErrNoMapping = fs.ErrNotExist

// DefaultMapping returns the mapping to envoyproxy/ratelimit's names. If milliseconds is true, times are in
// milliseconds although the names say seconds. envoyproxy/ratelimit has an option that does this.
func DefaultMapping(milliseconds bool) (*Mapping, error) {
	m := &Mapping{}
	return m, m.mapper.InitFromYAMLString(defaultMapping(milliseconds))
}

// MappingOf reads a mapping file. Its error names the file.
func MappingOf(path string) (*Mapping, error) {
	m := &Mapping{}
	if err := m.mapper.InitFromFile(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, fmt.Errorf("PROMETHEUS_MAPPER_YAML=%s: %w", path, err)
	}
	return m, nil
}

// defaultMapping returns the text of DefaultMapping. A rule's labels are its domain and the levels of its descriptor.
// The label key3 has the fourth level and all deeper levels. envoyproxy/ratelimit's default mapping drops all levels
// from the third on.
func defaultMapping(milliseconds bool) string {
	scale, buckets := "0.001", "0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10"
	if milliseconds {
		scale, buckets = "1", "0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000"
	}
	var b strings.Builder
	b.WriteString("mappings:\n")
	for name, help := range ruleHelp {
		fmt.Fprintf(&b, `- match: '^ratelimit\.service\.rate_limit\.([^.]*)\.([^.]*)(?:\.([^.]*)(?:\.(.*))?)?\.%s$'
  match_type: regex
  name: ratelimit_service_rate_limit_%s
  help: %s
  labels: {domain: $1, key1: $2, key2: $3, key3: $4}
`, name, name, help)
	}
	fmt.Fprintf(&b, `- match: ratelimit.service.call.should_rate_limit.*
  name: ratelimit_service_should_rate_limit_error
  help: Requests that were answered with an error.
  labels: {err_type: $1}
- match: ratelimit_server.*.total_requests
  name: ratelimit_service_total_requests
  help: Calls by gRPC.
  labels: {grpc_method: $1}
- match: ratelimit_server.*.response_time
  name: ratelimit_service_response_time_seconds
  help: How long calls by gRPC took.
  observer_type: histogram
  histogram_options: {buckets: [%s]}
  scale: %s
  labels: {grpc_method: $1}
`, buckets, scale)
	return b.String()
}

var ruleHelp = map[string]string{
	"total_hits":                  "Hits that requests asked for.",
	"over_limit":                  "Hits beyond the limit.",
	"near_limit":                  "Hits in the band below the limit.",
	"within_limit":                "Hits of requests that passed.",
	"over_limit_with_local_cache": "Hits beyond the limit that were refused without asking the store.",
	"shadow_mode":                 "Hits beyond the limit of a rule in shadow mode.",
}

func (m *Mapping) counter(c envoy.Counter) *mappedMetric {
	name, kind, noun := c.Name, mapper.MetricTypeCounter, "Counter "
	if c.Gauge {
		kind, noun = mapper.MetricTypeGauge, "Gauge "
	}
	if value, ok := m.cache.Load(name); ok {
		return value.(*mappedMetric)
	}
	metric := &mappedMetric{name: mapper.EscapeMetricName(strings.ToValidUTF8(name, "_"))}
	help := ""
	rule, labels, ok := m.mapper.GetMapping(strings.ToValidUTF8(name, "_"), kind)
	if ok {
		metric.name, metric.labels = mapper.EscapeMetricName(rule.Name), labels
		maps.DeleteFunc(labels, func(_, value string) bool { return value == "" }) // the same as an absent label
		help = rule.HelpText
	}
	if help == "" {
		help = noun + metric.name + "."
	}
	if !ok || rule.Action != mapper.ActionTypeDrop {
		metric.desc = prometheus.NewDesc(metric.name, help, nil, metric.labels)
	}
	value, _ := m.cache.LoadOrStore(name, metric)
	return value.(*mappedMetric)
}

func (m *mappedMetric) key() string {
	key := m.name
	for _, label := range slices.Sorted(maps.Keys(m.labels)) {
		key += "\x00" + label + "\x00" + m.labels[label]
	}
	return key
}

// observer returns the metric of a timer, and a factor. The factor converts milliseconds, the unit of timers. observer
// returns nil if the mapping drops the name.
func (m *Mapping) observer(name string) (observer, float64) {
	rule, labels, ok := m.mapper.GetMapping(name, mapper.MetricTypeObserver)
	switch {
	case !ok:
		return prometheus.NewSummary(prometheus.SummaryOpts{Name: mapper.EscapeMetricName(name), Help: "Milliseconds."}), 1
	case rule.Action == mapper.ActionTypeDrop:
		return nil, 0
	}
	scale := 1.0
	if rule.Scale.Set {
		scale = rule.Scale.Val
	}
	help := rule.HelpText
	if help == "" {
		help = "How long calls by gRPC took."
	}
	if rule.ObserverType == mapper.ObserverTypeHistogram {
		buckets := m.mapper.Defaults.HistogramOptions.Buckets
		if rule.HistogramOptions != nil && len(rule.HistogramOptions.Buckets) > 0 {
			buckets = rule.HistogramOptions.Buckets
		}
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: rule.Name, Help: help, ConstLabels: labels, Buckets: buckets,
		}), scale
	}
	objectives := map[float64]float64{}
	quantiles := m.mapper.Defaults.SummaryOptions.Quantiles
	if rule.SummaryOptions != nil && len(rule.SummaryOptions.Quantiles) > 0 {
		quantiles = rule.SummaryOptions.Quantiles
	}
	for _, q := range quantiles {
		objectives[q.Quantile] = q.Error
	}
	return prometheus.NewSummary(prometheus.SummaryOpts{
		Name: rule.Name, Help: help, ConstLabels: labels, Objectives: objectives,
	}), scale
}

// An observer is a metric that takes observations, such as a histogram.
type observer interface {
	prometheus.Metric
	prometheus.Observer
}
