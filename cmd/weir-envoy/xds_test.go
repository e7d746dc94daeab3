package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/internal/freeport"
)

// An xdsServer is an xDS server like Envoy Gateway's.
type xdsServer struct {
	cache   cache.SnapshotCache
	address string
	stop    func()
	refused chan string // what a client has refused, and why
	headers chan metadata.MD
}

func startXDS(t *testing.T, address string, options ...grpc.ServerOption) *xdsServer {
	t.Helper()
	x := &xdsServer{
		cache: cache.NewSnapshotCache(false, cache.IDHash{}, nil), address: address, refused: make(chan string, 10),
		headers: make(chan metadata.MD, 10),
	}
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	s := grpc.NewServer(options...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s, server.NewServer(context.Background(), x.cache,
		server.CallbackFuncs{
			StreamOpenFunc: func(ctx context.Context, _ int64, _ string) error {
				headers, _ := metadata.FromIncomingContext(ctx)
				x.headers <- headers
				return nil
			},
			StreamRequestFunc: func(_ int64, request *discoveryv3.DiscoveryRequest) error {
				if detail := request.GetErrorDetail(); detail != nil {
					x.refused <- detail.GetMessage()
				}
				return nil
			},
		}))
	go func() { _ = s.Serve(l) }()
	x.stop = s.Stop
	t.Cleanup(s.Stop)
	return x
}

func (x *xdsServer) set(t *testing.T, version string, resources ...types.Resource) {
	t.Helper()
	x.setFor(t, "node-1", version, resources...)
}

func (x *xdsServer) setFor(t *testing.T, node, version string, resources ...types.Resource) {
	t.Helper()
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: resources})
	require.NoError(t, err)
	require.NoError(t, x.cache.SetSnapshot(context.Background(), node, snapshot))
}

func limited(requests uint32) *configv3.RateLimitConfig {
	return &configv3.RateLimitConfig{Name: "r", Domain: "d", Descriptors: []*configv3.RateLimitDescriptor{{
		Key: "day", RateLimit: &configv3.RateLimitPolicy{Unit: configv3.RateLimitUnit_DAY, RequestsPerUnit: requests},
	}}}
}

// TestXDS: the program uses the first configuration, and then a changed one. It refuses a wrong
// configuration. After a server was unavailable, the program connects to it again.
func TestXDS(t *testing.T) {
	x := startXDS(t, freeport.Address(t))
	x.set(t, "1", limited(1000))
	r := start(t, nil, "--config-type=GRPC_XDS_SOTW", "--xds-server="+x.address, "--xds-node=node-1",
		"--xds-backoff-initial=10ms", "--xds-headers=x-tenant:a,x-zone:b:1", "--xds-metadata=zone=b")
	headers := <-x.headers
	assert.Equal(t, []string{"a"}, headers.Get("x-tenant"))
	assert.Equal(t, []string{"b:1"}, headers.Get("x-zone"))
	assert.Equal(t, "b", x.cache.GetStatusInfo("node-1").GetNode().GetMetadata().AsMap()["zone"])
	assert.Greater(t, r.left("day", "x"), 900)

	x.set(t, "2", limited(2000))
	until(t, "the change is seen", func() bool { return r.left("day", "x") > 1000 })

	x.set(t, "3", limited(3000), &configv3.RateLimitConfig{Name: "wrong", Domain: ""})
	assert.Equal(t, "wrong: config file cannot have empty domain", <-x.refused)
	assert.Less(t, r.left("day", "x"), 2000)

	x.stop()
	until(t, "the loss is told", func() bool { return strings.Contains(r.log(), "the xDS server is lost") })
	assert.Less(t, r.left("day", "x"), 2000, "the rules stay")
	again := startXDS(t, x.address)
	again.set(t, "4", limited(4000))
	until(t, "the server that is back is heard", func() bool { return r.left("day", "x") > 2000 })
}

// nonsense is a server whose answers have no meaning.
type nonsense struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	responses []*discoveryv3.DiscoveryResponse
	told      chan string
}

func (n *nonsense) StreamAggregatedResources(
	stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer,
) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	for _, response := range n.responses {
		if err := stream.Send(response); err != nil {
			return err
		}
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		n.told <- fmt.Sprintf("%s %s %s", request.GetVersionInfo(), request.GetResponseNonce(), request.GetErrorDetail().GetMessage())
	}
	<-stream.Context().Done()
	return nil
}

