package serve

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/cmd/internal/admin"
)

// shownUpstreams returns the servers of the present generation's upstreams, by name. One that several upstreams have is
// up if it is for all of them.
func (s *Server) shownUpstreams() (all []admin.Upstream) {
	g := s.enter()
	if g == nil {
		return nil
	}
	defer g.leave()
	for _, p := range g.pools {
		for _, m := range p.value.members {
			shown := admin.Upstream{Name: m.name, Up: m.isUp(), InFlight: m.inFlight.Load()}
			i := slices.IndexFunc(all, func(u admin.Upstream) bool { return u.Name == m.name })
			if i < 0 {
				all = append(all, shown)
				continue
			}
			all[i].Up = all[i].Up && shown.Up
			all[i].InFlight += shown.InFlight
		}
	}
	slices.SortFunc(all, func(a, b admin.Upstream) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// An upstreamCollector tells Prometheus how the servers of the upstreams do.
type upstreamCollector struct{ server *Server }

var (
	upstreamUp = prometheus.NewDesc("weir_upstream_up",
		"1 if the server is used, 0 after checks that failed, and after a connection that failed until it answers.", []string{"upstream"}, nil)
	upstreamInFlight = prometheus.NewDesc("weir_upstream_requests_in_flight",
		"Requests that the server has not answered to the end.", []string{"upstream"}, nil)
)

// Describe implements [prometheus.Collector].
func (c *upstreamCollector) Describe(out chan<- *prometheus.Desc) {
	out <- upstreamUp
	out <- upstreamInFlight
}

// Collect implements [prometheus.Collector].
func (c *upstreamCollector) Collect(out chan<- prometheus.Metric) {
	for _, u := range c.server.shownUpstreams() {
		up := 0.0
		if u.Up {
			up = 1
		}
		out <- prometheus.MustNewConstMetric(upstreamUp, prometheus.GaugeValue, up, u.Name)
		out <- prometheus.MustNewConstMetric(upstreamInFlight, prometheus.GaugeValue, float64(u.InFlight), u.Name)
	}
}
