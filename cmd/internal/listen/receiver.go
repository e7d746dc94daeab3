package listen

import (
	"sync"
	"sync/atomic"
	"time"
)

// A receiver stores the deadlines for reads, and sets one on the connection only when a read needs it. This saves
// calls: for each request on a kept connection, net/http sets six deadlines but reads with only three of them.
type receiver struct {
	reads atomic.Int32 // reads in progress

	mu           sync.Mutex
	userDeadline time.Time // the deadline for the next read, if isPending
	isPending    bool      // userDeadline is not set on the connection yet
}

func (r *receiver) read(from streamConn, p []byte) (int, error) {
	r.mu.Lock()
	r.reads.Add(1)
	if r.isPending {
		r.isPending = false
		_ = from.SetReadDeadline(r.userDeadline) // fails only on a closed connection, on which the read fails, too
	}
	r.mu.Unlock()
	n, err := from.Read(p)
	r.reads.Add(-1)
	return n, err
}

// setDeadline stores a new deadline for the next read. If a read is in progress, it sets the deadline on the connection
// at once.
func (r *receiver) setDeadline(from streamConn, t time.Time) error {
	r.mu.Lock()
	if r.isPending = r.reads.Load() == 0; r.isPending {
		r.userDeadline = t
		r.mu.Unlock()
		return nil
	}
	err := from.SetReadDeadline(t)
	r.mu.Unlock()
	return err
}

// Read implements [net.Conn].
func (c *Conn) Read(p []byte) (int, error) { return c.receiver.read(c.streamConn, p) }

// SetReadDeadline implements [net.Conn].
func (c *Conn) SetReadDeadline(t time.Time) error { return c.receiver.setDeadline(c.streamConn, t) }
