package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// A clientBody is the body of a request. It notes the client's errors, because the transport reports them like failures
// of the upstream.
type clientBody struct {
	io.ReadCloser
	broken atomic.Pointer[error] // written by the transport's goroutine
	ended  bool                  // used only by the transport's goroutine

	// With ignore_client_abort, the error of a broken body is delayed until delay is done.
	delay   context.Context // nil for no delay
	longest time.Duration
}

func (b *clientBody) begin(r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		b.ReadCloser, r.Body = r.Body, b
	}
}

func (b *clientBody) Read(into []byte) (int, error) {
	if b.ended {
		// When the answer has begun, net/http closes the body. The error of another read would make the transport close
		// the connection.
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(into)
	b.ended = errors.Is(err, io.EOF)
	if err != nil && !b.ended && !errors.Is(err, http.ErrBodyReadAfterClose) &&
		b.broken.CompareAndSwap(nil, &err) && b.delay != nil {
		over := time.NewTimer(b.longest)
		defer over.Stop()
		select {
		case <-b.delay.Done():
		case <-over.C:
		}
	}
	return n, err
}

// err returns the client's first error, or nil.
func (b *clientBody) err() error {
	if err := b.broken.Load(); err != nil {
		return *err
	}
	return nil
}
