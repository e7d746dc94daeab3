package testprogram

import (
	"errors"
	"io"
	"syscall"
)

// IsClosed reports whether a request failed because its connection was closed. While Caddy stops a configuration, it
// closes connections that it has just accepted before it reads from them. Such a request may be sent again.
func IsClosed(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }
