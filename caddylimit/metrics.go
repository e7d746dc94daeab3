package caddylimit

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/caddylimit/internal/zone"
	"github.com/weir-go/weir/limits"
)

// A collector reports what the limits of a configuration have counted. The number of series of a limit does not depend
// on its number of keys.
type collector struct{ app *zone.App }

var (
	requestsDesc = prometheus.NewDesc("caddy_weir_requests_total",
		"Requests that a limit applied to, by outcome; not_taken means that another limit refused.", []string{"limit", "outcome"}, nil)
	keysDesc = prometheus.NewDesc("caddy_weir_keys",
		"Keys of a limit that were not idle at the last sweep.", []string{"limit"}, nil)
	evictedDesc = prometheus.NewDesc("caddy_weir_evicted_keys_total",
		"Keys of a limit that were evicted because there was no room although they were not idle.", []string{"limit"}, nil)
)

// Describe is called by Prometheus.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	descs <- requestsDesc
	descs <- keysDesc
	descs <- evictedDesc
}

// Collect is called by Prometheus.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	for _, use := range c.app.Uses(module) {
		for _, outcome := range []limits.Outcome{
			limits.NotTaken, limits.Allowed, limits.Refused, limits.ShadowRefused, limits.Failed,
		} {
			metrics <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(use.Counted(outcome)),
				use.Name(), outcome.String())
		}
		live, evicted := use.Keys()
		metrics <- prometheus.MustNewConstMetric(keysDesc, prometheus.GaugeValue, float64(live), use.Name())
		metrics <- prometheus.MustNewConstMetric(evictedDesc, prometheus.CounterValue, float64(evicted), use.Name())
	}
}
