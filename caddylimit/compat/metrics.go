package compat

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/caddylimit/internal/zone"
	"github.com/weir-go/weir/limits"
)

// metrics contains the metrics of one configuration, under the names of the original. The original's label key is
// missing, because its value differs for every client. So the number of series does not depend on the clients.
type metrics struct{ zones []shownZone }

type shownZone struct {
	use    *zone.Use
	config []string // values of the labels for the configuration
	times  *prometheus.HistogramVec
}

var (
	requestsDesc = prometheus.NewDesc("caddy_rate_limit_requests_total", "Requests that were checked against a zone.", []string{"zone"}, nil)
	declinedDesc = prometheus.NewDesc("caddy_rate_limit_declined_requests_total", "Requests that a zone refused.", []string{"zone"}, nil)
	keysDesc     = prometheus.NewDesc("caddy_rate_limit_keys_total", "Keys of a zone that were not idle at the last sweep.", []string{"zone"}, nil)
	configDesc   = prometheus.NewDesc("caddy_rate_limit_config", "Always 1; the labels have the numbers of a zone.",
		[]string{"zone", "max_events", "window", "ipv4_prefix", "ipv6_prefix"}, nil)
)

func newMetrics() *metrics { return new(metrics) }

// newTime returns the histogram of a zone, which the zone keeps across configurations.
func newTime() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "caddy_rate_limit_process_time_seconds", Help: "Time that the decision on a request took.",
		Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1},
	}, []string{"zone"})
}

// show adds a zone once, and returns the observer of its decision times.
func (m *metrics) show(use *zone.Use, l *RateLimit) prometheus.Observer {
	times := zone.Kept(use.Zone, newTime)
	if !slices.ContainsFunc(m.zones, func(s shownZone) bool { return s.use == use }) {
		m.zones = append(m.zones, shownZone{use, []string{use.Name(), strconv.Itoa(l.MaxEvents), time.Duration(l.Window).String(),
			strconv.Itoa(l.IPv4Prefix), strconv.Itoa(l.IPv6Prefix)}, times})
	}
	return times.WithLabelValues(use.Name())
}

// Describe is called by Prometheus.
func (m *metrics) Describe(descs chan<- *prometheus.Desc) {
	newTime().Describe(descs)
	for _, desc := range []*prometheus.Desc{requestsDesc, declinedDesc, keysDesc, configDesc} {
		descs <- desc
	}
}

// Collect is called by Prometheus, after the configuration was provisioned.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	for _, s := range m.zones {
		s.times.Collect(ch)
		name, requests := s.use.Name(), uint64(0)
		for _, o := range []limits.Outcome{limits.NotTaken, limits.Allowed, limits.Refused, limits.Failed} {
			requests += s.use.Counted(o)
		}
		live, _ := s.use.Keys()
		ch <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(requests), name)
		ch <- prometheus.MustNewConstMetric(declinedDesc, prometheus.CounterValue, float64(s.use.Counted(limits.Refused)), name)
		ch <- prometheus.MustNewConstMetric(keysDesc, prometheus.GaugeValue, float64(live), name)
		ch <- prometheus.MustNewConstMetric(configDesc, prometheus.CounterValue, 1, s.config...)
	}
}
