package httplimit_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testclock"
)

// TestAUnixSocketIsNoAddress: a client may give its end of a Unix socket a name that looks like an address. The name
// does not count as its address.
func TestAUnixSocketIsNoAddress(t *testing.T) {
	t.Chdir(t.TempDir())
	l, err := net.Listen("unix", "server")
	require.NoError(t, err)
	ip := clientIP(t, httplimit.TrustProxies("10.0.0.0/8"))
	server := &http.Server{Handler: one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 1), Key: ip.Key}).Handler(hello)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		server.Close()
		<-served
	}()
	var got []int
	for _, end := range []string{"10.0.0.1", "10.0.0.2:80", "203.0.113.7"} {
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			d := net.Dialer{LocalAddr: &net.UnixAddr{Name: end, Net: "unix"}}
			return d.DialContext(ctx, "unix", "server")
		}}
		r, err := http.NewRequest("GET", "http://server/", nil)
		require.NoError(t, err)
		r.Header.Set("X-Forwarded-For", "198.51.100."+end[len(end)-1:])
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		got = append(got, resp.StatusCode)
		transport.CloseIdleConnections()
		os.Remove(end)
	}
	assert.Equal(t, []int{200, 429, 429}, got)
}
