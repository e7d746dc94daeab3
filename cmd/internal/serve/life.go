package serve

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
)

// A life is the state of a server between its start and its end.
type life struct {
	loaded sum                // of the first file
	base   context.Context    // of all requests
	cut    context.CancelFunc // ends them
	failed chan error         // what broke a listener
	ending chan struct{}      // closed when Run ends

	upgrade upgrade

	turn     chan struct{} // of reloads and upgrades, so that they replace rules in the order in which they read files
	changing sync.Mutex    // guards the sockets of the server, and the fields below
	stopped  bool          // the sockets do not change any more
}

// An upgrade replaces the process by another one.
type upgrade struct {
	begun     atomic.Bool                // an upgrade is in progress, or is done
	successor atomic.Pointer[os.Process] // until it serves
	done      chan struct{}              // closed when another process serves
}

// isDone reports whether another process serves.
func (u *upgrade) isDone() bool {
	select {
	case <-u.done:
		return true
	default:
		return false
	}
}

// killSuccessor kills a new process that has the sockets and was told to end, unless it has ended.
func (u *upgrade) killSuccessor() {
	if next := u.successor.Load(); next != nil {
		_ = next.Kill()
	}
}

// begin initializes the fields.
func (l *life) begin() {
	l.base, l.cut = context.WithCancel(context.Background())
	l.failed, l.ending, l.upgrade.done = make(chan error, 1), make(chan struct{}), make(chan struct{})
	l.turn = make(chan struct{}, 1)
}

// fail ends [Server.Run] with the error of a listener. Only the first error counts.
func (l *life) fail(err error) {
	select {
	case l.failed <- err:
	default:
	}
}

// takeTurn waits for the turn. It returns a function that ends the turn, or false if the server ends, because an
// upgrade may have the turn for a long time.
func (l *life) takeTurn() (done func(), ok bool) {
	select {
	case l.turn <- struct{}{}:
		return func() { <-l.turn }, true
	case <-l.ending:
		return nil, false
	}
}
