package connectlimit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/grpclimit/connectlimit"
	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

// inFlight returns a limit of n calls in flight for all clients together. The function left returns how many more calls
// may enter.
func inFlight(t testing.TB, n uint64) (set *rpclimit.Limits, left func() uint64) {
	l := testclock.New().Limiter(t, engine.Concurrency(n, time.Hour))
	return one(t, rpclimit.Limit{Limiter: l, Key: rpclimit.Everyone}), func() uint64 { return l.Peek(l.KeyUint64(0), 0).Remaining }
}

// TestACallIsInFlightUntilItsHandlerReturns: a unary call or a stream is in flight until its handler returns or panics.
func TestACallIsInFlightUntilItsHandlerReturns(t *testing.T) {
	for name, end := range map[string]func() error{
		"well":    func() error { return nil },
		"badly":   func() error { return connect.NewError(connect.CodeUnavailable, errors.New("as asked")) },
		"a panic": func() error { panic("as asked") },
	} {
		set, left := inFlight(t, 1)
		inside := func() error {
			assert.Zero(t, left(), name)
			return end()
		}
		unary := connectlimit.New(set).WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, inside() })
		stream := connectlimit.New(set).WrapStreamingHandler(func(_ context.Context, conn connect.StreamingHandlerConn) error {
			_ = conn.Send(nil) // sending fails
			return inside()
		})
		for range 2 {
			func() {
				defer func() { _ = recover() }()
				_, _ = unary(t.Context(), connect.NewRequest(wrapperspb.Int64(1)))
			}()
			require.EqualValues(t, 1, left(), name)
			func() {
				defer func() { _ = recover() }()
				_ = stream(t.Context(), fakeConn{})
			}()
			require.EqualValues(t, 1, left(), name)
		}
	}
}

// TestACallOfAClientIsInFlightUntilItEnds: a call of a client also ends if the client only closes it, or if its context
// ends.
func TestACallOfAClientIsInFlightUntilItEnds(t *testing.T) {
	s := start(t)
	set, left := inFlight(t, 1)
	held := connect.WithInterceptors(connectlimit.New(set))
	require.Equal(t, ok, call(t, s.client(unary, held), 1))
	_, code := exchange(t, s.client(echo, held), 1, 2)
	require.Equal(t, ok, code)
	require.EqualValues(t, 1, left())

	stream := s.client(echo, held).CallBidiStream(within(t))
	require.NoError(t, stream.Send(wrapperspb.Int64(1)))
	require.Zero(t, left())
	err := s.client(echo, held).CallBidiStream(within(t)).Send(wrapperspb.Int64(1))
	assert.Equal(t, refused, codeOf(err))
	assert.ErrorContains(t, err, "too many calls are in flight")
	var e *connect.Error
	require.ErrorAs(t, err, &e)
	assert.Empty(t, e.Meta().Values("Retry-After"))
	assert.Empty(t, e.Meta().Values("Grpc-Retry-Pushback-Ms"))
	_ = stream.CloseResponse()
	assert.EqualValues(t, 1, left())

	ctx, cancel := context.WithCancel(within(t))
	stream = s.client(echo, held).CallBidiStream(ctx)
	require.NoError(t, stream.Send(wrapperspb.Int64(1)))
	require.Zero(t, left())
	cancel()
	require.Eventually(t, func() bool { return left() == 1 }, time.Minute, time.Millisecond)
	_ = stream.CloseResponse() // if the context ends after the response has begun, net/http does not tell the server
}

// TestACallThatAnotherInterceptorRefuses: a refused call must not stay in flight, because its caller gets no stream to
// close.
func TestACallThatAnotherInterceptorRefuses(t *testing.T) {
	set, left := inFlight(t, 1)
	spent := one(t, rpclimit.Limit{Limiter: burst(t, 1), Key: rpclimit.Everyone})
	client := start(t).client(sum, connect.WithInterceptors(connectlimit.New(set), connectlimit.New(spent)))
	stream, err := client.CallClientStreamSimple(t.Context())
	require.NoError(t, err)
	_, err = stream.CloseAndReceive()
	require.NoError(t, err)
	for range 2 {
		_, err = client.CallClientStreamSimple(t.Context())
		assert.ErrorContains(t, err, "rate limit exceeded")
		assert.EqualValues(t, 1, left())
		_, err = client.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.Int64(1)))
		assert.ErrorContains(t, err, "rate limit exceeded")
		assert.EqualValues(t, 1, left())
	}
}

func TestHandlersSettle(t *testing.T) {
	tokens := testclock.New().Limiter(t, engine.FixedWindow(100, time.Hour))
	set := one(t, rpclimit.Limit{Limiter: tokens, Key: rpclimit.Everyone, Hold: true, Cost: func(rpclimit.Call) uint64 { return 40 }})
	left := func() uint64 { return tokens.Peek(tokens.KeyUint64(0), 0).Remaining }
	interceptor := connectlimit.New(set)
	_, err := interceptor.WrapUnary(func(ctx context.Context, _ connect.AnyRequest) (connect.AnyResponse, error) {
		limits.HoldFrom(ctx, "default").Settle(10)
		return nil, nil
	})(t.Context(), connect.NewRequest(wrapperspb.Int64(1)))
	require.NoError(t, err)
	assert.EqualValues(t, 90, left())
	require.NoError(t, interceptor.WrapStreamingHandler(func(ctx context.Context, _ connect.StreamingHandlerConn) error {
		limits.HoldFrom(ctx, "default").Settle(60)
		return nil
	})(t.Context(), fakeConn{}))
	assert.EqualValues(t, 30, left())
}
