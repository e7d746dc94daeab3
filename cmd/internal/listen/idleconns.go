package listen

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// idleConns has the idle connections: those without a request in progress, even if a part of a header has arrived. To
// make room, the connections that have been idle for longest are closed. There are several lists, each ordered by time,
// so that processors do not wait for the same mutex.
type idleConns struct {
	lists [16]idleList
	next  atomic.Uint32
}

type idleList struct {
	mu          sync.Mutex
	first, last *Conn
	_           [40]byte // the rest of a cache line
}

// An idlePlace is the place of a connection in a list. The list's mutex guards it.
type idlePlace struct {
	list       *idleList
	prev, next *Conn
	since      time.Time // since when it is in the list; zero while it is not
	dropped    bool      // closed to make room
	closed     bool      // closed by other code; then it must not be put into the list again
}

// assign chooses the list of a connection, once and for all.
func (i *idleConns) assign(c *Conn) {
	c.idle.list = &i.lists[i.next.Add(1)%uint32(len(i.lists))]
}

// markIdle puts an idle connection at the end of its list.
func (c *Conn) markIdle() {
	l := c.idle.list
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(c)
	if c.idle.dropped || c.idle.closed {
		return
	}
	c.idle.since, c.idle.prev = time.Now(), l.last
	if l.last != nil {
		l.last.idle.next = c
	} else {
		l.first = c
	}
	l.last = c
}

// markActive removes a connection from its list, because a request has begun.
func (c *Conn) markActive() {
	c.idle.list.mu.Lock()
	defer c.idle.list.mu.Unlock()
	c.idle.list.remove(c)
}

// markClosed removes a closed connection from the list for good.
func (c *Conn) markClosed() {
	c.idle.list.mu.Lock()
	defer c.idle.list.mu.Unlock()
	c.idle.closed = true
	c.idle.list.remove(c)
}

// isDropped reports whether the connection was closed to make room. A request that was read from such a connection must
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
	if c.idle.prev != nil {
		c.idle.prev.idle.next = c.idle.next
	} else {
		l.first = c.idle.next
	}
	if c.idle.next != nil {
		c.idle.next.idle.prev = c.idle.prev
	} else {
		l.last = c.idle.prev
	}
	c.idle.since, c.idle.prev, c.idle.next = time.Time{}, nil, nil
}

// dropOldest closes the connection that has been idle for longest. It returns false if none is idle.
func (i *idleConns) dropOldest() bool {
	var oldest *idleList
	var since time.Time
	for n := range i.lists {
		l := &i.lists[n]
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
	if c != nil { // if it is nil, the connection has just begun a request
		oldest.remove(c)
		c.idle.dropped = true
	}
	oldest.mu.Unlock()
	if c != nil {
		_ = c.Close() // closed even if there is an error
	}
	return true
}

func (i *idleConns) count() (n int) {
	for index := range i.lists {
		l := &i.lists[index]
		l.mu.Lock()
		for c := l.first; c != nil; c = c.idle.next {
			n++
		}
		l.mu.Unlock()
	}
	return n
}

type connKey struct{}

// withConn stores the connection in the context for [withBodyDeadline]. It is the ConnContext of an [http.Server].
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(conn))
}

// withBodyDeadline returns a handler that ends a request whose connection was dropped. For any other request, it calls
// next with a new deadline. The deadline for the header is replaced by a deadline for the body, readTimeout from now; 0
// means none. net/http has no setting for this.
//
// Some requests never reach this handler, such as those with an unknown Expect. Their deadline for the header stays,
// because net/http would wait forever for their bodies.
func withBodyDeadline(next http.Handler, readTimeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connKey{}).(*Conn)
		if ok && c.isDropped() {
			panic(http.ErrAbortHandler)
		}
		hasBody := r.Body != http.NoBody
		if hasBody || r.ProtoMajor == 1 { // over HTTP/2, each body has its own deadline
			var deadline time.Time
			if hasBody && readTimeout > 0 {
				deadline = time.Now().Add(readTimeout)
			}
			// This fails only on a closed connection.
			if ok && r.ProtoMajor == 1 {
				_ = c.SetReadDeadline(deadline)
			} else {
				_ = http.NewResponseController(w).SetReadDeadline(deadline)
			}
		}
		next.ServeHTTP(w, r)
	})
}
