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

func (p *program) listen(ctx context.Context, errs chan error) error {
	tracing, flush, err := p.tracingFlags.serverOption(ctx)
	if err != nil {
		return err
	}
	if flush != nil {
		defer p.flushSpans(flush)
	}
	server, closeFiles, err := p.grpcServer(tracing)
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
				errs <- err
			}
		}()
	}
	p.startStatsd(ctx)
	go (&roomWatch{program: p}).run(ctx)
	go func() {
		if err := server.Serve(grpcListener); err != nil {
			errs <- err
		}
	}()
	p.log.Info("weir-envoy answers", "grpc", grpcListener.Addr(), "http", p.Port, "debug", p.DebugPort)

	select {
	case err = <-errs:
	case <-ctx.Done():
		p.log.Info("weir-envoy stops: requests in progress are answered first")
	}
	p.setHealthy(false)
	p.page.Close() // ends the open streams, for which the server would wait; always returns nil
	p.drain(server, servers)
	return err
}

// grpcServer returns the server for Envoy, and a function that closes its files. The parameter tracing is the option
// that traces calls, or nil.
func (p *program) grpcServer(tracing grpc.ServerOption) (*grpc.Server, func(), error) {
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
	if tracing != nil {
		options = append(options, tracing)
	}
	closeFiles := func() {}
	if p.GRPCUseTLS {
		var config *tls.Config
		var err error
		config, closeFiles, err = front.TLSFiles{
			Certificate: p.GRPCCertificate, Key: p.GRPCKey, ClientCA: p.GRPCClientCA, ClientName: p.GRPCClientName,
		}.Server()
		if err != nil {
			return nil, nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
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
	handlers := []handler{
		{net.JoinHostPort(p.Host, strconv.Itoa(p.Port)), front.HTTP(p.service, p.healthy.Load)},
		{net.JoinHostPort(p.DebugHost, strconv.Itoa(p.DebugPort)), front.Debug(p.service, p.page.Handler())},
	}
	if p.UsePrometheus {
		registry := prometheus.NewRegistry()
		registry.MustRegister(metrics.Collector(p.service, p.mapping, p.calls), collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		mux := http.NewServeMux()
		mux.Handle("GET "+p.PrometheusPath, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		handlers = append(handlers, handler{p.PrometheusAddr, mux})
	}
	return handlers
}

type listeners []net.Listener

func (l *listeners) open(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	*l = append(*l, listener)
	return listener, nil
}

// socketMode is the mode of the socket of envoyproxy/ratelimit if the umask is the usual one.
const socketMode = 0o755

func (l *listeners) openGRPC(c *serveCommand) (net.Listener, error) {
	if c.GRPCUDS == "" {
		return l.open(net.JoinHostPort(c.GRPCHost, strconv.Itoa(c.GRPCPort)))
	}
	listener, err := unixsocket.Listen(c.GRPCUDS, socketMode)
	if err != nil {
		return nil, fmt.Errorf("GRPC_UDS=%s: %w", c.GRPCUDS, err)
	}
	*l = append(*l, listener)
	return listener, nil
}

func (l *listeners) close() {
	for _, listener := range *l {
		listener.Close()
	}
}

func (p *program) flushSpans(send func(context.Context) error) {
	ctx, cancel := p.drainContext()
	defer cancel()
	if err := send(ctx); err != nil {
		p.log.Warn("the last spans were not sent", "error", err)
	}
}

// drain ends the servers when their requests have been answered, or when the time of DRAIN is over.
func (p *program) drain(server *grpc.Server, servers []*http.Server) {
	ctx, cancel := p.drainContext()
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

func (p *program) startStatsd(ctx context.Context) {
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
