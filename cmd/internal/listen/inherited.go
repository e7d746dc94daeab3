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

// Inherited has the listening sockets that the process got from systemd, or from the weir process that it replaces. The
// methods of a nil Inherited do nothing.
type Inherited struct {
	sockets     []*inheritedSocket // sockets that no endpoint uses yet
	predecessor io.WriteCloser     // gets the outcome; nil if systemd passed the sockets
	claims      []func()           // functions that make this process the owner of the sockets' files
	tellOnce    sync.Once
}

type inheritedSocket struct {
	handedSocket
	streamListener
	name string // name that systemd has given it
}

// Serving is the report to the previous process that this process serves. Any other report is the text of an error.
const Serving = "serving\n"

// HandedOver reports whether the sockets come from a previous weir process.
func (i *Inherited) HandedOver() bool { return i != nil && i.predecessor != nil }

// take returns the inherited socket of an endpoint, or nil. A socket of a previous weir process is found by the address
// in the rule file of that process. So a port that the system chose is found, too.
func (i *Inherited) take(e Endpoint) *socket {
	if i == nil {
		return nil
	}
	index := slices.IndexFunc(i.sockets, func(s *inheritedSocket) bool {
		return s.Role == e.Role && s.Address == e.Address
	})
	if index < 0 {
		index = slices.IndexFunc(i.sockets, func(s *inheritedSocket) bool { return isBoundTo(s.Addr(), e.Address) })
	}
	if index < 0 {
		return nil
	}
	found := i.sockets[index]
	i.sockets = slices.Delete(i.sockets, index, index+1)
	i.claims = append(i.claims, found.claim)
	if found.name != "" {
		found.Mode = e.Mode // so weir does not change the mode of the file, which belongs to systemd
	}
	return &socket{streamListener: found.streamListener, address: e.Address, mode: found.Mode}
}

// isBoundTo reports whether a socket is bound to an address of the rule file.
func isBoundTo(bound net.Addr, address string) bool {
	if path, isSocket := unixsocket.Path(address); isSocket {
		return bound.Network() == "unix" && bound.String() == path
	}
	tcp, isTCP := bound.(*net.TCPAddr)
	wanted, err := net.ResolveTCPAddr("tcp", address)
	if !isTCP || err != nil || tcp.Port != wanted.Port {
		return false
	}
	if wanted.IP == nil || wanted.IP.IsUnspecified() {
		return tcp.IP.IsUnspecified()
	}
	return tcp.IP.Equal(wanted.IP) && tcp.Zone == wanted.Zone
}

// holder returns an unused socket that blocks an address, or nil.
func (i *Inherited) holder(address string) *inheritedSocket {
	if i == nil {
		return nil
	}
	index := slices.IndexFunc(i.sockets, func(s *inheritedSocket) bool { return overlaps(s.Addr(), address) })
	if index < 0 {
		return nil
	}
	return i.sockets[index]
}

// overlaps reports whether a socket blocks an address. It does if the addresses are equal. It also does if the ports
// are equal, and the socket or the address is for all hosts.
func overlaps(bound net.Addr, address string) bool {
	tcp, isTCP := bound.(*net.TCPAddr)
	host, text, err := net.SplitHostPort(address)
	if !isTCP || err != nil {
		return isBoundTo(bound, address)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || int(port) != tcp.Port {
		return false
	}
	return host == "" || net.ParseIP(host).IsUnspecified() || tcp.IP.IsUnspecified() || isBoundTo(bound, address)
}

// unclaimed returns an error if no listener uses a socket from systemd, because no listener would answer its
// connections. Unused sockets of a previous weir process are not an error: that process may have had more listeners.
func (i *Inherited) unclaimed() error {
	if i == nil || i.HandedOver() || len(i.sockets) == 0 {
		return nil
	}
	s := i.sockets[0]
	return fmt.Errorf("systemd has passed the socket %s, %s, and the rule file has no listener with that address: add one, or "+
		"remove the socket from systemd's unit", s.name, s.Addr())
}

// Tell reports to the previous weir process that this process serves. If err is not nil, it reports why this process
// does not serve. Tell also closes unused sockets. Only the first call has an effect.
func (i *Inherited) Tell(err error) {
	if i == nil {
		return
	}
	i.tellOnce.Do(func() {
		if i.predecessor != nil {
			outcome := Serving
			if err != nil {
				outcome = err.Error()
			}
			_, _ = io.WriteString(i.predecessor, outcome) // fails if the previous process was killed
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
			_ = s.Close() // no listener uses it
		}
		i.sockets, i.claims = nil, nil
	})
}

// claim makes this process remove the file of a Unix socket when it closes the socket. If the previous process would
// have left the file, this process leaves it, too.
func (s *inheritedSocket) claim() {
	if local, ok := s.streamListener.(*localListener); ok {
		local.SetUnlinkOnClose(s.Unlink)
	}
}