func TestXDSNonsense(t *testing.T) {
	good, err := anypb.New(limited(5))
	require.NoError(t, err)
	const right = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"
	n := &nonsense{told: make(chan string, 10), responses: []*discoveryv3.DiscoveryResponse{
		{VersionInfo: "1", Nonce: "a", TypeUrl: "type.googleapis.com/other", Resources: []*anypb.Any{good}},
		{VersionInfo: "2", Nonce: "b", TypeUrl: right, Resources: []*anypb.Any{{TypeUrl: right, Value: []byte{0xff}}}},
		{VersionInfo: "3", Nonce: "c", TypeUrl: right, Resources: []*anypb.Any{nil}},
		{VersionInfo: "4", Nonce: "d", TypeUrl: right, Resources: []*anypb.Any{good}},
		{VersionInfo: "5", Nonce: "e", TypeUrl: right, Resources: []*anypb.Any{good, good}},
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s, n)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	r := start(t, nil, "--config-type=GRPC_XDS_SOTW", "--xds-server="+l.Addr().String(), "--xds-backoff-initial=1ms",
		"--xds-backoff-max=1ms")
	assert.Equal(t, ` a xDS: a response of type "type.googleapis.com/other": want "`+right+`"`, <-n.told)
	assert.Contains(t, <-n.told, " b xDS: resource 0: ")
	assert.Contains(t, <-n.told, " c xDS: resource 0: ")
	assert.Equal(t, "4 d ", <-n.told)
	assert.Equal(t, "4 e r: duplicate domain 'd' in config file", <-n.told)
	assert.Equal(t, 4, r.left("day", "x"))
}

// TestALargeXDSConfiguration: one answer has all rules. It may be larger than gRPC's default bound for a message.
func TestALargeXDSConfiguration(t *testing.T) {
	x := startXDS(t, freeport.Address(t))
	large := limited(1000)
	for i := range 5000 {
		large.Descriptors = append(large.Descriptors, &configv3.RateLimitDescriptor{
			Key: fmt.Sprintf("%01000d", i), RateLimit: large.GetDescriptors()[0].GetRateLimit(),
		})
	}
	x.set(t, "1", large)
	r := start(t, nil, "--config-type=GRPC_XDS_SOTW", "--xds-server="+x.address, "--xds-node=node-1",
		"--force-start-without-initial-config")
	until(t, "it is loaded", func() bool { return strings.Contains(r.log(), "rules=5001") })
	assert.Greater(t, r.left("day", "x"), 900)
}

// TestXDSWithTLS: both sides show certificates. When a client's certificate is renewed, the next connection uses the
// new one. A server that is not trusted gets no request.
func TestXDSWithTLS(t *testing.T) {
	ca := newAuthority(t)
	pair, err := tls.LoadX509KeyPair(ca.sign("xds.test"))
	require.NoError(t, err)
	clients := x509.NewCertPool()
	clients.AddCert(ca.cert)
	secure := grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}))
	x := startXDS(t, freeport.Address(t), secure)
	x.set(t, "1", limited(1000))
	certificate, key := newAuthority(t).sign("weir.test") // signed by another CA, so it is refused
	r := start(t, nil, "--config-type=GRPC_XDS_SOTW", "--xds-server="+x.address, "--xds-node=node-1", "--xds-tls",
		"--xds-backoff-initial=10ms", "--xds-backoff-max=10ms", "--force-start-without-initial-config",
		"--xds-certificate="+certificate, "--xds-key="+key, "--xds-ca="+ca.file, "--xds-name=xds.test")
	until(t, "the refusal is told", func() bool { return strings.Contains(r.log(), "the xDS server is lost") })
	_, err = r.rls.ShouldRateLimit(context.Background(), request("d", "day", "x", 1))
	assert.ErrorContains(t, err, "no rate limit configuration loaded")

	renewed, renewedKey := ca.sign("weir.test")
	require.NoError(t, os.Rename(renewedKey, key))
	require.NoError(t, os.Rename(renewed, certificate))
	until(t, "the renewed certificate is used", func() bool { return strings.Contains(r.log(), "rules=1") })
	assert.Greater(t, r.left("day", "x"), 900)

	other := start(t, nil, "--config-type=GRPC_XDS_SOTW", "--xds-server="+x.address, "--xds-node=node-1", "--xds-tls",
		"--xds-backoff-initial=10ms", "--force-start-without-initial-config",
		"--xds-certificate="+certificate, "--xds-key="+key, "--xds-ca="+newAuthority(t).file, "--xds-name=xds.test")
	until(t, "the unknown CA is told", func() bool {
		return strings.Contains(other.log(), "certificate signed by unknown authority")
	})
}

// TestXDSQuotaAndMetadata: with a configuration over xDS, quota mode works, and an answer has the metadata of the rules
// that admitted the request.
func TestXDSQuotaAndMetadata(t *testing.T) {
	x := startXDS(t, freeport.Address(t))
	said, err := structpb.NewStruct(map[string]any{"tier": "gold"})
	require.NoError(t, err)
	resource := limited(2)
	resource.Descriptors[0].QuotaMode, resource.Descriptors[0].Metadata = true, said
	resource.Descriptors = append(resource.Descriptors, &configv3.RateLimitDescriptor{
		Key: "other", QuotaMode: true, RateLimit: resource.GetDescriptors()[0].GetRateLimit(),
	})
	x.set(t, "1", resource)
	r := start(t, nil, "--config-type=GRPC_XDS_SOTW", "--xds-server="+x.address, "--xds-node=node-1", "--metadata")
	both := request("d", "day", "x", 3)
	both.Descriptors = append(both.Descriptors, request("d", "other", "x", 1).GetDescriptors()[0])
	both.Descriptors[1].HitsAddend = wrapperspb.UInt64(1)
	ask := func() *rlsv3.RateLimitResponse {
		response, err := r.rls.ShouldRateLimit(context.Background(), both)
		require.NoError(t, err)
		return response
	}
	one, err := r.rls.ShouldRateLimit(context.Background(), request("d", "day", "x", 1))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"tier": "gold"}, one.GetDynamicMetadata().AsMap()["metadata"])
	for range 2 { // one of two quotas is exceeded, so nothing is refused
		assert.Equal(t, rlsv3.RateLimitResponse_OK, ask().GetOverallCode())
	}
	assert.Equal(t, rlsv3.RateLimitResponse_OVER_LIMIT, ask().GetOverallCode())
}
