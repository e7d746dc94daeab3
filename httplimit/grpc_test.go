package httplimit_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

// TestRefusedGRPC: a refused call gets the time to wait, and a status that clients do not retry at once.
func TestRefusedGRPC(t *testing.T) {
	call := func(contentType string, major int) *http.Request {
		r := getFrom(direct, "Content-Type", contentType)
		r.Method, r.ProtoMajor = http.MethodPost, major
		return r
	}
	empty := one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 1)},
		httplimit.Headers(httplimit.NoHeaders)).Handler(hello)
	serve(empty, getFrom(direct))
	w := serve(empty, call("application/grpc", 2))
	assert.Equal(t, 200, w.Code)
	assert.Empty(t, w.Body.String())
	assert.Equal(t, "application/grpc", w.Header().Get("Content-Type"))
	assert.Equal(t, "8", w.Header().Get("Grpc-Status"))
	assert.Equal(t, "rate limit exceeded", w.Header().Get("Grpc-Message"))
	details, err := base64.RawStdEncoding.DecodeString(w.Header().Get("Grpc-Status-Details-Bin"))
	assert.NoError(t, err)
	assert.Equal(t,
		"\x08\x08\x12\x13rate limit exceeded\x1a\x30\n\x28type.googleapis.com/google.rpc.RetryInfo\x12\x04\n\x02\x08\x01",
		string(details))

	for contentType, want := range map[string]int{
		"application/grpc+proto": 200, "application/grpc;x=y": 200, "application/grpc-web": 429,
		"application/grpcx": 429,
		"application/json":  429, "": 429,
	} {
		assert.Equal(t, want, serve(empty, call(contentType, 2)).Code, contentType)
		assert.Equal(t, 429, serve(empty, call(contentType, 1)).Code, "gRPC is HTTP/2")
	}

	for _, method := range []string{http.MethodGet, http.MethodHead} {
		r := call("application/grpc", 2)
		r.Method = method
		assert.Equal(t, 429, serve(empty, r).Code, "a cache must not take the refusal of a %s for the page", method)
	}

	dear := one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 1), Cost: func(*http.Request) uint64 { return 2 }})
	w = serve(dear.Handler(hello), call("application/grpc", 2))
	assert.Equal(t, []string{"8", ""}, []string{w.Header().Get("Grpc-Status"),
		w.Header().Get("Grpc-Status-Details-Bin")})
	gone := one(t, httplimit.Limit{Source: source(t, &backend{err: errors.New("gone")}), OnLoss: limits.Closed})
	w = serve(gone.Handler(hello), call("application/grpc", 2))
	assert.Equal(t, []string{"14", ""}, []string{w.Header().Get("Grpc-Status"),
		w.Header().Get("Grpc-Status-Details-Bin")})
}
