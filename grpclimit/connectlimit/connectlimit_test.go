package connectlimit_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/grpclimit/connectlimit"
	"github.com/weir-go/weir/internal/leakcheck"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

type number = wrapperspb.Int64Value

const unary, sum, echo = "/test.Service/Unary", "/test.Service/Sum", "/test.Service/Echo"

// A server returns the number that it gets. For a negative number -n, it returns the error with the code n.
type server struct {
	*httptest.Server
	calls, messages atomic.Int64
	swallow         bool // the handler of Sum treats an error as a normal end
}

func codeIn(n *number) error {
	if n.GetValue() < 0 {
		return connect.NewError(connect.Code(-n.GetValue()), errors.New("as asked"))
	}
	return nil
}

func start(t testing.TB, set ...*rpclimit.Limits) *server {
	t.Helper()
	s := &server{}
	var options []connect.HandlerOption
	for _, l := range set {
		options = append(options, connect.WithInterceptors(connectlimit.New(l)))
	}
	mux := http.NewServeMux()
	mux.Handle(unary, connect.NewUnaryHandler(unary, func(_ context.Context, r *connect.Request[number]) (*connect.Response[number], error) {
		s.calls.Add(1)
		return connect.NewResponse(r.Msg), codeIn(r.Msg)
	}, append(options, connect.WithIdempotency(connect.IdempotencyNoSideEffects))...))
	mux.Handle(sum, connect.NewClientStreamHandler(sum, func(_ context.Context, stream *connect.ClientStream[number]) (*connect.Response[number], error) {
		var total int64
		for stream.Receive() {
			s.messages.Add(1)
			total += stream.Msg().GetValue()
		}
		if err := stream.Err(); err != nil && !s.swallow {
			return nil, err
		}
		return connect.NewResponse(wrapperspb.Int64(total)), nil
	}, options...))
	mux.Handle(echo, connect.NewBidiStreamHandler(echo, func(_ context.Context, stream *connect.BidiStream[number, number]) error {
		for {
			n, err := stream.Receive()
			if errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			s.messages.Add(1)
			if err := codeIn(n); err != nil {
				return err
			}
			if err := stream.Send(n); err != nil {
				return err
			}
		}
	}, options...))
	s.Server = httptest.NewUnstartedServer(mux)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *server) client(path string, options ...connect.ClientOption) *connect.Client[number, number] {
	return connect.NewClient[number, number](s.Server.Client(), s.URL+path, options...)
}

func burst(t testing.TB, n uint64) *engine.Limiter {
	t.Helper()
	l, err := engine.New(engine.TokenBucket(engine.PerSecond(1), n), engine.MaxKeys(1000),
		engine.ClockFunc(func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }))
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func one(t testing.TB, l rpclimit.Limit, options ...rpclimit.Option) *rpclimit.Limits {
	t.Helper()
	l.Name = "default"
	set, err := rpclimit.New([]rpclimit.Limit{l}, options...)
	require.NoError(t, err)
	return set
}

// onMessages returns limits with one limit. The limit counts messages.
func onMessages(t testing.TB, l rpclimit.Limit, options ...rpclimit.Option) *rpclimit.Limits {
	t.Helper()
	l.Name = "default"
	set, err := rpclimit.New(nil, append(options, rpclimit.Messages(l))...)
	require.NoError(t, err)
	return set
}

// within returns a context with a deadline, so that a test that hangs fails.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

const ok, refused = connect.Code(0), connect.CodeResourceExhausted

// call makes a call with headers and returns the code of its error, or 0 if the call succeeds.
func call(t testing.TB, c *connect.Client[number, number], n int64, headers ...string) connect.Code {
	t.Helper()
	r := connect.NewRequest(wrapperspb.Int64(n))
	for i := 0; i < len(headers); i += 2 {
		r.Header().Add(headers[i], headers[i+1])
	}
	_, err := c.CallUnary(within(t), r)
	return codeOf(err)
}

func codeOf(err error) connect.Code {
	if err == nil {
		return ok
	}
	return connect.CodeOf(err)
}

