package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/weir-go/weir/cmd/internal/envoy/front"
	"github.com/weir-go/weir/cmd/internal/envoy/kuadrant"
	"github.com/weir-go/weir/cmd/internal/envoy/metrics"
	"github.com/weir-go/weir/internal/unixsocket"
)

func (p *program) listen(ctx context.Context, failed chan error) error {
	traced, flush, err := p.tracingFlags.handler(ctx)
	if err != nil {
		return err
	}
	if flush != nil {
		defer p.flush(flush)
	}
	server, closeFiles, err := p.grpcServer(traced)
	if err != nil {
		return err
	}
	defer closeFiles()
	var listeners listeners
	defer listeners.close()
	grpcListener, err := listeners.openGRPC(p.serveCommand)
	if err != nil {
		return err
	}
	var servers []*http.Server
	for _, h := range p.handlers() {
		l, err := listeners.open(h.address)
		if err != nil {
			return err
		}
		s := &http.Server{
			Handler: h.handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
			WriteTimeout:   2 * time.Minute, // the events of the live page set their own timeout
			MaxHeaderBytes: 64 << 10,
		}
		servers = append(servers, s)
		go func() {
			if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		}()
	}
	p.statsd(ctx)
	go (&roomWatch{program: p}).run(ctx)
	go func() {
		if err := server.Serve(grpcListener); err != nil {
			failed <- err
		}
	}()
	p.log.Info("weir-envoy answers", "grpc", grpcListener.Addr(), "http", p.Port, "debug", p.DebugPort)

	select {
	case err = <-failed:
	case <-ctx.Done():
		p.log.Info("weir-envoy stops: requests in progress are answered first")
	}
	p.setHealthy(false)
	p.page.Close() // ends the open streams, for which the server would wait; always returns nil
	p.drain(server, servers)
	return err
}

// grpcServer returns the server for Envoy, and a function that closes its files. The parameter traced is the option
// that traces calls, or nil.
func (p *program) grpcServer(traced grpc.ServerOption) (*grpc.Server, func(), error) {
	options := []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: p.GRPCMaxConnectionAge, MaxConnectionAgeGrace: p.GRPCMaxConnectionAgeGrace,
			// These settings detect a client that has gone or does not read answers.
			Time: time.Minute, Timeout: 20 * time.Second,
		}),
		grpc.ConnectionTimeout(p.GRPCConnect),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.MaxConcurrentStreams(p.GRPCMaxStreams),
		grpc.MaxRecvMsgSize(p.GRPCMaxMessage),
	}
	if p.UsePrometheus || p.UseStatsd && !p.DisableStats {
		options = append(options, grpc.UnaryInterceptor(p.calls.Intercept))
	}
	if traced != nil {
		options = append(options, traced)
	}
	closeFiles := func() {}
	if p.GRPCUseTLS {
		var settings *tls.Config
		var err error
		settings, closeFiles, err = front.TLSFiles{
			Certificate: p.GRPCCertificate, Key: p.GRPCKey, ClientCA: p.GRPCClientCA, ClientName: p.GRPCClientName,
		}.Server()
		if err != nil {
			return nil, nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(settings)))
	}
	server := grpc.NewServer(options...)
	rlsv3.RegisterRateLimitServiceServer(server, p.service)
	kuadrant.Register(server, p.service.Kuadrant())
	healthv1.RegisterHealthServer(server, p.health)
	return server, closeFiles, nil
}

type handler struct {
	address string
	handler http.Handler
}

func (p *program) handlers() []handler {
	all := []handler{
		{net.JoinHostPort(p.Host, strconv.Itoa(p.Port)), front.HTTP(p.service, p.healthy.Load)},
		{net.JoinHostPort(p.DebugHost, strconv.Itoa(p.DebugPort)), front.Debug(p.service, p.page.Handler())},
	}
	if p.UsePrometheus {
		registry := prometheus.NewRegistry()
		registry.MustRegister(metrics.Collector(p.service, p.mapping, p.calls), collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		mux := http.NewServeMux()
		mux.Handle("GET "+p.PrometheusPath, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		all = append(all, handler{p.PrometheusAddr, mux})
	}
	return all
}

type listeners []net.Listener

func (l *listeners) open(address string) (net.Listener, error) {
	opened, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	*l = append(*l, opened)
	return opened, nil
}

// socketMode is the mode of the socket of envoyproxy/ratelimit if the umask is the usual one.
const socketMode = 0o755

func (l *listeners) openGRPC(c *serveCommand) (net.Listener, error) {
	if c.GRPCUDS == "" {
		return l.open(net.JoinHostPort(c.GRPCHost, strconv.Itoa(c.GRPCPort)))
	}
	opened, err := unixsocket.Listen(c.GRPCUDS, socketMode)
	if err != nil {
		return nil, fmt.Errorf("GRPC_UDS=%s: %w", c.GRPCUDS, err)
	}
	*l = append(*l, opened)
	return opened, nil
}

func (l *listeners) close() {
	for _, one := range *l {
		one.Close()
	}
}

func (p *program) flush(send func(context.Context) error) {
	ctx, cancel := p.left()
	defer cancel()
	if err := send(ctx); err != nil {
		p.log.Warn("the last spans were not sent", "error", err)
	}
}

// drain ends the servers when their requests have been answered, or when the time of DRAIN is over.
func (p *program) drain(server *grpc.Server, servers []*http.Server) {
	ctx, cancel := p.left()
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); server.GracefulStop() }()
	select {
	case <-done:
	case <-ctx.Done():
		server.Stop()
	}
	for _, s := range servers {
		_ = s.Shutdown(ctx)
	}
}

func (p *program) statsd(ctx context.Context) {
	if !p.UseStatsd || p.DisableStats {
		return
	}
	s := &metrics.Statsd{
		Network: p.StatsdProtocol, Address: net.JoinHostPort(p.StatsdHost, strconv.Itoa(p.StatsdPort)),
		Every: p.StatsFlushInterval, Tags: p.ExtraTags,
		Failed: func(err error) { p.log.Warn("statistics are not sent", "error", err) },
	}
	go s.Run(ctx, metrics.Counters(p.service, p.calls), p.calls.Times)
}
