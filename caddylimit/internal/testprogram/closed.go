package testprogram

import (
	"errors"
	"io"
	"syscall"
)

// IsClosed reports whether a request found its connection closed. While a configuration is taken out of force Caddy
// closes connections that it has just accepted, before it reads from them: such a request may be sent again.
func IsClosed(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }
