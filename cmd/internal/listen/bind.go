package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/weir-go/weir/internal/unixsocket"
)

// A streamListener is a listener on an address: a [net.TCPListener] or a localListener.
type streamListener interface {
	net.Listener
	syscall.Conn
	SetDeadline(time.Time) error
}

// A streamConn is a connection of a streamListener. net/http needs CloseWrite.
type streamConn interface {
	net.Conn
	CloseWrite() error
}

func bind(e Endpoint) (streamListener, error) {
	if path, isSocket := unixsocket.Path(e.Address); isSocket {
		l, err := listenUnix(path, e.Mode)
		if err != nil {
			return nil, err // an interface with a nil *localListener would not be nil
		}
		return l, nil
	}
	var config net.ListenConfig
	if e.ReusePort {
		config.Control = setReusePort
	}
	l, err := config.Listen(context.Background(), "tcp", e.Address)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// explain says why a server cannot listen on an address, and what to do. The parameter holder describes a socket of
// weir itself that blocks the address. It is "" if there is none.
func explain(address, holder string, err error) error {
	var lookup *net.DNSError
	_, isSocket := unixsocket.Path(address)
	switch {
	case holder != "" && (errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, unixsocket.ErrInUse)):
		return fmt.Errorf("cannot listen on %s: %s", address, holder)
	case isSocket:
		return fmt.Errorf("cannot listen on %s: %w", address, err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: the port is in use; "+
			"stop the program that uses it, or choose another port, with --listen and --admin or in the rule file (0 takes a free one)", address)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot listen on %s: no permission: only the administrator may use ports below 1024; choose a higher one", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &lookup):
		return fmt.Errorf("cannot listen on %s: this machine has no such address; "+
			"use 127.0.0.1, or leave the host out for all addresses: %w", address, err)
	default:
		return fmt.Errorf("cannot listen on %s: %w", address, err)
	}
}

// urlOf returns the URL by which a person on this machine reaches an address.
func urlOf(scheme string, addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.Network() + ":" + addr.String()
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/"
}
