package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

// An XDS is a client of the aggregated discovery service (ADS), in the variant "state of the world": each response has
// all resources.
type XDS struct {
	// Dial opens a connection for one stream. The connection is closed with the stream. A new connection starts without
	// gRPC's backoff and with renewed certificates.
	Dial    func() (*grpc.ClientConn, error)
	Node    *corev3.Node
	Backoff Backoff
	Options config.Options
	Lost    func(err error, retry time.Duration) // called when a stream has ended
}

// A Backoff says how long to wait before the next try.
type Backoff struct {
	Initial, Max time.Duration // the first and the longest wait; more than 0
	Factor       float64       // the ratio of a wait to the previous wait; 1 or less: all waits are Initial
	Jitter       bool          // each wait is shortened at random, to between half of its length and all of it
}

// wait returns the time before the next try. The parameter failures is the number of failed tries in a row.
func (b Backoff) wait(failures int) time.Duration {
	wait := float64(b.Initial) * math.Pow(max(b.Factor, 1), float64(failures))
	wait = min(wait, float64(max(b.Initial, b.Max)))
	if b.Jitter {
		wait *= 0.5 + rand.Float64()/2
	}
	return time.Duration(wait)
}

// Watch asks for the configuration until the context ends. If a configuration is wrong, Watch rejects it, so that the
// server knows, and passes the error to the sink. When a stream ends, Watch opens another. The last configuration stays
// active.
func (x *XDS) Watch(ctx context.Context, sink Sink) {
	version, failures := "", 0
	for ctx.Err() == nil {
		answered, err := x.stream(ctx, &version, sink)
		if ctx.Err() != nil {
			return
		}
		if answered {
			failures = 0
		}
		retry := x.Backoff.wait(failures)
		failures++
		x.Lost(err, retry)
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

type streamResult struct {
	response *discoveryv3.DiscoveryResponse
	err      error
}

// stream asks for the configuration until the stream ends. The parameter version points to the last accepted version.
// The result answered says whether the server has sent a response.
//
// A server may send a rejected response again at once, because the accepted version still differs from the server's
// version. The cache of go-control-plane does this. So of several rejections in a row, only the first is sent at once.
// Each further rejection waits longer.
func (x *XDS) stream(ctx context.Context, version *string, sink Sink) (answered bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	connection, err := x.Dial()
	if err != nil {
		return false, err
	}
	defer connection.Close()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connection).StreamAggregatedResources(ctx)
	if err != nil {
		return false, err
	}
	send := func(r *discoveryv3.DiscoveryRequest) {
		_ = stream.Send(r) // Recv reports why it failed
	}
	results := make(chan streamResult)
	go receive(ctx, stream, results)

	send(x.request(*version, ""))
	var rejection *discoveryv3.DiscoveryRequest // a rejection that was not sent yet
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for rejections := 0; ; {
		select {
		case <-ctx.Done():
			return answered, ctx.Err()
		case <-timer.C:
			send(rejection)
		case received := <-results:
			if received.err != nil {
				return answered, received.err
			}
			answered = true
			timer.Stop()
			compiled, err := x.compile(received.response)
			if err = sink(compiled, nil, err); err == nil {
				rejections, *version = 0, received.response.GetVersionInfo()
				send(x.request(*version, received.response.GetNonce()))
				continue
			}
			rejection = x.request(*version, received.response.GetNonce())
			rejection.ErrorDetail = &status.Status{Code: int32(codes.InvalidArgument), Message: err.Error()}
			if rejections++; rejections == 1 {
				send(rejection)
				continue
			}
			timer.Reset(x.Backoff.wait(rejections - 2))
		}
	}
}

func receive(
	ctx context.Context, stream grpc.ServerStreamingClient[discoveryv3.DiscoveryResponse], results chan<- streamResult,
) {
	for {
		response, err := stream.Recv()
		select {
		case results <- streamResult{response, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (x *XDS) request(version, nonce string) *discoveryv3.DiscoveryRequest {
	return &discoveryv3.DiscoveryRequest{
		Node: x.Node, TypeUrl: resource.RateLimitConfigType, VersionInfo: version, ResponseNonce: nonce,
	}
}

func (x *XDS) compile(response *discoveryv3.DiscoveryResponse) (*config.Config, error) {
	if response.GetTypeUrl() != resource.RateLimitConfigType {
		return nil, fmt.Errorf("xDS: a response of type %q: want %q", response.GetTypeUrl(), resource.RateLimitConfigType)
	}
	var documents []*config.Document
	var errs []error
	for i, packed := range response.GetResources() {
		message := &configv3.RateLimitConfig{}
		if err := packed.UnmarshalTo(message); err != nil {
			errs = append(errs, fmt.Errorf("xDS: resource %d: %w", i, err))
			continue
		}
		documents = append(documents, config.FromXDS(message))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return config.Compile(documents, x.Options)
}
