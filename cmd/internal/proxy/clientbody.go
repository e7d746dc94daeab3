package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// A clientBody is the body of a client's request. It notes errors in reading from the client, because the transport
// reports them as if the upstream had failed.
type clientBody struct {
	io.ReadCloser
	broken  atomic.Pointer[error] // written by the transport's goroutine
	isAtEnd bool                  // used only by the transport's goroutine

	// With ignore_client_abort, if the body breaks off, Read returns its error when this context is done, or after
	// maxDelay.
	delay    context.Context // nil for no delay
	maxDelay time.Duration
}

func (b *clientBody) begin(r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		b.ReadCloser, r.Body = r.Body, b
	}
}

func (b *clientBody) Read(p []byte) (int, error) {
	if b.isAtEnd {
		// net/http closes the body when the answer has begun. If another read returned an error, the transport would
		// close the connection.
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	b.isAtEnd = errors.Is(err, io.EOF)
	if err != nil && !b.isAtEnd && !errors.Is(err, http.ErrBodyReadAfterClose) &&
		b.broken.CompareAndSwap(nil, &err) && b.delay != nil {
		timer := time.NewTimer(b.maxDelay)
		defer timer.Stop()
		select {
		case <-b.delay.Done():
		case <-timer.C:
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
