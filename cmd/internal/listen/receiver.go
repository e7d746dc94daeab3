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

	mu    sync.Mutex
	asked time.Time // the last deadline for which the connection's user has asked
	unset bool      // asked is not set on the connection
}

func (r *receiver) read(from streamConn, p []byte) (int, error) {
	r.mu.Lock()
	r.reads.Add(1)
	if r.unset {
		r.unset = false
		_ = from.SetReadDeadline(r.asked) // fails only on a closed connection, on which the read fails, too
	}
	r.mu.Unlock()
	n, err := from.Read(p)
	r.reads.Add(-1)
	return n, err
}

// ask stores a new deadline for the next read. If a read is in progress, ask sets the deadline on the connection at
// once.
func (r *receiver) ask(from streamConn, t time.Time) error {
	r.mu.Lock()
	if r.unset = r.reads.Load() == 0; r.unset {
		r.asked = t
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
func (c *Conn) SetReadDeadline(t time.Time) error { return c.receiver.ask(c.streamConn, t) }
