package listen

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// setReusePort lets other processes of the same user bind the port. The kernel distributes new connections among them.
func setReusePort(_, _ string, conn syscall.RawConn) error {
	var sockoptErr error
	err := conn.Control(func(fd uintptr) {
		sockoptErr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, sockoptErr)
}

func reusePort(l streamListener) (enabled bool, err error) {
	conn, err := l.SyscallConn()
	if err != nil {
		return false, err
	}
	var value int
	var sockoptErr error
	err = conn.Control(func(fd uintptr) {
		value, sockoptErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT)
	})
	return value != 0, errors.Join(err, sockoptErr)
}
