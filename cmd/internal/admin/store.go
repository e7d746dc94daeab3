package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/redislimit"
)

// A storeMetric is one number of a limit in a store, or of the store.
type storeMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(redislimit.Stats) float64
}

func newStoreMetric(kind prometheus.ValueType, name, help string, read func(redislimit.Stats) float64,
	labels ...string) storeMetric {
	return storeMetric{prometheus.NewDesc("weir_"+name, help, labels, nil), kind, read}
}

var leaseMetrics = []storeMetric{
	newStoreMetric(prometheus.GaugeValue, "rule_leases", "Keys whose tokens this process has taken in advance.",
		func(s redislimit.Stats) float64 { return float64(s.Leases) }, "rule"),
	newStoreMetric(prometheus.GaugeValue, "rule_tokens_held",
		"Tokens in hand that the store has charged and no request has used.",
		func(s redislimit.Stats) float64 { return float64(s.Held) }, "rule"),
	newStoreMetric(prometheus.GaugeValue, "rule_debt", "Tokens admitted that the store has not charged yet.",
		func(s redislimit.Stats) float64 { return float64(s.Debt) }, "rule"),
	newStoreMetric(prometheus.CounterValue, "rule_store_fallbacks_total",
		"Decisions that the store failed to make, made by on_loss.",
		func(s redislimit.Stats) float64 { return float64(s.Fallbacks) }, "rule"),
	newStoreMetric(prometheus.GaugeValue, "rule_store_differs",
		"1 if another machine had another limit or other settings of the store within the last minute, else 0.",
		func(s redislimit.Stats) float64 { return float64(oneIf(s.Differs != "")) }, "rule"),
}

var storeMetrics = []storeMetric{
	newStoreMetric(prometheus.GaugeValue, "store_lost_parts",
		"Parts of the store that do not answer; 0 or 1 for one server.",
		func(s redislimit.Stats) float64 { return float64(s.Store.Lost) }),
	newStoreMetric(prometheus.CounterValue, "store_calls_total", "Calls to the store, of up to 64 keys each.",
		func(s redislimit.Stats) float64 { return float64(s.Store.Calls) }),
	newStoreMetric(prometheus.CounterValue, "store_failures_total",
		"Calls to the store that failed, including timeouts.",
		func(s redislimit.Stats) float64 { return float64(s.Store.Failures) }),
	newStoreMetric(prometheus.GaugeValue, "store_last_failure_timestamp_seconds",
		"When a call to the store failed last, in seconds since 1970; 0 for never. The error is in state.json and the log.",
		func(s redislimit.Stats) float64 { return unixSeconds(s.Store.LastErrorAt) }),
	newStoreMetric(prometheus.CounterValue, "store_timeouts_total", "Calls to the store that timed out.",
		func(s redislimit.Stats) float64 { return float64(s.Store.Timeouts) }),
}

func unixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

func anyStored(rules []Rule) *redislimit.Limiter {
	for _, r := range rules {
		if r.Stored != nil {
			return r.Stored
		}
	}
	return nil
}

// A leaseView is this machine's state of a limit in a store.
type leaseView struct {
	Keys      int    `json:"keys"`
	Held      uint64 `json:"held"` // leased tokens that this machine has left
	Debt      uint64 `json:"debt"`
	Fallbacks int64  `json:"fallbacks"` // decisions by OnLoss
	OnLoss    string `json:"on_loss"`
	Differs   string `json:"differs,omitempty"` // another machine's limit and settings, if they differ
}

type storeView struct {
	Parts    int   `json:"parts"`
	Lost     int   `json:"lost"`
	Calls    int64 `json:"calls"`
	Failures int64 `json:"failures"`
	Timeouts int64 `json:"timeouts"`

	LastError string `json:"last_error,omitempty"`
}

func modeOf(r Rule) string {
	if r.Stored == nil {
		return "local"
	}
	return r.Stored.Mode().String()
}

func leasesOf(r Rule) *leaseView {
	if r.Stored == nil {
		return nil
	}
	s := r.Stored.Stats()
	return &leaseView{Keys: s.Leases, Held: s.Held, Debt: s.Debt, Fallbacks: s.Fallbacks, OnLoss: s.OnLoss.String(), Differs: s.Differs}
}

func storeOf(rules []Rule) *storeView {
	l := anyStored(rules)
	if l == nil {
		return nil
	}
	stats := l.Stats().Store
	return &storeView{
		Parts: stats.Parts, Lost: stats.Lost, Calls: stats.Calls, Failures: stats.Failures, Timeouts: stats.Timeouts, LastError: stats.LastError,
	}
}
