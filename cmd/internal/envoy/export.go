package envoy

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weir-go/weir/redislimit"
)

// A Counter is one of the service's statistics, under envoyproxy/ratelimit's name.
type Counter struct {
	Name  string // such as "ratelimit.service.rate_limit.domain.key.total_hits"
	Value uint64
	Gauge bool // the value may fall; values of other counters only grow
}

// Counters returns all counters, sorted by name.
func (s *Service) Counters() []Counter {
	const service = "ratelimit.service."
	counters := []Counter{
		{Name: service + "config_load_success", Value: s.stats.ConfigLoadSuccess.Load()},
		{Name: service + "config_load_error", Value: s.stats.ConfigLoadError.Load()},
		{Name: service + "call.should_rate_limit.redis_error", Value: s.stats.StoreErrors.Load()},
		{Name: service + "call.should_rate_limit.service_error", Value: s.stats.ServiceErrors.Load()},
		{Name: service + "without_store", Value: s.stats.WithoutStore.Load()},
		{Name: service + "global_shadow_mode", Value: s.stats.GlobalShadowMode.Load()},
		{Name: service + "stats_dropped", Value: s.stats.Dropped.Load()},
	}
	s.stats.names.Range(func(name, value any) bool {
		counts, prefix := value.(*ruleStats), service+"rate_limit."+name.(statName).text
		if name.(statName).isDomain {
			counters = append(counters, Counter{Name: prefix + domainNotFound, Value: counts.totalHits.Load()})
			return true
		}
		counters = append(counters,
			Counter{Name: prefix + ".total_hits", Value: counts.totalHits.Load()},
			Counter{Name: prefix + ".over_limit", Value: counts.overLimit.Load()},
			Counter{Name: prefix + ".near_limit", Value: counts.nearLimit.Load()},
			Counter{Name: prefix + ".within_limit", Value: counts.withinLimit.Load()},
			Counter{Name: prefix + ".over_limit_with_local_cache", Value: counts.fromMemo.Load()},
			Counter{Name: prefix + ".shadow_mode", Value: counts.shadowMode.Load()},
		)
		return true
	})
	counters = append(counters, s.memo.counters(s.now())...)
	for _, store := range s.Stores() {
		pool, health := "ratelimit."+store.Pool, store.Health
		counters = append(counters, Counter{Name: pool + ".cx_active", Value: uint64(health.Opened - health.Closed), Gauge: true},
			Counter{Name: pool + ".cx_total", Value: uint64(health.Opened)},
			Counter{Name: pool + ".cx_local_close", Value: uint64(health.Closed)})
	}
	slices.SortFunc(counters, func(a, b Counter) int { return strings.Compare(a.Name, b.Name) })
	return counters
}

// A Store describes a store of counters.
type Store struct {
	Pool   string // envoyproxy/ratelimit's name for the connections: redis_pool or redis_per_second_pool
	Health redislimit.Health
}

// Stores returns the store and, if there is one, the separate store of the limits per second. If counters are in
// memory, it returns nil.
func (s *Service) Stores() (stores []Store) {
	if o := s.options; o.Store != nil {
		stores = append(stores, Store{"redis_pool", o.Store.Health()})
	}
	if o := s.options; o.PerSecondStore != nil {
		stores = append(stores, Store{"redis_per_second_pool", o.PerSecondStore.Health()})
	}
	return stores
}

// A Table describes a limiter of the service for operators.
type Table struct {
	Name      string // such as "fixed window of 1m0s"
	Keys      uint64 // live counters, as of the last sweep
	Slots     uint64 // slots of the table, which is made so that MaxKeys counters fill 0.6 of it
	Evictions uint64 // counters that were dropped to make room for others, although they still counted
	NoRoom    uint64 // requests refused because there was no room for their counter
	Bytes     uint64 // memory
}

// Tables returns the tables, sorted by algorithm, then by the length of their windows.
func (s *Service) Tables() []Table {
	var tables []Table
	stats := s.tables.stats()
	slices.SortFunc(stats, func(a, b tableStats) int {
		return cmp.Or(cmp.Compare(a.Kind.Algorithm, b.Kind.Algorithm), cmp.Compare(a.Kind.Window, b.Kind.Window),
			strings.Compare(a.name(), b.name()))
	})
	for _, t := range stats {
		tables = append(tables, Table{
			Name: t.name(), Keys: t.Stats.Keys, Slots: t.Stats.Slots, Evictions: t.Stats.Evictions, NoRoom: t.Stats.NoRoom,
			Bytes: t.Stats.Bytes,
		})
	}
	return tables
}

// Loaded reports whether there is a configuration, and whether it has a domain.
func (s *Service) Loaded() (loaded, domains bool) {
	current := s.active.Load()
	return current != nil, current != nil && current.config.Domains() > 0
}

// WriteRules writes one line for each rule, as envoyproxy/ratelimit's /rlconfig does.
func (s *Service) WriteRules(w io.Writer) error {
	current := s.active.Load()
	if current == nil {
		return nil
	}
	for _, r := range current.config.Rules() {
		if _, err := fmt.Fprintf(w, "%s: unit=%s requests_per_unit=%d, shadow_mode: %t, quota_mode: %t\n",
			r.Stat, r.Limit.Unit, r.Limit.Requests, r.ShadowMode, r.QuotaMode); err != nil {
			return err
		}
	}
	return nil
}
