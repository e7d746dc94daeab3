package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// A clientBody is the body of a request. It notes errors on the client's side, because the transport reports these like
// failures of the upstream.
type clientBody struct {
	io.ReadCloser
	broken atomic.Pointer[error] // written by the transport's goroutine
	ended  bool                  // used only by the transport's goroutine

	// With ignore_client_abort, if the body breaks off, the error is delayed until this context is done.
	delay   context.Context // nil for no delay
	longest time.Duration
}

// begin replaces the request's body by b.
func (b *clientBody) begin(r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		b.ReadCloser, r.Body = r.Body, b
	}
}

// Read implements [io.Reader].
func (b *clientBody) Read(into []byte) (int, error) {
	if b.ended {
		// If the answer has begun, net/http has closed the body, so another read would return an error, and the
		// transport would close the connection.
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

// err returns the first error on the client's side, or nil if there was none.
func (b *clientBody) err() error {
	if err := b.broken.Load(); err != nil {
		return *err
	}
	return nil
}
