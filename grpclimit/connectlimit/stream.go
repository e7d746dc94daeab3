package connectlimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/weir-go/weir/rpclimit"
)

// A handlerConn checks the messages that a handler receives against the limits.
type handlerConn struct {
	connect.StreamingHandlerConn
	limits  *rpclimit.Limits
	call    rpclimit.Call
	refused atomic.Pointer[connect.Error] // the error of the message that was refused, if any
	broken  atomic.Bool                   // receiving or sending failed, perhaps because of the client
}

// Receive receives a message and checks it against the limits.
func (c *handlerConn) Receive(m any) error {
	if refused := c.refused.Load(); refused != nil {
		return refused
	}
	if err := c.StreamingHandlerConn.Receive(m); err != nil {
		if !errors.Is(err, io.EOF) {
			c.broken.Store(true)
		}
		return err
	}
	if !c.limits.CountMessages() {
		return nil
	}
	call := c.call
	call.Message = m
	res := c.limits.DecideMessage(call)
	if res.Allowed() {
		return nil
	}
	err := refusalError(&res)
	c.refused.Store(err)
	return err
}

// Send sends a message.
func (c *handlerConn) Send(m any) error {
	err := c.StreamingHandlerConn.Send(m)
	if err != nil {
		c.broken.Store(true)
	}
	return err
}

// WrapStreamingClient implements [connect.Interceptor]. The stream is checked when its first message is sent or its
// sending side is closed, because the header of the stream may change until then. A refused call or message is not
// sent, and ends the stream.
func (i interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := &clientConn{limits: i.limits, ctx: ctx}
		conn.streamCtx, conn.cancel = context.WithCancel(ctx)
		conn.StreamingClientConn = next(conn.streamCtx, spec)
		return conn
	}
}

// A clientConn checks a client's stream, and the messages that the client sends on it, against the limits.
type clientConn struct {
	connect.StreamingClientConn
	limits    *rpclimit.Limits
	ctx       context.Context // the context of the call
	streamCtx context.Context // the context of the stream; cancel cancels it
	cancel    context.CancelFunc

	openOnce sync.Once
	opened   atomic.Bool // something was sent
	call     rpclimit.Call

	mu      sync.Mutex
	ended   bool
	refused *connect.Error
	result  rpclimit.Result // the decision on opening the stream
}

// open checks the stream against the limits. Only the first call of open does so.
func (c *clientConn) open() error {
	c.openOnce.Do(func() {
		c.call = newCall(c.ctx, c.Spec(), c.Peer(), c.RequestHeader())
		c.call.Stream = true
		res := c.limits.Decide(c.call)
		c.mu.Lock()
		c.result = res
		c.mu.Unlock()
		if res.Allowed() {
			c.opened.Store(true)
			if res.InFlight() { // the caller may cancel the stream without waiting for its end
				context.AfterFunc(c.streamCtx, c.release)
			}
		} else {
			c.end(0, refusalError(&res))
		}
	})
	return c.refusal()
}

// end records that the stream has ended, and cancels its context. If the call or a message was refused, the argument
// refused is the error of the refusal. Otherwise refused is nil, and the stream has ended with the status code.
func (c *clientConn) end(code rpclimit.Code, refused *connect.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended, c.refused = true, refused
	if refused == nil {
		c.result.Finish(code)
	} else {
		c.result.Release()
	}
	c.cancel()
}

// release gives back the stream's place in flight.
func (c *clientConn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result.Release()
}

func (c *clientConn) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil {
		return nil // a plain nil, and not an error that contains a nil pointer
	}
	return c.refused
}

// Send checks a message against the limits and sends it. If the message is nil, Send sends only the header.
func (c *clientConn) Send(m any) error {
	if err := c.open(); err != nil {
		return err
	}
	if m != nil && c.limits.CountMessages() {
		call := c.call
		call.Message = m
		if res := c.limits.DecideMessage(call); !res.Allowed() {
			err := refusalError(&res)
			c.end(0, err)
			return err
		}
	}
	err := c.StreamingClientConn.Send(m)
	if m == nil && err != nil && !errors.Is(err, io.EOF) { // the call has not begun, so the caller will not close it
		c.cancel()
		c.release()
	}
	return err
}

// CloseRequest closes the sending side. For a call without a message, this opens the stream.
func (c *clientConn) CloseRequest() error {
	if err := c.open(); !c.opened.Load() {
		return err
	}
	return c.StreamingClientConn.CloseRequest()
}

// Receive receives a message.
func (c *clientConn) Receive(m any) error {
	if err := c.refusal(); err != nil {
		return err
	}
	err := c.StreamingClientConn.Receive(m)
	if err == nil {
		return nil
	}
	code := rpclimit.OK
	if !errors.Is(err, io.EOF) {
		code = codeOf(err)
	}
	c.end(code, nil)
	if refused := c.refusal(); refused != nil {
		return refused
	}
	return err
}

// ResponseHeader returns the header of the answer. If the call was refused, the header is empty.
func (c *clientConn) ResponseHeader() http.Header {
	if c.refusal() != nil {
		return http.Header{}
	}
	return c.StreamingClientConn.ResponseHeader()
}

// ResponseTrailer returns the trailer of the answer. If the call was refused, the trailer is empty.
func (c *clientConn) ResponseTrailer() http.Header {
	if c.refusal() != nil {
		return http.Header{}
	}
	return c.StreamingClientConn.ResponseTrailer()
}

// CloseResponse closes the receiving side.
func (c *clientConn) CloseResponse() error {
	defer c.cancel()
	defer c.release()
	if c.refusal() != nil && !c.opened.Load() {
		return nil
	}
	return c.StreamingClientConn.CloseResponse()
}
