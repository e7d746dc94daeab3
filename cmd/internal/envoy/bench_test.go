package envoy

import (
	"context"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

func benchmarked() (*Service, error) {
	document, err := config.Parse("a.yaml", []byte(rules))
	if err != nil {
		return nil, err
	}
	c, err := config.Compile([]*config.Document{document}, config.Options{})
	if err != nil {
		return nil, err
	}
	s, err := New(Options{})
	if err != nil {
		return nil, err
	}
	return s, s.SetConfig(c)
}

func question(key, value string) *rlsv3.RateLimitRequest {
	return &rlsv3.RateLimitRequest{Domain: "d", Descriptors: []*commonv3.RateLimitDescriptor{
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}},
	}}
}

// BenchmarkService measures the service without gRPC.
func BenchmarkService(b *testing.B) {
	s, err := benchmarked()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	request, ctx := question("five", "x"), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.ShouldRateLimit(ctx, request); err != nil {
			b.Fatal(err)
		}
	}
}
