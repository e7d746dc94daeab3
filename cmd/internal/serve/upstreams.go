package serve

import (
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/proxy"
	"github.com/weir-go/weir/cmd/internal/rulefile"
)

func (g *generation) upstream(u *rulefile.Upstream) *proxy.Upstream {
	return &proxy.Upstream{
		Servers: u.Servers,
		Forwarding: proxy.Forwarding{
			Trusted: g.file.TrustedProxies, Headers: slices.Collect(g.file.ProxyHeaders), Client: g.ip.Addr, Pass: u.PassHeaders,
		},
		Fail: func(w http.ResponseWriter, r *http.Request, f proxy.Failure) {
			exchangeOf(r).reachedUpstream = !f.Unsent
			if f.Expired {
				exchangeOf(r).answeredBy = byWeir
				failGRPC(w, grpcDeadlineExceeded, f.Detail)
				return
			}
			fail(w, r, g.file.Response.Body, f.Status, f.Detail)
		},
	}
}

type upstreamHandler struct{ *proxy.Proxy }

func (p upstreamHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.MayBeSilent(r) {
		exchangeOf(r).body.Unbound()
	}
	exchangeOf(r).reachedUpstream = true
	p.Proxy.ServeHTTP(w, r)
}

func (s *Server) pageUpstreams() (upstreams []admin.Upstream) {
	g := s.enter()
	if g == nil {
		return nil
	}
	defer g.leave()
	if g.upstreams != nil {
		for _, u := range g.upstreams.Servers() {
			upstreams = append(upstreams, admin.Upstream(u))
		}
	}
	return upstreams
}

type upstreamCollector struct{ server *Server }

var (
	upstreamUp = prometheus.NewDesc("weir_upstream_up",
		"1 if the server is used; 0 after failed checks, and from a failed connection until it answers again.", []string{"upstream"}, nil)
	upstreamInFlight = prometheus.NewDesc("weir_upstream_requests_in_flight",
		"Requests in progress at the server.", []string{"upstream"}, nil)
)

func (c *upstreamCollector) Describe(out chan<- *prometheus.Desc) {
	out <- upstreamUp
	out <- upstreamInFlight
}

func (c *upstreamCollector) Collect(out chan<- prometheus.Metric) {
	for _, u := range c.server.pageUpstreams() {
		up := 0.0
		if u.Up {
			up = 1
		}
		out <- prometheus.MustNewConstMetric(upstreamUp, prometheus.GaugeValue, up, u.Name)
		out <- prometheus.MustNewConstMetric(upstreamInFlight, prometheus.GaugeValue, float64(u.InFlight), u.Name)
	}
}