// exchange sends numbers on a stream, each after the answer to the previous one. It returns how many were answered, and
// the code at the end of the stream.
func exchange(t testing.TB, c *connect.Client[number, number], numbers ...int64) (answered int, code connect.Code) {
	t.Helper()
	stream := c.CallBidiStream(within(t))
	defer stream.CloseResponse()
	for _, n := range numbers {
		if err := stream.Send(wrapperspb.Int64(n)); err != nil && !errors.Is(err, io.EOF) {
			return answered, codeOf(err)
		}
		if _, err := stream.Receive(); err != nil {
			return answered, codeOf(err)
		}
		answered++
	}
	if err := stream.CloseRequest(); err != nil {
		return answered, codeOf(err)
	}
	if _, err := stream.Receive(); !errors.Is(err, io.EOF) {
		return answered, codeOf(err)
	}
	return answered, ok
}

var protocols = map[string][]connect.ClientOption{
	"connect": nil, "grpc": {connect.WithGRPC()}, "grpc-web": {connect.WithGRPCWeb()}, "json": {connect.WithProtoJSON()},
	"get": {connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)},
}

func TestARefusedCallSaysWhenAndWhy(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			s := start(t, one(t, rpclimit.Limit{Limiter: burst(t, 1)}))
			client := s.client(unary, options...)
			require.Equal(t, ok, call(t, client, 1))
			_, err := client.CallUnary(within(t), connect.NewRequest(wrapperspb.Int64(1)))
			var e *connect.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, refused, e.Code())
			assert.Equal(t, "rate limit exceeded", e.Message())
			require.Len(t, e.Details(), 2)
			info, err := e.Details()[0].Value()
			require.NoError(t, err)
			assert.Equal(t, time.Second, info.(*errdetails.RetryInfo).GetRetryDelay().AsDuration())
			failure, err := e.Details()[1].Value()
			require.NoError(t, err)
			assert.Equal(t, "limit:default", failure.(*errdetails.QuotaFailure).GetViolations()[0].GetSubject())
			assert.Equal(t, "1", e.Meta().Get("Retry-After"))
			assert.Equal(t, "1000", e.Meta().Get("Grpc-Retry-Pushback-Ms"))
			assert.Equal(t, int64(1), s.calls.Load())
		})
	}
}

// TestOneBucketForAllProtocols: a client has one bucket for all protocols.
func TestOneBucketForAllProtocols(t *testing.T) {
	s := start(t, one(t, rpclimit.Limit{Limiter: burst(t, 1)}))
	passed := 0
	for _, options := range protocols {
		if call(t, s.client(unary, options...), 1) == ok {
			passed++
		}
	}
	assert.Equal(t, 1, passed)
}

func TestStreams(t *testing.T) {
	for name, options := range map[string][]connect.ClientOption{"connect": nil, "grpc": {connect.WithGRPC()}} {
		t.Run(name, func(t *testing.T) {
			s := start(t, one(t, rpclimit.Limit{Limiter: burst(t, 1)}))
			answered, code := exchange(t, s.client(echo, options...), 1, 2, 3)
			assert.Equal(t, 3, answered)
			assert.Equal(t, ok, code)
			_, code = exchange(t, s.client(echo, options...), 1)
			assert.Equal(t, refused, code)

			s = start(t, onMessages(t, rpclimit.Limit{Limiter: burst(t, 2)}))
			answered, code = exchange(t, s.client(echo, options...), 1, 2, 3)
			assert.Equal(t, 2, answered)
			assert.Equal(t, refused, code)
			assert.Equal(t, int64(2), s.messages.Load())
			assert.Equal(t, refused, call(t, s.client(unary, options...), 1))
		})
	}
}

// TestAHandlerCannotHideARefusal: the client gets the refusal even if the handler treats its error as the stream's
// normal end.
func TestAHandlerCannotHideARefusal(t *testing.T) {
	s := start(t, onMessages(t, rpclimit.Limit{Limiter: burst(t, 1)}))
	s.swallow = true
	stream := s.client(sum).CallClientStream(within(t))
	for range 3 {
		if stream.Send(wrapperspb.Int64(1)) != nil {
			break
		}
	}
	_, err := stream.CloseAndReceive()
	assert.Equal(t, refused, codeOf(err))
}

func TestRefunds(t *testing.T) {
	s := start(t, one(t, rpclimit.Limit{Limiter: burst(t, 1), Refund: rpclimit.RefundCodes(connect.CodeUnavailable)}))
	for range 2 {
		assert.Equal(t, connect.CodeUnavailable, call(t, s.client(unary), -int64(connect.CodeUnavailable)))
		_, code := exchange(t, s.client(echo), 1, -int64(connect.CodeUnavailable))
		assert.Equal(t, connect.CodeUnavailable, code)
	}
	assert.Equal(t, ok, call(t, s.client(unary), 1))
	assert.Equal(t, refused, call(t, s.client(unary), 1))
}

