package testprogram

import (
	"errors"
	"io"
	"syscall"
)

// IsClosed reports whether a request failed on a closed connection. Caddy closes connections that a stopped
// configuration has not read, so the request was not decided and may be sent again.
func IsClosed(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }
