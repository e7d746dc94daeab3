package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/internal/spelling"
	"github.com/weir-go/weir/internal/version"

	"github.com/weir-go/weir/cmd/internal/envoy"
	"github.com/weir-go/weir/cmd/internal/envoy/live"
	"github.com/weir-go/weir/cmd/internal/envoy/metrics"
)

// healthService is the name of the service in the gRPC health check of envoyproxy/ratelimit.
const healthService = "ratelimit"

// Run serves until SIGINT or SIGTERM.
func (c *serveCommand) Run() error {
	if err := refusedVariables(os.Environ()); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return c.serve(ctx, os.Stderr)
}

// A program is the server with everything that it has opened.
type program struct {
	*serveCommand
	log        *slog.Logger
	service    *envoy.Service
	page       *live.Page
	health     *health.Server
	healthy    atomic.Bool
	configured chan struct{} // closed when the first configuration is active
	hasConfig  atomic.Bool
	mapping    *metrics.Mapping
	calls      *metrics.Calls
	drainEnd   time.Time // the time at which DRAIN is over; zero before the program stops
}

func (c *serveCommand) serve(ctx context.Context, stderr *os.File) error {
	log, err := c.logger(stderr)
	if err != nil {
		return err
	}
	options := c.options()
	for _, v := range ignoredVariables(os.Environ()) {
		log.Warn(v.name+" is set, but it has no effect", "reason", v.text)
	}
	stores, err := c.storeFlags.open(ctx, log, os.Environ())
	if ctx.Err() != nil {
		stores.close()
		return nil
	}
	if err != nil {
		return err
	}
	defer stores.close()
	options.Store, options.PerSecondStore, options.Log = stores.general, stores.perSecond, log
	p := &program{serveCommand: c, log: log, health: health.NewServer(), configured: make(chan struct{})}
	p.setHealthy(!c.HealthyWithAtLeastOneConfigLoaded)
	p.page = live.New(p.pageOptions())
	options.Observer = p.page
	if p.service, err = envoy.New(options); err != nil {
		return err
	}
	defer p.close()
	if p.mapping, err = c.readMapping(log); err != nil {
		return err
	}
	if p.calls = metrics.NewCalls(p.mapping); c.UseStatsd && !c.DisableStats {
		p.calls.ForStatsd()
	}
	if err := p.page.Show(p.service, metrics.Collector(p.service, p.mapping, p.calls)); err != nil {
		return err
	}
	defer p.page.Close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, 8)
	if err := p.watchConfig(ctx, errs); err != nil {
		return err
	}
	if !c.ForceStartWithoutInitialConfig {
		select {
		case <-p.configured:
		case err := <-errs:
			return err
		case <-ctx.Done():
			return nil
		}
	}
	return p.listen(ctx, errs)
}

// drainContext returns a context that ends when the time of DRAIN is over. This time begins at the first call of
// drainContext.
func (p *program) drainContext() (context.Context, context.CancelFunc) {
	if p.drainEnd.IsZero() {
		p.drainEnd = time.Now().Add(p.Drain)
	}
	return context.WithDeadline(context.Background(), p.drainEnd)
}

// close charges the stores with everything that was admitted without them. Then it closes the service.
func (p *program) close() {
	ctx, cancel := p.drainContext()
	defer cancel()
	if err := p.service.Settle(ctx); err != nil {
		p.log.Warn("requests that were admitted without the store are not charged to it", "error", err)
	}
	_ = p.service.Close() // the error has been reported
}

// readMapping reads the mapping of metrics. It is no error if the file is missing, because Envoy Gateway names a file
// that may be missing.
func (c *serveCommand) readMapping(log *slog.Logger) (*metrics.Mapping, error) {
	if c.PrometheusMapper == "" {
		return metrics.DefaultMapping(c.PrometheusMilliseconds)
	}
	m, err := metrics.MappingOf(c.PrometheusMapper)
	if errors.Is(err, metrics.ErrNoMapping) {
		log.Warn("the file PROMETHEUS_MAPPER_YAML does not exist: metrics have the default names", "error", err)
		return metrics.DefaultMapping(c.PrometheusMilliseconds)
	}
	return m, err
}

func (p *program) pageOptions() live.Options {
	return live.Options{
		Version: version.Of(version.Info()), Keys: admin.Keys(p.DebugKeys), Reset: p.DebugReset, Pprof: p.DebugPprof,
		Hosts: hosts(p.DebugHosts), ShadowMode: p.ShadowMode,
		Ready: func() error {
			if !p.healthy.Load() {
				return errors.New("not healthy: no rules, or stopping")
			}
			return nil
		},
	}
}

// hosts returns names in the form of a Host header, without a port.
func hosts(names []string) (hosts []string) {
	for _, name := range names {
		hosts = append(hosts, spelling.Host(name))
	}
	return hosts
}

func (p *program) setHealthy(healthy bool) {
	p.healthy.Store(healthy)
	status := healthv1.HealthCheckResponse_NOT_SERVING
	if healthy {
		status = healthv1.HealthCheckResponse_SERVING
	}
	p.health.SetServingStatus(healthService, status)
	p.health.SetServingStatus("", status)
}