// TestKeysOfMetadata: a client cannot get a second bucket by writing a value differently.
func TestKeysOfMetadata(t *testing.T) {
	text, err := rpclimit.MetadataValue("X-API-Key", rpclimit.Peer)
	require.NoError(t, err)
	c := start(t, one(t, rpclimit.Limit{Limiter: burst(t, 1), Key: text})).client(unary)
	assert.Equal(t, ok, call(t, c, 1, "X-Api-Key", "a"))
	assert.Equal(t, refused, call(t, c, 1, "x-api-key", "a"))
	assert.Equal(t, ok, call(t, c, 1, "X-Api-Key", "a", "X-Api-Key", "b"))
	assert.Equal(t, refused, call(t, c, 1, "X-Api-Key", "c", "X-Api-Key", "a"))

	binary, err := rpclimit.MetadataValue("token-bin", rpclimit.Peer)
	require.NoError(t, err)
	c = start(t, one(t, rpclimit.Limit{Limiter: burst(t, 1), Key: binary})).client(unary)
	assert.Equal(t, ok, call(t, c, 1, "Token-Bin", base64.StdEncoding.EncodeToString([]byte("a"))))
	for _, spelling := range []string{"YQ", "YQ==", "YR", "Yf=="} {
		assert.Equal(t, refused, call(t, c, 1, "Token-Bin", spelling), "%s is a, too", spelling)
	}
	assert.Equal(t, ok, call(t, c, 1, "Token-Bin", "!"))
	assert.Equal(t, refused, call(t, c, 1, "Token-Bin", "?"), "what cannot be decoded has one bucket")
}

func TestAClientIsHeldBack(t *testing.T) {
	s := start(t)
	set := one(t, rpclimit.Limit{Limiter: burst(t, 2), Key: rpclimit.Target})
	held := connect.WithInterceptors(connectlimit.New(set))
	assert.Equal(t, ok, call(t, s.client(unary, held), 1))
	answered, code := exchange(t, s.client(echo, held), 1, 2, 3)
	assert.Equal(t, 3, answered)
	assert.Equal(t, ok, code)
	assert.Equal(t, refused, call(t, s.client(unary, held), 1))
	assert.Equal(t, int64(1), s.calls.Load(), "nothing was sent")
	assert.Equal(t, int64(3), s.messages.Load())

	// Each method of a refused stream returns either the error of the refusal or an empty result.
	stream := s.client(echo, held).CallBidiStream(context.Background())
	assert.Equal(t, refused, codeOf(stream.Send(nil)))
	assert.Equal(t, refused, codeOf(stream.CloseRequest()))
	_, err := stream.Receive()
	assert.Equal(t, refused, codeOf(err))
	assert.Empty(t, stream.ResponseHeader())
	assert.Empty(t, stream.ResponseTrailer())
	assert.NoError(t, stream.CloseResponse())

	summing := s.client(sum, held).CallClientStream(context.Background())
	_, err = summing.CloseAndReceive()
	assert.Equal(t, refused, codeOf(err))
	_, err = s.client(echo, held).CallServerStream(context.Background(), connect.NewRequest(wrapperspb.Int64(1)))
	assert.Equal(t, refused, codeOf(err))
}

func TestAClientWaits(t *testing.T) {
	limiter, err := engine.New(engine.TokenBucket(engine.Per(1, 20*time.Millisecond), 1), engine.MaxKeys(10))
	require.NoError(t, err)
	defer limiter.Close()
	held := connect.WithInterceptors(connectlimit.New(one(t, rpclimit.Limit{Limiter: limiter, MaxWait: engine.Never})))
	s := start(t)
	begin := time.Now()
	for range 4 {
		require.Equal(t, ok, call(t, s.client(unary, held), 1))
	}
	assert.GreaterOrEqual(t, time.Since(begin), 60*time.Millisecond)
}

