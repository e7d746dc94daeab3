package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// A bound is a bound address: a [net.TCPListener] or a localListener.
type bound interface {
	net.Listener
	SetDeadline(time.Time) error
}

// A streamConn is a connection of one: net/http also calls CloseWrite.
type streamConn interface {
	net.Conn
	CloseWrite() error
}

// listen binds an address, or says why not and what to do.
func listen(address string, mode fs.FileMode) (bound, error) {
	if path, isSocket := config.SocketPath(address); isSocket {
		l, err := listenUnix(path, mode)
		if err != nil {
			return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
		}
		return l, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, explainListen(address, err)
	}
	return l.(*net.TCPListener), nil
}

func explainListen(address string, err error) error {
	var lookup *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: the port is in use; "+
			"stop the program that has it, or choose another port, "+
			"with --listen and --admin or in the rule file (0 takes a free one)", address)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot listen on %s: no permission; ports below 1024 are for the administrator, "+
			"choose a higher one", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &lookup):
		return fmt.Errorf("cannot listen on %s: this machine has no such address; "+
			"use 127.0.0.1, or leave the host out for all addresses: %w", address, err)
	default:
		return fmt.Errorf("cannot listen on %s: %w", address, err)
	}
}

// urlOf returns the URL at which a person on this machine reaches an address.
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
