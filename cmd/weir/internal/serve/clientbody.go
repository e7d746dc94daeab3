package serve

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// A clientBody is the body of a request. It notes an error of the client's side, which the transport reports like a
// failure of the upstream.
type clientBody struct {
	io.ReadCloser
	broken atomic.Pointer[error] // written by the transport's goroutine
}

func (b *clientBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.broken.CompareAndSwap(nil, &err)
	}
	return n, err
}

// err returns the first error of the client's side; nil if there was none.
func (b *clientBody) err() error {
	if err := b.broken.Load(); err != nil {
		return *err
	}
	return nil
}
