package serve

import (
	"net"
	"sync/atomic"
	"time"
)

// A socket is an address that is bound. It outlives the fronts that serve on it, so that no
// client finds the port closed when the settings change.
type socket struct {
	*net.TCPListener
	address string // as it was asked for
	front   *front
}

// bind returns a socket without a front.
func bind(address string) (*socket, error) {
	l, err := listen(address)
	if err != nil {
		return nil, err
	}
	return &socket{TCPListener: l, address: address}, nil
}

// put makes f the front, and returns the one that was, which gets no new connections. Those that
// come meanwhile wait in the system's queue.
func (s *socket) put(f *front, room *room, failed func(error)) (before *front) {
	if before = s.front; before != nil {
		before.door.retire()
		<-before.served
		_ = s.SetDeadline(time.Time{}) // fails on a closed socket only, which start reports
	}
	s.front = f
	f.start(&door{TCPListener: s.TCPListener, room: room}, failed)
	return before
}

// shut closes the address, and returns the front, which keeps its connections.
func (s *socket) shut() *front {
	s.front.door.retire()
	_ = s.Close() // is closed, whatever it says
	<-s.front.served
	return s.front
}

// url is where a person can try it.
func (s *socket) url() string {
	if s.front.post.listener.TLS != nil {
		return urlOf("https", s.Addr())
	}
	return urlOf("http", s.Addr())
}

// A door is the listener of one front.
type door struct {
	*net.TCPListener
	room *room // nil for no bound
	shut atomic.Bool
}

// retire ends a call of Accept and all that follow. The socket stays open.
func (d *door) retire() {
	d.shut.Store(true)
	_ = d.SetDeadline(time.Unix(1, 0)) // fails on a closed socket only, where Accept has ended
}

// Close implements [net.Listener]: the front takes no more connections.
func (d *door) Close() error { return nil }

// Accept implements [net.Listener].
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.AcceptTCP()
		switch {
		case err != nil && d.shut.Load():
			return nil, net.ErrClosed // and not the deadline's, after which it would be tried again
		case err != nil:
			return nil, err
		case d.room == nil:
			return conn, nil
		}
		if guest := d.room.admit(conn); guest != nil {
			return guest, nil
		}
	}
}
