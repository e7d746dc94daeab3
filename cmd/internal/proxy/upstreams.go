package proxy

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-go/weir/cmd/internal/refcount"
)

// Config has the settings of [Upstreams].
type Config struct {
	Base    context.Context  // when it ends, requests that continue without their clients end, too
	Now     func() time.Time // decides how long failed servers are skipped; nil means the system's time
	Buckets []float64        // bounds of the histogram of the time until the header of an answer, in seconds
	Log     *slog.Logger
	// Transport is only for tests. It gets the transport of a server, and returns a replacement. nil replaces nothing.
	Transport func(Target, http.RoundTripper) http.RoundTripper
}

// Upstreams has the connections and servers that the proxies of all configurations share.
type Upstreams struct {
	config   Config
	conns    connCount
	failed   atomic.Uint64
	header   *prometheus.HistogramVec
	failures *prometheus.CounterVec
	retries  prometheus.Counter
}

// New returns Upstreams without servers. [Upstreams.Open] adds servers.
func New(c Config) *Upstreams {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Upstreams{
		config: c,
		header: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_upstream_header_seconds", Buckets: c.Buckets,
			Help: "Time from sending a request to the header of the upstream's answer.",
		}, []string{"upstream"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_upstream_failures_total",
			Help: "Admitted requests that failed because of the upstream.",
		}, []string{"upstream", "reason"}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_upstream_retries_total",
			Help: "Requests that were sent again: no connection to a server could be made, it refused them unread, or it " +
				"closed a kept connection without an answer.",
		}),
	}
}

// Bound sets the largest number of connections; 0 means no bound.
func (u *Upstreams) Bound(limit int64) { u.conns.limit.Store(limit) }

// Connections returns the number of open connections.
func (u *Upstreams) Connections() int64 { return u.conns.open.Load() }

// Failures returns how many requests failed because of their upstream.
func (u *Upstreams) Failures() uint64 { return u.failed.Load() }

// Collectors returns the metrics of upstreams.
func (u *Upstreams) Collectors() []prometheus.Collector {
	return []prometheus.Collector{u.header, u.failures, u.retries, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_upstream_connections", Help: "Open connections to upstreams.",
	}, func() float64 { return float64(u.Connections()) })}
}

// A Set has the upstreams of one configuration.
type Set struct {
	transports map[transportKey]*refcount.Value[*http.Transport]
	pools      map[poolKey]*refcount.Value[*pool]
}

// Open returns a Set, and a proxy for each upstream in the same order. The parameter prev is the previous Set, or
// nil. Servers in both Sets keep their connections and their state. The caller must close the new Set.
func (u *Upstreams) Open(prev *Set, upstreams []*Upstream) (*Set, []*Proxy) {
	if prev == nil {
		prev = &Set{}
	}
	s := &Set{
		transports: map[transportKey]*refcount.Value[*http.Transport]{}, pools: map[poolKey]*refcount.Value[*pool]{},
	}
	proxies := make([]*Proxy, len(upstreams))
	for i, upstream := range upstreams {
		proxies[i] = u.newProxy(upstream, u.pool(s, prev, upstream))
	}
	return s, proxies
}

// pool returns the existing pool of an upstream, or else a new one.
func (u *Upstreams) pool(s, prev *Set, upstream *Upstream) *pool {
	members := make([]*member, len(upstream.Targets))
	for i, t := range upstream.Targets { // even if there is a pool, because the Set must keep its connections
		members[i] = &member{Target: t, transport: u.transport(s, prev, upstream, t), seconds: u.header.WithLabelValues(t.String())}
	}
	key := poolOf(upstream)
	if s.pools[key] == nil {
		if p := prev.pools[key]; p != nil {
			s.pools[key] = p.Acquire()
		} else {
			s.pools[key] = refcount.New(u.newPool(upstream, members), (*pool).close)
		}
	}
	return s.pools[key].Value
}

// transport returns the existing connections to a server, or else new ones.
func (u *Upstreams) transport(s, prev *Set, upstream *Upstream, t Target) http.RoundTripper {
	key := transportOf(upstream, t)
	if s.transports[key] == nil {
		if t := prev.transports[key]; t != nil {
			s.transports[key] = t.Acquire()
		} else {
			s.transports[key] = refcount.New(key.newTransport(&u.conns), (*http.Transport).CloseIdleConnections)
		}
	}
	if u.config.Transport != nil {
		return u.config.Transport(t, s.transports[key].Value)
	}
	return s.transports[key].Value
}

// Close closes the connections and servers that no other Set uses. After Close, this Set must get no request.
func (s *Set) Close() {
	for _, p := range s.pools { // before the connections, because the health checks use them
		p.Release()
	}
	for _, t := range s.transports {
		t.Release()
	}
}

// A Server is the state of one server.
type Server struct {
	Name     string
	Up       bool
	InFlight int64   // requests in progress
	Answered uint64  // requests that it answered since the program started
	Failed   uint64  // requests that it did not serve, since it has been an upstream
	Seconds  float64 // total time until the headers of its answers
}

// Servers returns the servers of all upstreams, by name. If several upstreams use a server, it counts as up only if it
// is up for all of them.
func (s *Set) Servers() (servers []Server) {
	for _, p := range s.pools {
		for _, m := range p.Value.members {
			state := m.serverState()
			i := slices.IndexFunc(servers, func(u Server) bool { return u.Name == m.Target.String() })
			if i < 0 {
				servers = append(servers, state)
				continue
			}
			servers[i].Up = servers[i].Up && state.Up
			servers[i].InFlight += state.InFlight
			servers[i].Failed += state.Failed
		}
	}
	slices.SortFunc(servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	return servers
}

// serverState returns the state of the server. If several members have the same name, they share the histogram of
// answers and times.
func (m *member) serverState() Server {
	s := Server{Name: m.Target.String(), Up: m.isUp(), InFlight: m.inFlight.Load(), Failed: m.failed.Load()}
	var sample dto.Metric
	if metric, ok := m.seconds.(prometheus.Metric); ok && metric.Write(&sample) == nil {
		s.Answered, s.Seconds = sample.GetHistogram().GetSampleCount(), sample.GetHistogram().GetSampleSum()
	}
	return s
}
