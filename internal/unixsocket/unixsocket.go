// Package unixsocket listens on Unix sockets. It replaces or removes the file of a socket only if no other program uses
// the file.
package unixsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
)

// A Listener is a bound Unix socket. Close removes its file, unless [Listener.SetUnlinkOnClose] says otherwise.
type Listener struct {
	*net.UnixListener
	path   string
	file   os.FileInfo
	unlink bool
}

// Path returns the path of an address such as unix:/run/weir.sock. For any other address, ok is false.
func Path(address string) (path string, ok bool) { return strings.CutPrefix(address, "unix:") }

// ErrInUse is the error of Listen if another program already listens on the socket.
var ErrInUse = errors.New("another program listens there; stop it, or choose another path")

// Listen binds a Unix socket whose file has the given mode. Listen replaces a socket file that an earlier program has
// left behind, if no program listens on the socket. The file has its mode from the start: otherwise any user could
// connect before the mode is set.
func Listen(path string, mode fs.FileMode) (_ *Listener, err error) {
	if err := checkFree(path); err != nil {
		return nil, err
	}
	temporary := path + "~"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	defer func() {
		if err != nil {
			_ = l.Close() // the earlier error is returned
			_ = os.Remove(temporary)
		}
	}()
	if err := os.Chmod(temporary, mode); err != nil {
		return nil, err
	}
	file, err := os.Lstat(temporary)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(temporary, path); err != nil {
		return nil, err
	}
	return &Listener{UnixListener: l, path: path, file: file, unlink: true}, nil
}

// Adopt returns a Listener for a socket that another process has bound, and whose file is at path. Close does not
// remove the file, unless [Listener.SetUnlinkOnClose] says otherwise. If there is no socket at path, no client could
// connect, and Adopt returns an error.
func Adopt(l *net.UnixListener, path string) (*Listener, error) {
	file, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("its file is gone, so no one can connect: restart the program that has bound it (with systemd: the socket "+
			"unit): %w", err)
	case err != nil:
		return nil, err
	case file.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is no longer a socket, so no client can connect: remove it", path)
	}
	l.SetUnlinkOnClose(false)
	return &Listener{UnixListener: l, path: path, file: file}, nil
}

// checkFree returns nil if there is no file, or only a socket on which no program listens. Otherwise it returns an
// error.
func checkFree(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is a file that is not a socket: remove it, or choose another path")
	}
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // only the connection attempt matters
		return ErrInUse
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("there is a socket, and it cannot be checked whether a program listens on it: %w", err)
}

// Addr implements [net.Listener].
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// SetUnlinkOnClose says whether Close removes the file. It must not be called at the same time as Close.
func (l *Listener) SetUnlinkOnClose(unlink bool) { l.unlink = unlink }

// UnlinkOnClose reports whether Close removes the file. In any case, Close does not remove a file that now belongs to
// another program.
func (l *Listener) UnlinkOnClose() bool {
	current, err := os.Lstat(l.path)
	return l.unlink && err == nil && os.SameFile(current, l.file)
}

// FileIsGone reports whether there is no file at the path of the socket, so that no client can connect.
func (l *Listener) FileIsGone() bool {
	_, err := os.Lstat(l.path)
	return errors.Is(err, fs.ErrNotExist)
}

// Close closes the socket and removes its file, unless the file must stay or now belongs to another program.
func (l *Listener) Close() error {
	if l.UnlinkOnClose() {
		_ = os.Remove(l.path) // if this fails, the next program replaces the file
	}
	return l.UnixListener.Close()
}
