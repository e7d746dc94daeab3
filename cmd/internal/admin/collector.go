package admin

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-go/weir/engine"
)

// A collector reads counters and statistics when Prometheus scrapes. Its labels are rules and outcomes, so traffic does
// not add series.
type collector struct {
	admin      *Admin
	requests   *prometheus.Desc
	tables     []tableMetric
	leases     []storeMetric // of each rule that is in a store
	store      []storeMetric // of the store
	reloadOK   *prometheus.Desc
	reloadTime *prometheus.Desc
	generation *prometheus.Desc
	build      *prometheus.Desc
}

type tableMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(engine.Stats) uint64
}

func oneIf(condition bool) uint64 {
	if condition {
		return 1
	}
	return 0
}

func newCollector(a *Admin) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("weir_"+name, help, labels, nil)
	}
	table := func(kind prometheus.ValueType, read func(engine.Stats) uint64, name, help string) tableMetric {
		return tableMetric{desc(name, help, "rule"), kind, read}
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	return &collector{
		admin: a,
		requests: desc("requests_total",
			"Requests by the outcome of a rule. A refunded request was counted as allowed before.", "rule", "outcome"),
		tables: []tableMetric{
			table(gauge, func(s engine.Stats) uint64 { return s.Keys },
				"keys", "Keys that had used some of their limit at the last sweep."),
			table(gauge, func(s engine.Stats) uint64 { return s.Slots },
				"table_slots", "Slots of the rule's table, which is sized to be six tenths full."),
			table(gauge, func(s engine.Stats) uint64 { return s.Bytes },
				"table_bytes", "Memory of the rule's table."),
			table(counter, func(s engine.Stats) uint64 { return s.Evictions },
				"evictions_total", "Keys evicted because there was no room although they had used some of their limit."),
			table(counter, func(s engine.Stats) uint64 { return s.Forgiven },
				"forgiven_tokens_total", "Tokens that evicted keys still owed."),
			table(counter, func(s engine.Stats) uint64 { return s.NoRoom },
				"no_room_refusals_total", "Requests refused because the table had no room for their key."),
			table(counter, func(s engine.Stats) uint64 { return s.Unrecorded },
				"unrecorded_requests_total", "Requests admitted without a record because the table had no room for their key."),
			table(gauge, func(s engine.Stats) uint64 { return oneIf(s.FileLost != nil) },
				"table_file_lost", "1 if the file of the rule's table was removed, moved or replaced while it is in use, else 0."),
			table(counter, func(s engine.Stats) uint64 { return s.Reclaimed },
				"reclaimed_keys_total", "Idle keys forgotten by sweeps."),
			table(counter, func(s engine.Stats) uint64 { return s.Retries },
				"table_retries_total", "Searches of the table that started over because another request had changed it."),
		},
		leases:     leaseMetrics,
		store:      storeMetrics,
		reloadOK:   desc("reload_success", "1 if the rules that were read last are active, else 0."),
		reloadTime: desc("reload_timestamp_seconds", "When the rules were read last, in seconds since 1970; 0 for never."),
		generation: desc("reload_generation", "How often the active rules have been replaced."),
		build:      desc("build_info", "Always 1; the labels have the version.", "version", "goversion"),
	}
}

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.requests, c.reloadOK, c.reloadTime, c.generation, c.build} {
		out <- d
	}
	for _, m := range c.tables {
		out <- m.desc
	}
	for _, metrics := range [][]storeMetric{c.leases, c.store} {
		for _, m := range metrics {
			out <- m.desc
		}
	}
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	rules := c.admin.rules()
	for _, rule := range rules {
		counts := c.admin.totals(rule.Name)
		for _, o := range countedOutcomes {
			send(c.requests, prometheus.CounterValue, float64(counts[o]), rule.Name, o.String())
		}
		if rule.Stored != nil {
			stats := rule.Stored.Stats()
			for _, m := range c.leases {
				send(m.desc, m.kind, m.read(stats), rule.Name)
			}
		}
		if rule.Limiter == nil {
			continue
		}
		stats := rule.Limiter.Stats()
		for _, m := range c.tables {
			send(m.desc, m.kind, float64(m.read(stats)), rule.Name)
		}
	}
	if l := anyStored(rules); l != nil {
		stats := l.Stats()
		for _, m := range c.store {
			send(m.desc, m.kind, m.read(stats))
		}
	}
	last, success, timestamp := c.admin.reload(), 0.0, 0.0
	if last.OK || last.At.IsZero() {
		success = 1
	}
	if !last.At.IsZero() {
		timestamp = float64(last.At.UnixMilli()) / 1e3
	}
	send(c.reloadOK, prometheus.GaugeValue, success)
	send(c.reloadTime, prometheus.GaugeValue, timestamp)
	send(c.generation, prometheus.GaugeValue, float64(last.Generation))
	send(c.build, prometheus.GaugeValue, 1, c.admin.config.Version, runtime.Version())
}

// newRegistry returns a separate registry, because libraries register metrics in the default registry.
func newRegistry(a *Admin) (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	for _, c := range append([]prometheus.Collector{
		newCollector(a), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}, a.config.Collectors...) {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}
