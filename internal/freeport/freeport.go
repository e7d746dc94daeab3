// Package freeport chooses the ports of servers that tests and benchmarks start.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Port chooses ports from first to last. No system chooses these ports for ":0" or for a connection. A server needs no
// privilege to listen on them.
const (
	first = 10000
	last  = 32767
)

var errNoPort = fmt.Errorf("freeport: no TCP port from %d to %d is free", first, last)

// Port returns a TCP port of 127.0.0.1 on which nothing listens. No other call of Port returns the same port, in this
// or in another process, until release is called or this process ends.
func Port() (port int, release func(), err error) {
	for range last - first {
		port = first + rand.IntN(last-first+1)
		if release, err := reserve(port); err == nil {
			return port, release, nil
		}
	}
	return 0, nil, errNoPort
}

// reserve reserves a port by opening a UDP socket on it, because a second call cannot open the same socket. Servers
// here do not use UDP.
func reserve(port int) (release func(), err error) {
	socket, err := net.ListenPacket("udp", address(port))
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address(port))
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	return func() { _ = socket.Close() }, nil
}

// T is the part of testing.TB that Number and Address need.
type T interface {
	Helper()
	Cleanup(func())
	Fatal(...any)
}

// Number returns a port as Port does, and releases the port at the end of the test.
func Number(t T) int {
	t.Helper()
	port, release, err := Port()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

// Address returns 127.0.0.1 with a port as Port returns it, and releases the port at the end of the test.
func Address(t T) string {
	t.Helper()
	return address(Number(t))
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
