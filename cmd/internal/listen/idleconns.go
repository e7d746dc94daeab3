package listen

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// idleConns has the connections without a request in progress, including those that have sent only a part of a header.
// When there is hardly any room for another connection, the connections that have been idle for longest are closed. The
// connections are in several lists, so that requests on several processors rarely wait for the same mutex. Each list is
// ordered by time.
type idleConns struct {
	lists [16]idleList
	next  atomic.Uint32
}

type idleList struct {
	mu          sync.Mutex
	first, last *Conn
	_           [40]byte // the rest of a cache line
}

// An idlePlace is the place of a connection in a list. The mutex of the list guards it.
type idlePlace struct {
	list          *idleList
	before, after *Conn
	since         time.Time // zero while it is not in the list
	dropped       bool      // closed to make room
	closed        bool      // closed by other code: it must not be put into the list again
}

// assign chooses the list of a connection, once.
func (i *idleConns) assign(c *Conn) {
	c.idle.list = &i.lists[i.next.Add(1)%uint32(len(i.lists))]
}

// rest puts the connection at the end of the list.
func (c *Conn) rest() {
	l := c.idle.list
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(c)
	if c.idle.dropped || c.idle.closed {
		return
	}
	c.idle.since, c.idle.before = time.Now(), l.last
	if l.last != nil {
		l.last.idle.after = c
	} else {
		l.first = c
	}
	l.last = c
}

// work removes the connection from the list, because a request is in progress.
func (c *Conn) work() {
	c.idle.list.mu.Lock()
	defer c.idle.list.mu.Unlock()
	c.idle.list.remove(c)
}

// leave takes it out forever.
func (c *Conn) leave() {
	c.idle.list.mu.Lock()
	defer c.idle.list.mu.Unlock()
	c.idle.closed = true
	c.idle.list.remove(c)
}

// isDropped reports whether the connection has been closed to make room. A request that was read from it meanwhile must
// not be executed, because its answer could not be sent.
func (c *Conn) isDropped() bool {
	c.idle.list.mu.Lock()
	defer c.idle.list.mu.Unlock()
	return c.idle.dropped
}

func (l *idleList) remove(c *Conn) {
	if c.idle.since.IsZero() {
		return
	}
	if c.idle.before != nil {
		c.idle.before.idle.after = c.idle.after
	} else {
		l.first = c.idle.after
	}
	if c.idle.after != nil {
		c.idle.after.idle.before = c.idle.before
	} else {
		l.last = c.idle.before
	}
	c.idle.since, c.idle.before, c.idle.after = time.Time{}, nil, nil
}

// drop closes the connection that has been idle for longest. It returns false if none is idle.
func (i *idleConns) drop() bool {
	var oldest *idleList
	var since time.Time
	for at := range i.lists {
		l := &i.lists[at]
		l.mu.Lock()
		if l.first != nil && (oldest == nil || l.first.idle.since.Before(since)) {
			oldest, since = l, l.first.idle.since
		}
		l.mu.Unlock()
	}
	if oldest == nil {
		return false
	}
	oldest.mu.Lock()
	c := oldest.first
	if c != nil { // otherwise it has just begun a request
		oldest.remove(c)
		c.idle.dropped = true
	}
	oldest.mu.Unlock()
	if c != nil {
		_ = c.Close() // it is closed even after an error
	}
	return true
}

// count returns how many connections are idle.
func (i *idleConns) count() (n int) {
	for at := range i.lists {
		l := &i.lists[at]
		l.mu.Lock()
		for c := l.first; c != nil; c = c.idle.after {
			n++
		}
		l.mu.Unlock()
	}
	return n
}

type connKey struct{}

// withConn keeps the connection for [started]. It is an [http.Server]'s ConnContext.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, countedOf(conn))
}

// started returns a handler that first does what net/http cannot. It ends a request whose connection was dropped, and
// replaces the deadline of the header by readTimeout for the body; 0 for none. The deadline also ends requests that
// net/http answers without a handler, such as one with an unknown Expect, which would otherwise wait for their bodies
// forever.
func started(next http.Handler, readTimeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, is := r.Context().Value(connKey{}).(*Conn)
		if is && c.isDropped() {
			panic(http.ErrAbortHandler)
		}
		hasBody := r.Body != http.NoBody
		if hasBody || r.ProtoMajor == 1 { // over HTTP/2 the deadline is per request body
			var deadline time.Time
			if hasBody && readTimeout > 0 {
				deadline = time.Now().Add(readTimeout)
			}
			// It only fails on a closed connection.
			if is && r.ProtoMajor == 1 {
				_ = c.SetReadDeadline(deadline)
			} else {
				_ = http.NewResponseController(w).SetReadDeadline(deadline)
			}
		}
		next.ServeHTTP(w, r)
	})
}
