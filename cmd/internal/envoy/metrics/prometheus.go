// Package metrics exports the service's counters to Prometheus and statsd, under envoyproxy/ratelimit's names.
package metrics

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/cmd/internal/envoy"
)

type collector struct {
	service *envoy.Service
	mapping *Mapping
	calls   *Calls // nil: not counted
	tables  []*prometheus.Desc
	lost    *prometheus.Desc
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

func (c *collector) Collect(to chan<- prometheus.Metric) {
	counters := c.service.Counters()
	if c.calls != nil {
		counters = append(counters, c.calls.counters()...)
		c.calls.collect(to)
	}
	// Several names may be mapped to one metric, so their values are added.
	sums, of, kinds := map[string]uint64{}, map[string]*mapped{}, map[string]prometheus.ValueType{}
	for _, counter := range counters {
		if m := c.mapping.counter(counter); m.desc != nil {
			key := m.key()
			sums[key] += counter.Value
			if of[key], kinds[key] = m, prometheus.CounterValue; counter.Gauge {
				kinds[key] = prometheus.GaugeValue
			}
		}
	}
	for key, sum := range sums {
		to <- prometheus.MustNewConstMetric(of[key].desc, kinds[key], float64(sum))
	}
	for _, store := range c.service.Stores() {
		to <- prometheus.MustNewConstMetric(c.lost, prometheus.GaugeValue, float64(store.Health.Lost), store.Pool)
	}
	c.limits(to)
	for _, t := range c.service.Tables() {
		to <- prometheus.MustNewConstMetric(c.tables[0], prometheus.GaugeValue, float64(t.Keys), t.Name)
		to <- prometheus.MustNewConstMetric(c.tables[1], prometheus.GaugeValue, float64(t.Bytes), t.Name)
		to <- prometheus.MustNewConstMetric(c.tables[2], prometheus.CounterValue, float64(t.Evictions), t.Name)
		to <- prometheus.MustNewConstMetric(c.tables[3], prometheus.CounterValue, float64(t.NoRoom), t.Name)
	}
}

// limits sends the limit of each rule. It has the same labels as the rule's hits, and the length of the window. If
// several rules have the same labels, limits sends the smallest of their limits.
func (c *collector) limits(to chan<- prometheus.Metric) {
	now := c.service.Config()
	if now == nil {
		return
	}
	least, of := map[string]uint32{}, map[string]*mapped{}
	for _, r := range now.Rules() {
		hits := c.mapping.counter(envoy.Counter{Name: "ratelimit.service.rate_limit." + r.Stat + ".total_hits"})
		if r.Limit.Unlimited || hits.desc == nil {
			continue
		}
		m := &mapped{name: hits.name, labels: prometheus.Labels{"window": r.Limit.Window.String()}}
		maps.Copy(m.labels, hits.labels)
		key := m.key()
		if limit, there := least[key]; !there || r.Limit.Requests < limit {
			least[key], of[key] = r.Limit.Requests, m
		}
	}
	for key, limit := range least {
		desc := prometheus.NewDesc("weir_envoy_rule_limit", "Hits that a rule admits in a window.", nil, of[key].labels)
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(limit))
	}
}
