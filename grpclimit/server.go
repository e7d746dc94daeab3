package grpclimit

import (
	"context"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/weir-go/weir/rpclimit"
)

// ServerOptions returns the options of a server whose calls are all limited: [UnaryServer] and [StreamServer] are added
// to the chains of interceptors. If a server has only one of these two interceptors, the calls of the other kind have
// no limit.
//
// Interceptors run in the order of the options. Put interceptors that recover from panics before these options. If a
// key depends on the authenticated caller, put the interceptor that authenticates before these options, too.
func ServerOptions(limits *rpclimit.Limits) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(UnaryServer(limits)),
		grpc.ChainStreamInterceptor(StreamServer(limits)),
	}
}

// UnaryServer returns the interceptor that limits the unary calls of a server.
func UnaryServer(limits *rpclimit.Limits) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		call := serverCall(ctx, info.FullMethod)
		call.Message = req
		res := limits.Decide(call)
		if !res.Allowed() {
			if trailer := pushback(&res); trailer != nil {
				_ = grpc.SetTrailer(ctx, trailer) // fails only outside of a server
			}
			return nil, refusalError(&res)
		}
		if !res.Refundable() {
			return handler(res.Context(ctx), req)
		}
		code := rpclimit.Code(codes.Internal) // used if the handler panics; the panic continues
		defer func() { res.Finish(code) }()
		resp, err := handler(res.Context(ctx), req)
		code = codeOf(err)
		return resp, err
	}
}

// StreamServer returns the interceptor that limits the streams of a server. A stream is counted when it opens. Limits
// on messages ([rpclimit.Messages]) also count every message that the handler receives. After a refused message,
// RecvMsg always returns the error. The stream ends with this error unless the handler returns another error.
func StreamServer(limits *rpclimit.Limits) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		call := serverCall(ss.Context(), info.FullMethod)
		call.Stream, call.Unknown = true, srv == nil // the handler of unknown methods has no service
		res := limits.Decide(call)
		if !res.Allowed() {
			if trailer := pushback(&res); trailer != nil {
				ss.SetTrailer(trailer)
			}
			return refusalError(&res)
		}
		ctx := res.Context(ss.Context())
		if !limits.CountMessages() && !res.Refundable() && ctx == ss.Context() {
			return handler(srv, ss)
		}
		wrapper := &serverStream{ServerStream: ss, ctx: ctx, limits: limits, call: call}
		code := rpclimit.Code(codes.Internal) // used if the handler panics; the panic continues
		defer func() {
			if wrapper.broken.Load() {
				res.Release()
				return
			}
			res.Finish(code)
		}()
		err := handler(srv, wrapper)
		if refused := wrapper.refused.Load(); err == nil && refused != nil {
			err = *refused // otherwise the client would assume that all its messages were handled
		}
		code = codeOf(err)
		return err
	}
}

// A serverStream checks the messages that its handler receives against the limits.
type serverStream struct {
	grpc.ServerStream
	ctx     context.Context // the context of the handler
	limits  *rpclimit.Limits
	call    rpclimit.Call
	refused atomic.Pointer[error] // the error of the message that was refused, if any
	broken  atomic.Bool           // receiving or sending failed, perhaps because of the client
}

// Context returns the context of the handler.
func (s *serverStream) Context() context.Context { return s.ctx }

// RecvMsg receives a message and checks it against the limits.
func (s *serverStream) RecvMsg(m any) error {
	if refused := s.refused.Load(); refused != nil {
		return *refused
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		if err != io.EOF {
			s.broken.Store(true)
		}
		return err
	}
	if !s.limits.CountMessages() {
		return nil
	}
	call := s.call
	call.Message = m
	res := s.limits.DecideMessage(call)
	if res.Allowed() {
		return nil
	}
	err := refusalError(&res)
	s.refused.Store(&err)
	if trailer := pushback(&res); trailer != nil {
		s.SetTrailer(trailer)
	}
	return err
}

// SendMsg sends a message.
func (s *serverStream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if err != nil {
		s.broken.Store(true)
	}
	return err
}
