// Package unixsocket listens on Unix sockets, whose files it replaces and removes without harm to another program.
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

// A Listener is a bound Unix socket. Its file goes when it is closed, unless [Listener.SetUnlinkOnClose] says not.
type Listener struct {
	*net.UnixListener
	path   string
	file   os.FileInfo
	unlink bool
}

// Path returns the path of an address such as unix:/run/weir.sock; false for any other address.
func Path(address string) (path string, ok bool) { return strings.CutPrefix(address, "unix:") }

// ErrInUse is the error of Listen where a program listens already.
var ErrInUse = errors.New("another program listens there; stop it, or choose another path")

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
	return &Listener{UnixListener: l, path: path, file: file, unlink: true}, nil
}

// Adopt returns the Listener of a socket that another process has bound, and whose file is at path. The file stays
// when the Listener is closed, until [Listener.SetUnlinkOnClose] says otherwise. It returns an error if there is no
// socket at path: nobody could connect.
func Adopt(l *net.UnixListener, path string) (*Listener, error) {
	file, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("its file is gone, so nobody can connect: start what has bound it again (of systemd: the socket "+
			"unit): %w", err)
	case err != nil:
		return nil, err
	case file.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is no socket any more, so nobody can connect: remove it", path)
	}
	l.SetUnlinkOnClose(false)
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
		return ErrInUse
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("there is a socket, of which it is not known whether a program listens on it: %w", err)
}

// Addr implements [net.Listener].
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// SetUnlinkOnClose says whether Close removes the file. It must not be called at the same time as Close.
func (l *Listener) SetUnlinkOnClose(unlink bool) { l.unlink = unlink }

// UnlinkOnClose reports whether Close removes the file: not if it is another program's by now.
func (l *Listener) UnlinkOnClose() bool {
	now, err := os.Lstat(l.path)
	return l.unlink && err == nil && os.SameFile(now, l.file)
}

// FileIsGone reports whether there is nothing at the path of the socket, so that nobody can connect any more.
func (l *Listener) FileIsGone() bool {
	_, err := os.Lstat(l.path)
	return errors.Is(err, fs.ErrNotExist)
}

// Close closes the socket and removes its file, unless that is to stay or is another program's by now.
func (l *Listener) Close() error {
	if l.UnlinkOnClose() {
		_ = os.Remove(l.path) // what stays is replaced by the next program
	}
	return l.UnixListener.Close()
}
