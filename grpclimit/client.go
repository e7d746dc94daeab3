package grpclimit

import (
	"context"
	"io"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"

	"github.com/weir-go/weir/rpclimit"
)

// DialOptions returns the options of a client that holds all its calls to the limits: [UnaryClient] and [StreamClient]
// in the chains of interceptors.
func DialOptions(limits *rpclimit.Limits) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(UnaryClient(limits)),
		grpc.WithChainStreamInterceptor(StreamClient(limits)),
	}
}

// UnaryClient returns the interceptor that holds the unary calls of a client to the limits. A call that is refused
// fails with ResourceExhausted before anything is sent. Where a limit has a MaxWait it waits first, until the tokens
// are there or the call's context is done; if that would be first, it fails at once.
//
// A call is counted once, however often gRPC tries it again.
func UnaryClient(limits *rpclimit.Limits) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		call := clientCall(ctx, method, cc)
		call.Message = req
		res := limits.Decide(call)
		if !res.Allowed() {
			return refused(&res)
		}
		if !res.Refundable() {
			return invoker(ctx, method, req, reply, cc, opts...)
		}
		code := rpclimit.Code(codes.Internal) // of a panic, which goes on
		defer func() { res.Finish(code) }()
		err := invoker(ctx, method, req, reply, cc, opts...)
		code = codeOf(err)
		return err
	}
}

func clientCall(ctx context.Context, method string, cc *grpc.ClientConn) rpclimit.Call {
	call := rpclimit.Call{Context: ctx, Method: rpclimit.FullMethod(method), Metadata: outgoing{}}
	if cc != nil {
		call.Target = cc.Target()
	}
	return call
}

// StreamClient returns the interceptor that holds the streams of a client to the limits: each when it opens, and if
// there is a limit on messages ([rpclimit.Messages]), every message that is sent. SendMsg waits where that limit has a
// MaxWait. A message that is refused is not sent, and ends the stream.
func StreamClient(limits *rpclimit.Limits) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer,
		opts ...grpc.CallOption) (grpc.ClientStream, error) {
		call := clientCall(ctx, method, cc)
		call.Stream = true
		res := limits.Decide(call)
		if !res.Allowed() {
			return nil, refused(&res)
		}
		if !limits.CountMessages() && !res.Refundable() {
			return streamer(ctx, desc, cc, method, opts...)
		}
		s := &clientStream{limits: limits, call: call, unaryReply: !desc.ServerStreams, result: res}
		ctx, s.cancel = context.WithCancel(ctx)
		if res.InFlight() { // the caller may cancel it, or close the connection, and not ask for its end
			context.AfterFunc(ctx, s.release)
			opts = append(slices.Clip(opts), grpc.OnFinish(func(error) { s.closed(cc) }))
		}
		opened := false
		defer func() {
			if !opened { // or a panic, which goes on
				s.cancel()
				s.release()
			}
		}()
		stream, err := streamer(ctx, desc, cc, method, opts...)
		if err != nil {
			s.end(codeOf(err), nil)
			return nil, err
		}
		s.ClientStream, opened = stream, true
		return s, nil
	}
}

// A clientStream counts the messages that are sent.
type clientStream struct {
	grpc.ClientStream
	limits     *rpclimit.Limits
	call       rpclimit.Call
	unaryReply bool // the first reply is the last
	cancel     context.CancelFunc

	ending  sync.Mutex
	ended   bool
	refused error           // of a message that was refused
	result  rpclimit.Result // of the opening
}

// end ends the stream: with an error of its own, or as it has ended by itself.
func (s *clientStream) end(code rpclimit.Code, refused error) {
	s.ending.Lock()
	defer s.ending.Unlock()
	if s.ended {
		return
	}
	s.ended, s.refused = true, refused
	if refused == nil {
		s.result.Finish(code)
	} else {
		s.result.Release()
	}
	s.cancel()
}

// release ends that the stream is in flight.
func (s *clientStream) release() {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.result.Release()
}

// closed is called when an attempt has ended, and ends that the stream is in flight if there can be no other: an
// interceptor may try again.
func (s *clientStream) closed(cc *grpc.ClientConn) {
	if cc.GetState() == connectivity.Shutdown {
		s.release()
	}
}

// Header returns the header of the answer. It has none if the stream has ended, and RecvMsg need not be called.
func (s *clientStream) Header() (metadata.MD, error) {
	header, err := s.ClientStream.Header()
	if header == nil {
		s.release()
	}
	return header, err
}

// refusal returns the error of the message that was refused.
func (s *clientStream) refusal() error {
	s.ending.Lock()
	defer s.ending.Unlock()
	return s.refused
}

// SendMsg holds a message to the limits and sends it.
func (s *clientStream) SendMsg(m any) error {
	if err := s.refusal(); err != nil {
		return err
	}
	call := s.call
	call.Message = m
	res := s.limits.DecideMessage(call)
	if !res.Allowed() {
		err := refused(&res)
		s.end(0, err)
		return err
	}
	err := s.ClientStream.SendMsg(m)
	if err != nil && err != io.EOF { // that ends it, and RecvMsg need not be called
		s.release()
	}
	return err
}

// RecvMsg receives a message.
func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil && !s.unaryReply {
		return nil
	}
	code := rpclimit.OK
	if err != nil && err != io.EOF {
		code = codeOf(err)
	}
	s.end(code, nil)
	if refused := s.refusal(); err != nil && refused != nil {
		return refused
	}
	return err
}
