package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestGRPCDeadlines(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0S": 0, "1H": time.Hour, "2M": 2 * time.Minute, "3S": 3 * time.Second, "40m": 40 * time.Millisecond,
		"5000u": 5 * time.Millisecond, "99999999n": 99999999, "99999999u": 99999999 * time.Microsecond,
		"": -1, "S": -1, "1": -1, "-1S": -1, "1x": -1, "99999999H": -1, "999999999S": -1, "1.5S": -1,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.ProtoMajor, r.Header = 2, http.Header{"Content-Type": {"application/grpc"}, "Grpc-Timeout": {text}}
		got, said := grpcTimeout(r)
		assert.Equal(t, want >= 0, said, text)
		assert.Equal(t, max(want, 0), got, text)
		r.ProtoMajor = 1
		_, said = grpcTimeout(r)
		assert.False(t, said, "not gRPC")
	}
}
