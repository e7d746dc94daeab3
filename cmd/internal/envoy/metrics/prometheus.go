// Package metrics exports the service's counters to Prometheus and statsd, under envoyproxy/ratelimit's names.
package metrics

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/cmd/internal/envoy"
)

type collector struct {
	service    *envoy.Service
	mapping    *Mapping
	calls      *Calls // nil: not counted
	tableDescs []*prometheus.Desc
	lostDesc   *prometheus.Desc
}

// Collector returns a collector of the service's counters and, if calls is not nil, of the counters of calls.
func Collector(service *envoy.Service, mapping *Mapping, calls *Calls) prometheus.Collector {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"table"}, nil)
	}
	return &collector{service, mapping, calls, []*prometheus.Desc{
		describe("weir_envoy_table_keys", "Live counters, as of the last sweep."),
		describe("weir_envoy_table_bytes", "Memory of the table."),
		describe("weir_envoy_table_evictions_total", "Counters evicted for others while they still counted."),
		describe("weir_envoy_table_no_room_total", "Requests refused because there was no room for their counter."),
	}, prometheus.NewDesc("weir_envoy_store_lost_parts", "Parts of the store that do not answer: partitions of a cluster, or the whole.",
		[]string{"pool"}, nil)}
}

// Describe sends nothing, because the mapping decides on the names of the metrics.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	counters := c.service.Counters()
	if c.calls != nil {
		counters = append(counters, c.calls.counters()...)
		c.calls.collect(ch)
	}
	// Several names may be mapped to one metric, so their values are added.
	sums, metrics, kinds := map[string]uint64{}, map[string]*mappedMetric{}, map[string]prometheus.ValueType{}
	for _, counter := range counters {
		if m := c.mapping.counter(counter); m.desc != nil {
			key := m.key()
			sums[key] += counter.Value
			if metrics[key], kinds[key] = m, prometheus.CounterValue; counter.Gauge {
				kinds[key] = prometheus.GaugeValue
			}
		}
	}
	for key, sum := range sums {
		ch <- prometheus.MustNewConstMetric(metrics[key].desc, kinds[key], float64(sum))
	}
	for _, store := range c.service.Stores() {
		ch <- prometheus.MustNewConstMetric(c.lostDesc, prometheus.GaugeValue, float64(store.Health.Lost), store.Pool)
	}
	c.limits(ch)
	for _, t := range c.service.Tables() {
		ch <- prometheus.MustNewConstMetric(c.tableDescs[0], prometheus.GaugeValue, float64(t.Keys), t.Name)
		ch <- prometheus.MustNewConstMetric(c.tableDescs[1], prometheus.GaugeValue, float64(t.Bytes), t.Name)
		ch <- prometheus.MustNewConstMetric(c.tableDescs[2], prometheus.CounterValue, float64(t.Evictions), t.Name)
		ch <- prometheus.MustNewConstMetric(c.tableDescs[3], prometheus.CounterValue, float64(t.NoRoom), t.Name)
	}
}

// limits sends the limit of each rule. It has the same labels as the rule's hits, and the length of the window. If
// several rules have the same labels, limits sends the smallest of their limits.
func (c *collector) limits(ch chan<- prometheus.Metric) {
	current := c.service.Config()
	if current == nil {
		return
	}
	minLimits, metrics := map[string]uint32{}, map[string]*mappedMetric{}
	for _, r := range current.Rules() {
		hits := c.mapping.counter(envoy.Counter{Name: "ratelimit.service.rate_limit." + r.Stat + ".total_hits"})
		if r.Limit.Unlimited || hits.desc == nil {
			continue
		}
		m := &mappedMetric{name: hits.name, labels: prometheus.Labels{"window": r.Limit.Window.String()}}
		maps.Copy(m.labels, hits.labels)
		key := m.key()
		if limit, found := minLimits[key]; !found || r.Limit.Requests < limit {
			minLimits[key], metrics[key] = r.Limit.Requests, m
		}
	}
	for key, limit := range minLimits {
		desc := prometheus.NewDesc("weir_envoy_rule_limit", "Hits that a rule admits in a window.", nil, metrics[key].labels)
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(limit))
	}
}