// TestAClientsMessagesAreHeldBack: a message that the client's limits refuse is not sent, and the stream ends on both
// sides.
func TestAClientsMessagesAreHeldBack(t *testing.T) {
	s := start(t)
	set := onMessages(t, rpclimit.Limit{Limiter: burst(t, 2), Key: rpclimit.Everyone})
	stream := s.client(sum, connect.WithInterceptors(connectlimit.New(set))).CallClientStream(context.Background())
	require.NoError(t, stream.Send(nil), "the header is no message")
	require.NoError(t, stream.Send(wrapperspb.Int64(1)))
	require.NoError(t, stream.Send(wrapperspb.Int64(1)))
	for range 2 {
		assert.Equal(t, refused, codeOf(stream.Send(wrapperspb.Int64(1))))
	}
	_, err := stream.CloseAndReceive()
	assert.Equal(t, refused, codeOf(err))
}

func TestAClientsRefunds(t *testing.T) {
	s := start(t)
	seen := &counts{}
	held := connect.WithInterceptors(connectlimit.New(one(t, rpclimit.Limit{Limiter: burst(t, 1),
		Refund: rpclimit.RefundCodes(connect.CodeUnavailable)}, rpclimit.ObserveWith(seen))))
	for range 2 {
		assert.Equal(t, connect.CodeUnavailable, call(t, s.client(unary, held), -int64(connect.CodeUnavailable)))
		_, code := exchange(t, s.client(echo, held), 1, -int64(connect.CodeUnavailable))
		assert.Equal(t, connect.CodeUnavailable, code)
	}
	_, code := exchange(t, s.client(echo, held), 1)
	assert.Equal(t, ok, code)
	assert.Equal(t, refused, call(t, s.client(unary, held), 1))
	assert.Equal(t, int64(4), seen.refunded.Load())
}

// counts implements limits.Metrics and counts refunds.
type counts struct{ refunded atomic.Int64 }

func (c *counts) Observe(_ string, o limits.Outcome) {
	if o == limits.Refunded {
		c.refunded.Add(1)
	}
}

func TestLimitsThatAreMissing(t *testing.T) {
	s := start(t, nil)
	assert.Equal(t, connect.CodeInternal, call(t, s.client(unary), 1))
	_, code := exchange(t, s.client(echo), 1)
	assert.Equal(t, connect.CodeInternal, code)
	_, code = exchange(t, start(t).client(echo, connect.WithInterceptors(connectlimit.New(nil))), 1)
	assert.Equal(t, connect.CodeInternal, code)
}

// TestABrokenStreamGetsNothingBack: a message that the server cannot read ends the stream with an error of the server.
// A client could cause this on purpose, so it must get nothing back.
func TestABrokenStreamGetsNothingBack(t *testing.T) {
	all := rpclimit.RefundCodes(connect.CodeInvalidArgument, connect.CodeInternal, connect.CodeUnimplemented, connect.CodeUnknown)
	s := start(t, one(t, rpclimit.Limit{Limiter: burst(t, 1), Refund: all}))
	stream := s.client(sum, connect.WithCodec(garbage{})).CallClientStream(within(t))
	require.NoError(t, stream.Send(wrapperspb.Int64(1)))
	_, err := stream.CloseAndReceive()
	require.Equal(t, connect.CodeInvalidArgument, codeOf(err))
	_, code := exchange(t, s.client(echo), 1)
	assert.Equal(t, refused, code)
}

// garbage is a codec that writes bytes which are not a message.
type garbage struct{}

func (garbage) Name() string { return "proto" }

func (garbage) Marshal(any) ([]byte, error) { return []byte{0xff, 0xff, 0xff}, nil }

func (garbage) Unmarshal([]byte, any) error { return nil }

// TestTheCodeOfAnError: Refund gets the same code as the client.
func TestTheCodeOfAnError(t *testing.T) {
	var err error
	var got rpclimit.Code
	set := one(t, rpclimit.Limit{Limiter: burst(t, 100), Refund: func(_ rpclimit.Call, code int) bool {
		got = rpclimit.Code(code)
		return false
	}})
	intercepted := connectlimit.New(set).WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, err })
	for want, test := range map[connect.Code]error{
		connect.CodeUnavailable:      connect.NewError(connect.CodeUnavailable, context.Canceled),
		connect.CodeCanceled:         context.Canceled,
		connect.CodeDeadlineExceeded: fmt.Errorf("late: %w", context.DeadlineExceeded),
		connect.CodeUnknown:          errors.New("x"),
		connect.CodeInternal:         fmt.Errorf("wrapped: %w", connect.NewError(connect.CodeInternal, errors.New("x"))),
	} {
		err = test
		_, _ = intercepted(context.Background(), connect.NewRequest(wrapperspb.Int64(1)))
		assert.Equal(t, rpclimit.Code(want), got, "%v", test)
	}
}
