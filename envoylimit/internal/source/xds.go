package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	servicev3 "github.com/envoyproxy/go-control-plane/ratelimit/service/ratelimit/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/weir-go/weir/envoylimit/config"
)

// TypeURL is the type of the resources that hold a configuration.
const TypeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// An XDS is a server that sends the state of the world, and who asks it.
type XDS struct {
	Connection grpc.ClientConnInterface
	Node       *corev3.Node
	Retry      time.Duration // from the end of a stream to the next one
	Options    config.Options
	Lost       func(error) // told when a stream has ended
}

// Watch asks for the configuration until the context ends. A configuration that is wrong is refused, so that the server
// knows, and given to the sink as an error. When a stream ends Watch asks again; what there is stays.
func (x *XDS) Watch(ctx context.Context, sink Sink) {
	version := ""
	for ctx.Err() == nil {
		err := x.stream(ctx, &version, sink)
		if ctx.Err() != nil {
			return
		}
		x.Lost(err)
		select {
		case <-ctx.Done():
		case <-time.After(x.Retry):
		}
	}
}

// stream asks in one stream until it ends. version is the one that was accepted last.
func (x *XDS) stream(ctx context.Context, version *string, sink Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := servicev3.NewRateLimitConfigDiscoveryServiceClient(x.Connection).StreamRlsConfigs(ctx)
	if err != nil {
		return err
	}
	next := &discoveryv3.DiscoveryRequest{Node: x.Node, TypeUrl: TypeURL, VersionInfo: *version}
	for {
		if err := stream.Send(next); err != nil {
			// What is wrong is told by Recv.
			if _, cause := stream.Recv(); cause != nil {
				return cause
			}
			return err
		}
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		next = &discoveryv3.DiscoveryRequest{
			Node: x.Node, TypeUrl: TypeURL, VersionInfo: *version, ResponseNonce: response.GetNonce(),
		}
		compiled, err := x.compile(response)
		if err := sink(compiled, nil, err); err != nil {
			next.ErrorDetail = &status.Status{Code: int32(codes.InvalidArgument), Message: err.Error()}
			continue
		}
		*version = response.GetVersionInfo()
		next.VersionInfo = *version
	}
}

func (x *XDS) compile(response *discoveryv3.DiscoveryResponse) (*config.Config, error) {
	if response.GetTypeUrl() != TypeURL {
		return nil, fmt.Errorf("xDS: a response of type %q: want %q", response.GetTypeUrl(), TypeURL)
	}
	var documents []*config.Document
	var wrong []error
	for i, resource := range response.GetResources() {
		message := &configv3.RateLimitConfig{}
		if err := resource.UnmarshalTo(message); err != nil {
			wrong = append(wrong, fmt.Errorf("xDS: resource %d: %w", i, err))
			continue
		}
		documents = append(documents, config.FromXDS(message))
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return config.Compile(documents, x.Options)
}
