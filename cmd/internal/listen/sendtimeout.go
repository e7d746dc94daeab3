package listen

import (
	"errors"
	"os"
	"sync"
	"time"
)

// A sender cuts off a client that accepts no byte for timeout. A client that reads slowly is still served. The mutex
// guards the deadlines. Only one goroutine at a time may write.
type sender struct {
	timeout time.Duration // 0 for no bound

	mu           sync.Mutex
	userDeadline time.Time // the deadline that the connection's user has set; zero for none
	connDeadline time.Time // the deadline that is set on the connection
}

// write writes all of p, or returns an error.
func (s *sender) write(to streamConn, p []byte) (n int, err error) {
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

// extend sets the deadline for the next bytes. It returns false if the deadline that the connection's user has set is
// over. To save calls, a new deadline may be early by a small part of the timeout.
func (s *sender) extend(to streamConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.userDeadline.IsZero() && !s.userDeadline.After(now) {
		return false
	}
	deadline := now.Add(s.timeout)
	if !s.userDeadline.IsZero() && s.userDeadline.Before(deadline) {
		deadline = s.userDeadline
	}
	if shift := deadline.Sub(s.connDeadline); shift < 0 || shift > s.timeout/64 {
		s.connDeadline = deadline
		_ = to.SetWriteDeadline(deadline) // fails only on a closed connection, on which the write fails, too
	}
	return true
}

// setDeadline sets the deadline of the connection's user.
func (s *sender) setDeadline(to streamConn, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.IsZero() && s.userDeadline.IsZero() && s.timeout > 0 {
		return nil // net/http does this before each request; the timeout's deadline is extended by the next write
	}
	s.userDeadline, s.connDeadline = t, t
	return to.SetWriteDeadline(t)
}

// Write implements [net.Conn].
func (c *Conn) Write(p []byte) (int, error) { return c.sender.write(c.streamConn, p) }

// SetWriteDeadline implements [net.Conn].
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.sender.setDeadline(c.streamConn, t) }

// SetDeadline implements [net.Conn].
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
