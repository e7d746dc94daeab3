package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// A clientBody is the body of a request. It notes errors on the client's side, which the transport reports like
// failures of the upstream.
type clientBody struct {
	io.ReadCloser
	broken atomic.Pointer[error] // written by the transport's goroutine
	ended  bool                  // read by the same

	// With ignore_client_abort, the error of a body that broke off is delayed until this context is done.
	delay   context.Context // nil for no delay
	longest time.Duration
}

// begin replaces the request's body by the clientBody.
func (b *clientBody) begin(r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		b.ReadCloser, r.Body = r.Body, b
	}
}

// Read implements [io.Reader].
func (b *clientBody) Read(into []byte) (int, error) {
	if b.ended {
		// net/http has closed it by now if the answer has begun, and the transport would close the connection
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

// err returns the first error on the client's side; nil if there was none.
func (b *clientBody) err() error {
	if err := b.broken.Load(); err != nil {
		return *err
	}
	return nil
}
