package listen

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/unixsocket"
)

// A socket is a bound address. It outlives its servers, so no client finds the port closed while settings change.
type socket struct {
	streamListener
	address string      // address of the endpoint
	mode    fs.FileMode // mode of a Unix socket's file
	server  *server
}

// bind returns a socket without a server: an inherited socket if possible, or else a new one.
func (s *Sockets) bind(e Endpoint) (*socket, error) {
	if inherited := s.config.Inherited.take(e); inherited != nil {
		return inherited, nil
	}
	l, err := bind(e)
	if err != nil {
		return nil, explain(e.Address, s.holder(e.Address), err)
	}
	return &socket{streamListener: l, address: e.Address, mode: e.Mode}, nil
}

// holder describes a socket of this process that blocks an address, and says what to do. It returns "" if there is
// none.
func (s *Sockets) holder(address string) string {
	blocks := func(socket *socket) bool { return overlaps(socket.Addr(), address) }
	const advice = "and a reload or an upgrade closes nothing before what is new is open: stop weir and start it again, or " +
		"reload with another address in between"
	if i := slices.IndexFunc(s.open, blocks); i >= 0 {
		return fmt.Sprintf("weir has it already, at %s for %s, %s", s.open[i].address, s.open[i].server.endpoint.Role,
			advice)
	}
	if found := s.config.Inherited.holder(address); found != nil && found.name == "" {
		return fmt.Sprintf("the weir before has it, at %s for %s, %s", found.Address, found.Role, advice)
	} else if found != nil {
		return fmt.Sprintf("systemd has it, and has passed the socket %s, %s: write that address into the rule file, or "+
			"change ListenStream= in systemd's unit", found.name, found.Addr())
	}
	return ""
}

// checkReusePort returns an error if the socket shares its port with other processes and want is false, or the other
// way around. A bound socket cannot change this property.
func (s *socket) checkReusePort(want bool) error {
	current, err := reusePort(s.streamListener)
	if err != nil || current == want {
		return err
	}
	return fmt.Errorf("listen %s: reuse_port is %t, and the port is open with %t, which stays so: end weir and start it "+
		"again, or set ReusePort= in the unit of systemd's socket", s.address, want, current)
}

// setServer starts a server on the socket. It returns the previous server, which accepts no more connections. Until the
// new server accepts, connections wait in the system's queue.
func (s *socket) setServer(next *server, limit *ConnLimit, proxy *proxyProtocol, onFailure func(error)) (prev *server) {
	if prev = s.server; prev != nil {
		prev.listener.retire()
		<-prev.acceptDone
		_ = s.SetDeadline(time.Time{}) // fails only on a closed socket, which start reports
	}
	s.server = next
	next.start(&listener{streamListener: s.streamListener, limit: limit, proxy: proxy, sendTimeout: next.endpoint.HTTP.SendTimeout}, onFailure)
	return prev
}

func (s *socket) setMode(mode fs.FileMode) error {
	path, isSocket := unixsocket.Path(s.address)
	if !isSocket || mode == s.mode {
		return nil
	}
	s.mode = mode
	return os.Chmod(path, mode)
}

// shut closes the address. It returns the server, whose connections stay open.
func (s *socket) shut() *server {
	s.server.listener.retire()
	_ = s.Close() // closed even if there is an error
	<-s.server.acceptDone
	return s.server
}

func (s *socket) url() string {
	scheme := s.server.protocol.Scheme()
	if s.server.endpoint.Certificate != (Certificate{}) {
		scheme += "s"
	}
	return urlOf(scheme, s.Addr())
}
