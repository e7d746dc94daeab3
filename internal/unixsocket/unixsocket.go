// Package unixsocket listens on Unix sockets, whose files it replaces and removes without harm to another program.
package unixsocket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// A Listener is a bound Unix socket. Its file goes when it is closed.
type Listener struct {
	*net.UnixListener
	path string
	file os.FileInfo
}

// Listen binds a Unix socket whose file has the mode. The file that a program has left behind, which nobody listens
// on, is replaced. The file appears with its mode: between a bind and a chmod any user could connect.
func Listen(path string, mode fs.FileMode) (_ *Listener, err error) {
	if err := isFree(path); err != nil {
		return nil, err
	}
	beside := path + "~"
	if err := os.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: beside, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	defer func() {
		if err != nil {
			_ = l.Close() // the error before it is the one to tell
			_ = os.Remove(beside)
		}
	}()
	if err := os.Chmod(beside, mode); err != nil {
		return nil, err
	}
	file, err := os.Lstat(beside)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(beside, path); err != nil {
		return nil, err
	}
	return &Listener{UnixListener: l, path: path, file: file}, nil
}

// isFree returns an error unless there is no file or a socket that nobody listens on.
func isFree(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is a file that is no socket: remove it, or choose another path")
	}
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // it was only to see
		return errors.New("another program listens there; stop it, or choose another path")
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("there is a socket, of which it is not known whether a program listens on it: %w", err)
}

// Addr implements [net.Listener].
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close closes the socket and removes its file, unless that is another program's by now.
func (l *Listener) Close() error {
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.file) {
		_ = os.Remove(l.path) // what stays is replaced by the next program
	}
	return l.UnixListener.Close()
}
