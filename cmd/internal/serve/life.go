package serve

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
)

// A life is the state of a server from start to end.
type life struct {
	loadedSum  sum                // the fingerprint of the files that were read at the start
	base       context.Context    // the context of all requests
	cancelBase context.CancelFunc // ends base
	failure    chan error         // the error that broke a listener
	ending     chan struct{}      // closed when Run ends

	upgrade upgrade

	turn      chan struct{} // held by a reload or an upgrade: files become active in the order of their reading
	mu        sync.Mutex    // guards the sockets of the server, and the field below
	isStopped bool          // the sockets no longer change
}

type upgrade struct {
	isBegun   atomic.Bool                // an upgrade is in progress or has ended successfully
	successor atomic.Pointer[os.Process] // the new process, until it serves
	done      chan struct{}              // closed when the new process serves
}

func (u *upgrade) isDone() bool {
	select {
	case <-u.done:
		return true
	default:
		return false
	}
}

// complete reports that the new process serves. From then on, [Server.Run] can end at any time, and must not kill the
// new process. So complete forgets it first.
func (u *upgrade) complete() {
	u.successor.Store(nil)
	close(u.done)
}

// killSuccessor kills the new process of an upgrade that was not completed. This process has already got a SIGTERM, but
// still has the sockets.
func (u *upgrade) killSuccessor() {
	if next := u.successor.Load(); next != nil {
		_ = next.Kill()
	}
}

func (l *life) init() {
	l.base, l.cancelBase = context.WithCancel(context.Background())
	l.failure, l.ending, l.upgrade.done = make(chan error, 1), make(chan struct{}), make(chan struct{})
	l.turn = make(chan struct{}, 1)
}

// fail makes [Server.Run] return the error of a listener. If it is called again, only the first error counts.
func (l *life) fail(err error) {
	select {
	case l.failure <- err:
	default:
	}
}

// takeTurn waits until no reload or upgrade has the turn, and takes it. The caller must call the returned function at
// the end of its turn. If the server ends first, takeTurn returns false, because an upgrade may have the turn for a
// long time.
func (l *life) takeTurn() (endTurn func(), ok bool) {
	select {
	case l.turn <- struct{}{}:
		return func() { <-l.turn }, true
	case <-l.ending:
		return nil, false
	}
}
