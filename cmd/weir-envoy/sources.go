package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
	"github.com/weir-go/weir/cmd/internal/envoy/source"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

func (p *program) watchConfig(ctx context.Context, errs chan<- error) error {
	options := config.Options{MergeDomains: p.MergeDomainConfig}
	if p.ConfigType == "FILE" {
		directory := filepath.Join(p.RuntimeRoot, p.RuntimeSubdirectory, p.RuntimeAppdirectory)
		if _, err := os.Stat(directory); err != nil && !p.ForceStartWithoutInitialConfig {
			return fmt.Errorf("%w: set RUNTIME_ROOT, RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY to where the rules are", err)
		}
		go func() {
			if err := source.Watch(ctx, directory, options, p.applyConfig); err != nil {
				errs <- err
			}
		}()
		return nil
	}
	connection, err := p.dialXDS() // a mistake in the settings is a reason not to start
	if err != nil {
		return err
	}
	connection.Close()
	x := &source.XDS{
		Dial: p.dialXDS, Node: p.node(), Options: options,
		Backoff: source.Backoff{
			Initial: p.XDSBackoffInitial, Max: p.XDSBackoffMax, Factor: p.XDSBackoffFactor, Jitter: p.XDSBackoffJitter,
		},
		Lost: func(err error, retry time.Duration) {
			p.log.Warn("the xDS server is lost; the rules stay active", "server", p.XDSServer, "retry", retry, "error", err)
		},
	}
	go x.Watch(ctx, p.applyConfig)
	return nil
}

func (p *program) applyConfig(c *config.Config, warnings []*yamlfile.Error, err error) error {
	for _, warning := range warnings {
		p.log.Warn("in the rules", "warning", warning)
	}
	if err != nil {
		p.service.ConfigFailed()
	} else {
		err = p.service.SetConfig(c)
	}
	p.page.Reloaded(err)
	if err != nil {
		text := "the rules were not loaded"
		if p.hasConfig.Load() {
			text += "; the previous ones stay active"
		}
		p.log.Error(text, "error", err)
		return err
	}
	p.log.Info("the rules were loaded", "domains", c.Domains(), "rules", len(c.Rules()))
	if p.HealthyWithAtLeastOneConfigLoaded {
		p.setHealthy(c.Domains() > 0)
	}
	if !p.hasConfig.Swap(true) {
		close(p.configured)
	}
	return nil
}

// dialXDS returns a connection to the server of configurations. The first call opens it.
func (p *program) dialXDS() (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if p.XDSUseTLS {
		settings, err := clientTLS(p.XDSCertificate, p.XDSKey, p.XDSCA, p.XDSName)
		if err != nil {
			return nil, fmt.Errorf("the TLS files of CONFIG_GRPC_XDS_SERVER_URL=%s: %w", p.XDSServer, err)
		}
		transport = credentials.NewTLS(settings)
	}
	maxMessage := p.XDSMaxMessage
	if maxMessage == 0 {
		maxMessage = source.MaxConfig
	}
	connection, err := grpc.NewClient(p.XDSServer,
		grpc.WithTransportCredentials(transport),
		// Keepalive detects a server that disappeared without closing the connection. The time is above five minutes,
		// because by default servers end connections that ping more often.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 20 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
			streamer grpc.Streamer, opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			return streamer(metadata.NewOutgoingContext(ctx, metadata.New(p.XDSHeaders)), desc, cc, method, opts...)
		}))
	if err != nil {
		return nil, fmt.Errorf("CONFIG_GRPC_XDS_SERVER_URL=%s: %w", p.XDSServer, err)
	}
	return connection, nil
}

func (p *program) node() *corev3.Node {
	node := &corev3.Node{Id: p.XDSNode, Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{}}}
	for key, value := range p.XDSMetadata {
		node.Metadata.Fields[key] = structpb.NewStringValue(value)
	}
	return node
}
