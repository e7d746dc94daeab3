package testprogram

import (
	"errors"
	"io"
	"syscall"
)

// IsClosed reports whether a request failed because its connection was closed. When Caddy stops a configuration, it
// closes connections that it has just accepted and not read from yet. So such a request was not decided, and the test
// may send it again.
func IsClosed(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }
