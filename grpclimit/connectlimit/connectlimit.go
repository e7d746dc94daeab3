package connectlimit

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/grpclimit/internal/refusal"
	"github.com/weir-go/weir/rpclimit"
)

type interceptor struct{ limits *rpclimit.Limits }

// New returns an interceptor that checks the calls of handlers or clients: each unary call, and each stream when it
// opens. Limits on messages ([rpclimit.Messages]) also check every request message of a stream.
//
// Interceptors run in the given order. If a key depends on the authenticated caller, put the interceptor that
// authenticates before this one.
func New(limits *rpclimit.Limits) connect.Interceptor { return interceptor{limits} }

// WrapUnary implements [connect.Interceptor].
func (i interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		call := newCall(ctx, req.Spec(), req.Peer(), req.Header())
		call.Message = req.Any()
		res := i.limits.Decide(call)
		if !res.Allowed() {
			return nil, refusalError(&res)
		}
		if !res.Refundable() {
			return next(res.Context(ctx), req)
		}
		code := rpclimit.Internal // used if the handler panics; the panic continues
		defer func() { res.Finish(code) }()
		resp, err := next(res.Context(ctx), req)
		code = codeOf(err)
		return resp, err
	}
}

// WrapStreamingHandler implements [connect.Interceptor]. After a refused message, Receive always returns the error. The
// stream ends with this error unless the handler returns another error.
func (i interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		call := newCall(ctx, conn.Spec(), conn.Peer(), conn.RequestHeader())
		call.Stream = true
		res := i.limits.Decide(call)
		if !res.Allowed() {
			return refusalError(&res)
		}
		if !i.limits.CountMessages() && !res.Refundable() {
			return next(res.Context(ctx), conn)
		}
		wrapper := &handlerConn{StreamingHandlerConn: conn, limits: i.limits, call: call}
		code := rpclimit.Internal // used if the handler panics; the panic continues
		defer func() {
			if wrapper.broken.Load() {
				res.Release()
				return
			}
			res.Finish(code)
		}()
		err := next(res.Context(ctx), wrapper)
		if refused := wrapper.refused.Load(); err == nil && refused != nil {
			err = refused // otherwise the client would assume that all its messages were handled
		}
		code = codeOf(err)
		return err
	}
}

// header is the metadata of a call. Binary values are stored as sent, in any variant of base64. The method Values
// decodes them.
type header http.Header

// Values implements [rpclimit.Metadata].
func (h header) Values(_ context.Context, name string) ([]string, bool) {
	values := http.Header(h).Values(name)
	if !strings.HasSuffix(name, "-bin") {
		return values, true
	}
	decoded := make([]string, len(values))
	for i, value := range values {
		text, err := connect.DecodeBinaryHeader(value)
		if err != nil {
			return nil, false
		}
		decoded[i] = string(text)
	}
	return decoded, true
}

func newCall(ctx context.Context, spec connect.Spec, peer connect.Peer, metadata http.Header) rpclimit.Call {
	call := rpclimit.Call{Context: ctx, Method: rpclimit.FullMethod(spec.Procedure), Metadata: header(metadata)}
	if spec.IsClient {
		call.Target = peer.Addr
		return call
	}
	// On a Unix socket, the client chooses the name of the peer. It may choose a name that looks like a network
	// address.
	if _, unix := ctx.Value(http.LocalAddrContextKey).(*net.UnixAddr); !unix {
		call.Peer = rpclimit.ParsePeer(peer.Addr)
	}
	return call
}

// refusalError returns the error of a refused call.
func refusalError(res *rpclimit.Result) *connect.Error {
	e := connect.NewError(connect.Code(res.Code()), errors.New(res.Reason()))
	for _, message := range refusal.Details(res) {
		if detail, err := connect.NewErrorDetail(message.(proto.Message)); err == nil { // err is always nil
			e.AddDetail(detail)
		}
	}
	if value := refusal.Pushback(res); value != "" {
		e.Meta().Set(refusal.PushbackName, value)
	}
	if retry := res.RetryAfter(); retry > 0 && retry != engine.Never {
		seconds := int64(retry / time.Second)
		if retry%time.Second > 0 {
			seconds++
		}
		e.Meta().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	return e
}

func codeOf(err error) rpclimit.Code {
	if err == nil {
		return rpclimit.OK
	}
	switch code := connect.CodeOf(err); {
	case code != connect.CodeUnknown: // err has a code
		return rpclimit.Code(code)
	case errors.Is(err, context.Canceled):
		return rpclimit.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return rpclimit.DeadlineExceeded
	}
	return rpclimit.Code(connect.CodeUnknown)
}
