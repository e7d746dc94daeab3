// Package metrics brings the service's counters to Prometheus and to statsd, by the reference's names.
package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/envoylimit"
)

// A collector reads the counters when it is asked. The labels are those of the reference's default mapping: the domain,
// and the keys of the descriptor up to the second; what is deeper is in the second.
type collector struct {
	service *envoylimit.Service
	rules   map[string]*prometheus.Desc // by the last part of the name
	plain   map[string]*prometheus.Desc
	errors  *prometheus.Desc
	unknown *prometheus.Desc
	tables  []*prometheus.Desc
}

// Collector returns a collector of the service's counters.
func Collector(service *envoylimit.Service) prometheus.Collector {
	c := &collector{service: service, rules: map[string]*prometheus.Desc{}, plain: map[string]*prometheus.Desc{}}
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	const rule = "ratelimit_service_rate_limit_"
	for name, help := range map[string]string{
		"total_hits":                  "Hits that were asked for.",
		"over_limit":                  "Hits beyond the limit.",
		"near_limit":                  "Hits in the band below the limit.",
		"within_limit":                "Hits of requests that passed.",
		"over_limit_with_local_cache": "Always 0: there is no cache in front of a store.",
		"shadow_mode":                 "Hits beyond the limit of a rule in shadow mode.",
	} {
		c.rules[name] = describe(rule+name, help, "domain", "key1", "key2")
	}
	for name, help := range map[string]string{
		"config_load_success": "Configurations that were taken.",
		"config_load_error":   "Configurations that were refused.",
		"global_shadow_mode":  "Requests that passed only because of SHADOW_MODE.",
		"stats_dropped":       "Requests counted under no name, because there are too many names.",
	} {
		c.plain[name] = describe("ratelimit_service_"+name, help)
	}
	c.errors = describe("ratelimit_service_should_rate_limit_error", "Requests that were answered with an error.", "err_type")
	c.unknown = describe(rule+"domain_not_found", "Requests of an unknown domain.", "domain")
	c.tables = []*prometheus.Desc{
		describe("weir_envoy_table_keys", "Live counters, as of the last sweep.", "table"),
		describe("weir_envoy_table_bytes", "Memory of the table.", "table"),
		describe("weir_envoy_table_evictions_total", "Counters that made room for others while they still counted.", "table"),
		describe("weir_envoy_table_no_room_total", "Requests refused because there was no room for their counter.", "table"),
	}
	return c
}

func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.rules {
		to <- d
	}
	for _, d := range c.plain {
		to <- d
	}
	to <- c.errors
	to <- c.unknown
	for _, d := range c.tables {
		to <- d
	}
}

func (c *collector) Collect(to chan<- prometheus.Metric) {
	// A name with dots in its domain may have the labels of another.
	sums := map[labels]uint64{}
	for _, counter := range c.service.Counters() {
		sums[labelsOf(counter.Name)] += counter.Value
	}
	for l, sum := range sums {
		c.send(to, l, float64(sum))
	}
	for _, t := range c.service.Tables() {
		to <- prometheus.MustNewConstMetric(c.tables[0], prometheus.GaugeValue, float64(t.Keys), t.Name)
		to <- prometheus.MustNewConstMetric(c.tables[1], prometheus.GaugeValue, float64(t.Bytes), t.Name)
		to <- prometheus.MustNewConstMetric(c.tables[2], prometheus.CounterValue, float64(t.Evictions), t.Name)
		to <- prometheus.MustNewConstMetric(c.tables[3], prometheus.CounterValue, float64(t.NoRoom), t.Name)
	}
}

// labels are a name taken apart.
type labels struct{ group, what, domain, key1, key2 string }

func labelsOf(name string) labels {
	name = strings.ToValidUTF8(strings.TrimPrefix(name, "ratelimit.service."), "_")
	if kind, ok := strings.CutPrefix(name, "call.should_rate_limit."); ok {
		return labels{group: "error", what: kind}
	}
	rule, ok := strings.CutPrefix(name, "rate_limit.")
	last := strings.LastIndexByte(rule, '.')
	if !ok || last < 0 {
		return labels{group: "plain", what: name}
	}
	what, rule := rule[last+1:], rule[:last]
	if what == "domain_not_found" {
		return labels{group: "unknown", domain: rule}
	}
	domain, keys, _ := strings.Cut(rule, ".")
	key1, key2, _ := strings.Cut(keys, ".")
	return labels{"rule", what, domain, key1, key2}
}

func (c *collector) send(to chan<- prometheus.Metric, l labels, sum float64) {
	counter := func(d *prometheus.Desc, values ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, sum, values...)
	}
	switch l.group {
	case "error":
		counter(c.errors, l.what)
	case "plain":
		counter(c.plain[l.what])
	case "unknown":
		counter(c.unknown, l.domain)
	default:
		counter(c.rules[l.what], l.domain, l.key1, l.key2)
	}
}
