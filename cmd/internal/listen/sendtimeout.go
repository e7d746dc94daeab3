package listen

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// A sender writes to a connection, and gives up when the peer has accepted no byte for a time. Any accepted byte
// counts, so a slow client is served, and one that reads nothing is cut off. The mutex guards the deadlines; one
// goroutine at a time writes.
type sender struct {
	timeout time.Duration // 0 for no bound

	mu    sync.Mutex
	asked time.Time // the deadline that the connection's user has asked for; zero for none
	set   time.Time // that the connection has
}

// write writes all of p, or returns an error.
func (s *sender) write(to net.Conn, p []byte) (n int, err error) {
	if s.timeout == 0 {
		return to.Write(p)
	}
	for {
		if !s.extend(to) && n > 0 {
			return n, os.ErrDeadlineExceeded
		}
		m, err := to.Write(p[n:])
		n += m
		if err == nil || m == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

// extend sets the deadline of the next bytes. It reports whether the deadline that the caller set is still ahead. The
// timeout's deadline may be early by a part of the timeout, because setting one for every write would cost more.
func (s *sender) extend(to net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.asked.IsZero() && !s.asked.After(now) {
		return false
	}
	next := now.Add(s.timeout)
	if !s.asked.IsZero() && s.asked.Before(next) {
		next = s.asked
	}
	if later := next.Sub(s.set); later < 0 || later > s.timeout/64 {
		s.set = next
		_ = to.SetWriteDeadline(next) // only fails on a closed connection, and then the write fails, too
	}
	return true
}

// ask sets the deadline that the connection's user asks for.
func (s *sender) ask(to net.Conn, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.IsZero() && s.asked.IsZero() && s.timeout > 0 {
		return nil // net/http asks before each request; the deadline is that of the timeout, and writes extend it
	}
	s.asked, s.set = t, t
	return to.SetWriteDeadline(t)
}

// Write implements [net.Conn].
func (c *Conn) Write(p []byte) (int, error) { return c.sender.write(c.streamConn, p) }

// SetWriteDeadline implements [net.Conn].
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.sender.ask(c.streamConn, t) }

// SetDeadline implements [net.Conn].
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
