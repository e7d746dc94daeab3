package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// Address is where to listen, as host:port. The host may be empty, for all
// addresses of the machine; port 0 takes any that is free.
type Address struct{ hostPort string }

// UnmarshalText accepts host:port with a numeric port.
func (a *Address) UnmarshalText(text []byte) error {
	const example = "write for example 127.0.0.1:8080, or :8080 for all addresses of this machine"
	s := string(text)
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("listen address %q: want host:port; %s", s, example)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("listen address %q: the port is %q, want 0 to 65535; %s", s, port, example)
	}
	a.hostPort = s
	return nil
}

// String returns the text that UnmarshalText reads.
func (a Address) String() string { return a.hostPort }

// listen binds the address, or says why not and what to do.
func (a Address) listen() (net.Listener, error) {
	l, err := net.Listen("tcp", a.hostPort)
	if err != nil {
		return nil, explainListen(a, err)
	}
	return l, nil
}

func explainListen(a Address, err error) error {
	var lookup *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: the port is in use; "+
			"stop the program that has it, or choose another port with --listen (port 0 takes a free one)", a)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot listen on %s: no permission; ports below 1024 are for the administrator, "+
			"choose a higher one with --listen", a)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &lookup):
		return fmt.Errorf("cannot listen on %s: this machine has no such address; "+
			"use 127.0.0.1, or leave the host out for all addresses: %w", a, err)
	default:
		return fmt.Errorf("cannot listen on %s: %w", a, err)
	}
}

// urlOf returns the URL at which a person on this machine reaches a listener.
func urlOf(l net.Listener) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "http://" + l.Addr().String() + "/"
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}
