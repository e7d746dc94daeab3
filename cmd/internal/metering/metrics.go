package metering

import (
	"maps"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// ratios has the bounds of a histogram. The histogram counts actual costs divided by held tokens.
var ratios = [...]float64{0.1, 0.25, 0.5, 0.75, 1, 1.1, 1.5, 2, 5}

type histogram struct {
	counts [len(ratios) + 1]atomic.Uint64
	sum    atomic.Uint64 // in thousandths
}

func (h *histogram) observe(ratio float64) {
	i := 0
	for i < len(ratios) && ratio > ratios[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(uint64(min(ratio, 1e9) * 1000))
}

// quantile returns the smallest bound that at least the given fraction of the observations does not exceed. If there is
// no such bound, it returns the last bound. Without observations it returns 0.
func (h *histogram) quantile(fraction float64) float64 {
	total := uint64(0)
	for i := range h.counts {
		total += h.counts[i].Load()
	}
	if total == 0 {
		return 0
	}
	cumulative := uint64(0)
	for i, bound := range ratios {
		if cumulative += h.counts[i].Load(); float64(cumulative) >= fraction*float64(total) {
			return bound
		}
	}
	return ratios[len(ratios)-1]
}

func (h *histogram) metric(rule string) prometheus.Metric {
	buckets, n := map[float64]uint64{}, uint64(0)
	for i := range h.counts {
		if n += h.counts[i].Load(); i < len(ratios) {
			buckets[ratios[i]] = n
		}
	}
	return prometheus.MustNewConstHistogram(ratioDesc, n, float64(h.sum.Load())/1000, buckets, rule)
}

var (
	settledDesc = prometheus.NewDesc("weir_tokens_settled_total",
		"Tokens that requests have cost, by source: the usage of the answer, or the policy for answers without one.", []string{"rule", "by"}, nil)
	endedDesc = prometheus.NewDesc("weir_tokens_requests_total",
		"Requests whose tokens are settled, by the source of their cost.", []string{"rule", "by"}, nil)
	heldDesc  = prometheus.NewDesc("weir_tokens_held", "Tokens that are held for requests in progress.", []string{"rule"}, nil)
	ratioDesc = prometheus.NewDesc("weir_tokens_actual_ratio",
		"What requests have cost, divided by what was held for them.", []string{"rule"}, nil)
	badDesc = prometheus.NewDesc("weir_usage_bad_fields_total",
		"Fields of usages that are not whole numbers from 0 to 10000000.", []string{"rule"}, nil)
	unreadDesc = prometheus.NewDesc("weir_usage_unread_total",
		"Answers whose usage could not be read because of their encoding.", []string{"rule"}, nil)
	warnedDesc = prometheus.NewDesc("weir_tokens_warnings_total",
		"Requests that took a key past 50, 80 or 95 percent of its limit.", []string{"rule", "percent"}, nil)
	clampedDesc = prometheus.NewDesc("weir_tokens_clamped_total",
		"Requests whose bound of the answer was lowered to what was left.", []string{"rule"}, nil)
	lostDesc = prometheus.NewDesc("weir_tokens_lost_total",
		"Tokens that were not charged because the debt of their key was at its bound.", []string{"rule"}, nil)
	bodiesDesc = prometheus.NewDesc("weir_tokens_bodies_bytes",
		"Memory that bodies of requests take, at most 256 MiB.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (s *States) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{settledDesc, endedDesc, heldDesc, ratioDesc, badDesc, unreadDesc, lostDesc, clampedDesc, warnedDesc, bodiesDesc} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (s *States) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	states := maps.Clone(s.byRule)
	s.mu.Unlock()
	if len(states) > 0 {
		out <- prometheus.MustNewConstMetric(bodiesDesc, prometheus.GaugeValue, float64(s.room.used.Load()))
	}
	for _, rule := range slices.Sorted(maps.Keys(states)) {
		st := states[rule]
		counter := func(d *prometheus.Desc, n uint64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{rule}, labels...)...)
		}
		for r, name := range reasonNames {
			counter(settledDesc, st.settled[r].Load(), name)
			counter(endedDesc, st.ended[r].Load(), name)
		}
		out <- prometheus.MustNewConstMetric(heldDesc, prometheus.GaugeValue, float64(st.heldTokens.Load()), rule)
		out <- st.ratio.metric(rule)
		counter(badDesc, st.badFields.Load())
		counter(unreadDesc, st.unread.Load())
		counter(lostDesc, st.lost.Load())
		counter(clampedDesc, st.clamped.Load())
		for i, percent := range warnings {
			counter(warnedDesc, st.warned[i].Load(), strconv.FormatUint(percent, 10))
		}
	}
}
