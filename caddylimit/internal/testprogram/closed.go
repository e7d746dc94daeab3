package testprogram

import (
	"errors"
	"io"
	"syscall"
)

// IsClosed reports whether a request failed because its connection was closed. A Caddy that stops a configuration
// closes connections that it has not read from yet. So the request was not decided, and the test may send it again.
func IsClosed(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }
