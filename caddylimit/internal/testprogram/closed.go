package testprogram

import (
	"errors"
	"io"
	"syscall"
)

// IsClosed reports whether a request failed because its connection was closed. When Caddy stops a configuration, it
// closes connections that it has just accepted and not yet read from. So such a request may be sent again.
func IsClosed(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }
