package listen

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/weir-go/weir/internal/unixsocket"
)

// Inherited are the listening sockets that the process had when it began: from systemd, or from the weir that it takes
// the place of. [Inherit] returns them. Without any it is nil, whose methods do nothing.
type Inherited struct {
	sockets     []*inheritedSocket // that no endpoint has taken
	predecessor io.WriteCloser     // for the outcome; nil where systemd passed the sockets
	claims      []func()           // what makes the files of the sockets this process's
	told        sync.Once
}

// An inheritedSocket is one of them.
type inheritedSocket struct {
	handedSocket
	bound
	name string // by systemd
}

// Serving is what the predecessor is told when all goes well; anything else is an error.
const Serving = "serving\n"

// HandedOver reports whether the sockets are from the weir before.
func (i *Inherited) HandedOver() bool { return i != nil && i.predecessor != nil }

// take returns the socket of an endpoint; nil if there is none. What a weir has handed over is found by what it was
// there, so also on a port that the system chose.
func (i *Inherited) take(e Endpoint) *socket {
	if i == nil {
		return nil
	}
	at := slices.IndexFunc(i.sockets, func(s *inheritedSocket) bool {
		return s.Role == e.Role && s.Address == e.Address
	})
	if at < 0 {
		at = slices.IndexFunc(i.sockets, func(s *inheritedSocket) bool { return isBoundTo(s.Addr(), e.Address) })
	}
	if at < 0 {
		return nil
	}
	found := i.sockets[at]
	i.sockets = slices.Delete(i.sockets, at, at+1)
	i.claims = append(i.claims, found.claim)
	if found.name != "" {
		found.Mode = e.Mode // the file is systemd's, and keeps the mode that it has
	}
	return &socket{bound: found.bound, address: e.Address, mode: found.Mode}
}

// isBoundTo reports whether an address of the rule file is the one that a socket is bound to.
func isBoundTo(bound net.Addr, address string) bool {
	if path, isSocket := unixsocket.Path(address); isSocket {
		return bound.Network() == "unix" && bound.String() == path
	}
	is, isTCP := bound.(*net.TCPAddr)
	wanted, err := net.ResolveTCPAddr("tcp", address)
	if !isTCP || err != nil || is.Port != wanted.Port {
		return false
	}
	if wanted.IP == nil || wanted.IP.IsUnspecified() {
		return is.IP.IsUnspecified()
	}
	return is.IP.Equal(wanted.IP) && is.Zone == wanted.Zone
}

// holder returns the socket that is in the way of an address, and that no endpoint has taken; nil if there is none.
func (i *Inherited) holder(address string) *inheritedSocket {
	if i == nil {
		return nil
	}
	at := slices.IndexFunc(i.sockets, func(s *inheritedSocket) bool { return overlaps(s.Addr(), address) })
	if at < 0 {
		return nil
	}
	return i.sockets[at]
}

// overlaps reports whether a socket is in the way of an address of the rule file: it is bound to the same, or to the
// same port where one of the two is at all hosts.
func overlaps(bound net.Addr, address string) bool {
	is, isTCP := bound.(*net.TCPAddr)
	host, text, err := net.SplitHostPort(address)
	if !isTCP || err != nil {
		return isBoundTo(bound, address)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || int(port) != is.Port {
		return false
	}
	return host == "" || net.ParseIP(host).IsUnspecified() || is.IP.IsUnspecified() || isBoundTo(bound, address)
}

// unclaimed returns an error if systemd has passed a socket that is no listener's: nobody would answer there. A weir
// may have had more listeners than the next one.
func (i *Inherited) unclaimed() error {
	if i == nil || i.HandedOver() || len(i.sockets) == 0 {
		return nil
	}
	s := i.sockets[0]
	return fmt.Errorf("systemd has passed the socket %s, %s, and the rule file has no listener with that address: add one, or "+
		"take the socket out of systemd's unit", s.name, s.Addr())
}

// Tell tells the weir that has handed the sockets over whether this process serves now: err says why it does not. It
// closes the sockets that are no listener's. Only the first call counts.
func (i *Inherited) Tell(err error) {
	if i == nil {
		return
	}
	i.told.Do(func() {
		if i.predecessor != nil {
			outcome := Serving
			if err != nil {
				outcome = err.Error()
			}
			_, _ = io.WriteString(i.predecessor, outcome) // fails if it has been killed, and then all is this process's
			_ = i.predecessor.Close()
		}
		if err != nil {
			return
		}
		for _, claim := range i.claims {
			claim()
		}
		for _, s := range i.sockets {
			s.claim()
			_ = s.Close() // nobody uses it
		}
		i.sockets, i.claims = nil, nil
	})
}

// claim makes the file of a Unix socket go with it, if it did so before.
func (s *inheritedSocket) claim() {
	if local, is := s.bound.(*localListener); is {
		local.SetUnlinkOnClose(s.Unlink)
	}
}
