//go:build !linux

package listen

import (
	"errors"
	"syscall"
)

var errReusePort = errors.New("reuse_port is for Linux: elsewhere the system does not spread connections over processes")

func setReusePort(_, _ string, _ syscall.RawConn) error { return errReusePort }

// reusePort returns false, because no other process may bind the port.
func reusePort(streamListener) (bool, error) { return false, nil }
