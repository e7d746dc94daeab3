package serve

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// posts are all that a file wants listened on.
func posts(f *config.File) (all []post) {
	for _, l := range f.Listen {
		all = append(all, post{clients, l, f.Server})
	}
	if f.Decide != nil {
		all = append(all, post{decisions, config.Listener{Address: f.Decide.Address}, f.Server})
	}
	if f.Admin != nil {
		all = append(all, post{administrators, config.Listener{Address: f.Admin.Address}, f.Server})
	}
	return all
}

// A move is a socket and what it is to become.
type move struct {
	socket      *socket
	post        post
	bound       bool // just now
	certificate *tls.Certificate
}

// A plan is what a reload does to the sockets. To make it is all that can fail.
type plan struct {
	moves []move
	gone  []*socket
}

// plan binds what has to be bound, and reads the certificates. Sockets whose address is still
// wanted stay.
func (s *Server) plan(f *config.File) (_ *plan, err error) {
	p := &plan{gone: slices.Clone(s.sockets)}
	defer func() {
		if err != nil {
			p.abandon()
		}
	}()
	for _, want := range posts(f) {
		m := move{post: want}
		if t := want.listener.TLS; t != nil {
			pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("listen %s: tls: %w", want.listener.Address, err)
			}
			m.certificate = &pair
		}
		if i := slices.IndexFunc(p.gone, func(s *socket) bool { return s.address == want.listener.Address && s.front.post.role == want.role }); i >= 0 {
			m.socket = p.gone[i]
			p.gone = slices.Delete(p.gone, i, i+1)
		} else if m.socket, err = bind(want.listener.Address); err != nil {
			return nil, err
		} else {
			m.bound = true
		}
		p.moves = append(p.moves, m)
	}
	return p, nil
}

// abandon closes what was bound for nothing.
func (p *plan) abandon() {
	for _, m := range p.moves {
		if m.bound {
			_ = m.socket.Close()
		}
	}
}

// carryOut does what was planned.
func (s *Server) carryOut(p *plan, f *config.File) {
	s.room.most.Store(int64(f.Server.MaxConnections))
	s.sockets = nil
	for _, m := range p.moves {
		if m.bound || !m.socket.front.post.equal(m.post) {
			s.staff(m)
		} else if m.certificate != nil {
			m.socket.front.certificate.Store(m.certificate)
		}
		s.sockets = append(s.sockets, m.socket)
	}
	s.retired = slices.DeleteFunc(s.retired, func(f *front) bool { return f.connections.Load() == 0 })
	var closed []*front
	for _, socket := range p.gone {
		closed = append(closed, socket.shut())
	}
	s.drainLater(closed, f.Server.ShutdownTimeout)
}

// staff puts a front on a socket.
func (s *Server) staff(m move) {
	f := newFront(m.post, s.handler(m.post.role), s.base, s.config.Log)
	f.certificate.Store(m.certificate)
	var bounds *room
	if m.post.role == clients {
		bounds = s.room
	}
	if before := m.socket.put(f, bounds, s.fail); before != nil {
		s.retired = append(s.retired, before)
	}
	if m.bound {
		s.config.Log.Info("listening", "url", m.socket.url(), "for", m.post.role)
	}
}

// handler returns what answers in a role: always with what is present then.
func (s *Server) handler(r role) http.Handler {
	switch r {
	case decisions:
		return http.HandlerFunc(s.decide)
	case administrators:
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if a := s.admin.Load(); a != nil { // else a reload has just taken it away
				a.Handler().ServeHTTP(w, r)
			}
		})
	}
	return s
}

// equal reports whether one front can do both.
func (p post) equal(other post) bool {
	for _, s := range []*config.Server{&p.server, &other.server} { // without what is not a front's
		s.MaxConnections, s.ShutdownTimeout, s.ShutdownDelay = 0, 0, 0
	}
	return p.role == other.role && p.listener.Equal(other.listener) && p.server == other.server
}
