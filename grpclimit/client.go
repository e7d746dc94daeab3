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

// DialOptions returns the options of a client whose calls are all limited: [UnaryClient] and [StreamClient] are added
// to the chains of interceptors.
func DialOptions(limits *rpclimit.Limits) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(UnaryClient(limits)),
		grpc.WithChainStreamInterceptor(StreamClient(limits)),
	}
}

// UnaryClient returns the interceptor that limits the unary calls of a client. A refused call fails with
// ResourceExhausted, and nothing is sent. If a limit has a MaxWait, the call waits for its tokens until the call's
// context is done. If the tokens will come only after the context's deadline, the call fails at once. Retries by gRPC
// do not count again.
func UnaryClient(limits *rpclimit.Limits) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		call := clientCall(ctx, method, cc)
		call.Message = req
		res := limits.Decide(call)
		if !res.Allowed() {
			return refusalError(&res)
		}
		if !res.Refundable() {
			return invoker(ctx, method, req, reply, cc, opts...)
		}
		code := rpclimit.Code(codes.Internal) // used if the call panics; the panic continues
		defer func() { res.Finish(code) }()
		err := invoker(ctx, method, req, reply, cc, opts...)
		code = codeOf(err)
		return err
	}
}

func clientCall(ctx context.Context, method string, cc *grpc.ClientConn) rpclimit.Call {
	call := rpclimit.Call{Context: ctx, Method: rpclimit.FullMethod(method), Metadata: outgoingMetadata{}}
	if cc != nil {
		call.Target = cc.Target()
	}
	return call
}

// StreamClient returns the interceptor that limits the streams of a client. A stream is counted when it opens. Limits
// on messages ([rpclimit.Messages]) also count each message that the client sends. SendMsg waits if such a limit has a
// MaxWait. A refused message is not sent, and ends the stream.
func StreamClient(limits *rpclimit.Limits) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer,
		opts ...grpc.CallOption) (grpc.ClientStream, error) {
		call := clientCall(ctx, method, cc)
		call.Stream = true
		res := limits.Decide(call)
		if !res.Allowed() {
			return nil, refusalError(&res)
		}
		if !limits.CountMessages() && !res.Refundable() {
			return streamer(ctx, desc, cc, method, opts...)
		}
		s := &clientStream{limits: limits, call: call, unaryReply: !desc.ServerStreams, result: res}
		ctx, s.cancel = context.WithCancel(ctx)
		if res.InFlight() { // the caller may cancel the stream, or close the connection, without waiting for the end
			context.AfterFunc(ctx, s.release)
			opts = append(slices.Clip(opts), grpc.OnFinish(func(error) { s.attemptEnded(cc) }))
		}
		opened := false
		defer func() {
			if !opened { // also after a panic, which continues
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

// A clientStream checks the messages that are sent against the limits.
type clientStream struct {
	grpc.ClientStream
	limits     *rpclimit.Limits
	call       rpclimit.Call
	unaryReply bool // there is only one reply
	cancel     context.CancelFunc

	mu      sync.Mutex
	ended   bool
	refused error           // the error of a message that was refused
	result  rpclimit.Result // the decision on opening the stream
}

// end records that the stream has ended, and cancels its context. If a message was refused, the argument refused is the
// error of the message. Otherwise refused is nil, and the stream has ended with the status code.
func (s *clientStream) end(code rpclimit.Code, refused error) {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// release gives back the stream's place in flight.
func (s *clientStream) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.Release()
}

// attemptEnded is called when an attempt of the call has ended. gRPC or an interceptor may then start another attempt,
// unless the connection is closed. So attemptEnded gives back the place in flight only if the connection is closed.
func (s *clientStream) attemptEnded(cc *grpc.ClientConn) {
	if cc.GetState() == connectivity.Shutdown {
		s.release()
	}
}

// Header returns the header of the answer. Without a header, the stream has ended. Header then gives back the place in
// flight, because the caller may never call RecvMsg.
func (s *clientStream) Header() (metadata.MD, error) {
	header, err := s.ClientStream.Header()
	if header == nil {
		s.release()
	}
	return header, err
}

func (s *clientStream) refusal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// SendMsg checks a message against the limits and sends it.
func (s *clientStream) SendMsg(m any) error {
	if err := s.refusal(); err != nil {
		return err
	}
	call := s.call
	call.Message = m
	res := s.limits.DecideMessage(call)
	if !res.Allowed() {
		err := refusalError(&res)
		s.end(0, err)
		return err
	}
	err := s.ClientStream.SendMsg(m)
	if err != nil && err != io.EOF { // after such an error, the caller need not call RecvMsg
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
