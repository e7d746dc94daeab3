package connectlimit_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/grpclimit/connectlimit"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/rpclimit"
)

func clientAddr(t *testing.T, proxies string) rpclimit.KeyFunc {
	t.Helper()
	ip, err := httplimit.NewClientIP(httplimit.TrustProxies(proxies))
	require.NoError(t, err)
	key, err := rpclimit.ClientAddr(ip)
	require.NoError(t, err)
	return key
}

// TestTheHeaderOfAProxyIsTrusted: the key is the address that a trusted proxy appended, whatever the client has written
// before.
func TestTheHeaderOfAProxyIsTrusted(t *testing.T) {
	client := start(t, one(t, rpclimit.Limit{Limiter: burst(t, 1), Key: clientAddr(t, "127.0.0.0/8")})).client(unary)
	assert.Equal(t, ok, call(t, client, 1, "X-Forwarded-For", "203.0.113.7"))
	assert.Equal(t, refused, call(t, client, 1, "X-Forwarded-For", "9.9.9.9, 203.0.113.7"))
	assert.Equal(t, ok, call(t, client, 1, "X-Forwarded-For", "203.0.113.8"))
}

// TestAUnixSocketIsNoAddress: the name of a client's end of a Unix socket does not count as its address.
func TestAUnixSocketIsNoAddress(t *testing.T) {
	t.Chdir(t.TempDir())
	l, err := net.Listen("unix", "server")
	require.NoError(t, err)
	key := clientAddr(t, "10.0.0.0/8")
	handler := connect.NewUnaryHandler(unary, func(_ context.Context, r *connect.Request[number]) (*connect.Response[number], error) {
		return connect.NewResponse(r.Msg), nil
	}, connect.WithInterceptors(connectlimit.New(one(t, rpclimit.Limit{Limiter: burst(t, 1), Key: key}))))
	server := &http.Server{Handler: handler}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		server.Close()
		<-served
	}()
	var got []connect.Code
	for _, end := range []string{"10.0.0.1", "10.0.0.2:80", "203.0.113.7"} {
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			d := net.Dialer{LocalAddr: &net.UnixAddr{Name: end, Net: "unix"}}
			return d.DialContext(ctx, "unix", "server")
		}}
		client := connect.NewClient[number, number](&http.Client{Transport: transport}, "http://server"+unary)
		got = append(got, call(t, client, 1, "X-Forwarded-For", "198.51.100."+end[len(end)-1:]))
		transport.CloseIdleConnections()
		os.Remove(end)
	}
	assert.Equal(t, []connect.Code{ok, refused, refused}, got)
}

// TestTargets: with [rpclimit.Target] as the key, each server has its own bucket.
func TestTargets(t *testing.T) {
	held := connect.WithInterceptors(connectlimit.New(one(t, rpclimit.Limit{Limiter: burst(t, 1), Key: rpclimit.Target})))
	for range 2 {
		client := start(t).client(unary, held)
		assert.Equal(t, ok, call(t, client, 1))
		assert.Equal(t, refused, call(t, client, 1))
	}
}

// A fakeConn is a stream without a transport.
type fakeConn struct {
	connect.StreamingHandlerConn
	connect.StreamingClientConn
}

func (fakeConn) Spec() connect.Spec          { return connect.Spec{Procedure: echo} }
func (fakeConn) Peer() connect.Peer          { return connect.Peer{} }
func (fakeConn) RequestHeader() http.Header  { return http.Header{} }
func (fakeConn) ResponseHeader() http.Header { return nil }
func (fakeConn) ResponseTrailer() http.Header {
	return nil
}
func (fakeConn) Receive(any) error    { return nil }
func (fakeConn) CloseRequest() error  { return nil }
func (fakeConn) CloseResponse() error { return nil }
func (fakeConn) Send(any) error {
	return connect.NewError(connect.CodeUnavailable, errors.New("the client has gone"))
}

// TestAStreamThatCannotBeSentGetsNothingBack: if the server cannot send, the client may have left on purpose, so it
// gets nothing back.
func TestAStreamThatCannotBeSentGetsNothingBack(t *testing.T) {
	set := one(t, rpclimit.Limit{Limiter: burst(t, 1), Refund: rpclimit.RefundCodes(connect.CodeUnavailable)})
	handler := connectlimit.New(set).WrapStreamingHandler(func(_ context.Context, conn connect.StreamingHandlerConn) error {
		return conn.Send(wrapperspb.Int64(1))
	})
	for _, want := range []connect.Code{connect.CodeUnavailable, refused} {
		assert.Equal(t, want, codeOf(handler(context.Background(), fakeConn{})))
	}
}

// TestTheContextOfAStreamEnds: the context of a stream ends when the stream is closed.
func TestTheContextOfAStreamEnds(t *testing.T) {
	var ctx context.Context
	opens := connectlimit.New(one(t, rpclimit.Limit{Limiter: burst(t, 1)})).WrapStreamingClient(
		func(given context.Context, _ connect.Spec) connect.StreamingClientConn {
			ctx = given
			return fakeConn{}
		})
	conn := opens(context.Background(), connect.Spec{Procedure: echo, IsClient: true})
	require.NoError(t, conn.CloseRequest())
	require.NoError(t, ctx.Err())
	require.NoError(t, conn.CloseResponse())
	assert.Error(t, ctx.Err())
}
