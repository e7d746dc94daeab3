package listen

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// A ConnLimit bounds the open connections of all endpoints of a role together. If there are too many, a new connection
// gets an answer that says so, and is closed at once. If it waited in the system's queue instead, its client could not
// distinguish a busy server from a broken server.
type ConnLimit struct {
	maxOpen atomic.Int64 // 0 for no bound
	open    atomic.Int64
	role    Role
	full    Full
	log     *slog.Logger

	clients clientConns
	idle    idleConns

	rejected   atomic.Int64
	rejections chan struct{} // has one element for each rejection that is being sent
	sending    sync.WaitGroup
}

// At most maxRejections answers to rejected connections are sent at the same time, each for at most rejectTime. Other
// rejected connections are closed without an answer.
const (
	rejectTime    = time.Second
	maxRejections = 64
)

// Full describes the answer to a connection for which there is no room.
type Full struct {
	Answer  string // the bytes that are sent to the client
	Outcome string // the outcome in the log
}

// FullHTTP answers 503.
var FullHTTP = Full{"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n" +
	"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n\r\nToo many connections\n", "answered 503"}

// NewConnLimit returns a ConnLimit without bounds. The function client returns the client of an address. It returns the
// zero Prefix if the connections of the address have no bound per client.
func NewConnLimit(r Role, full Full, client func(netip.Addr) netip.Prefix, log *slog.Logger) *ConnLimit {
	return &ConnLimit{
		role: r, full: full, log: log, rejections: make(chan struct{}, maxRejections),
		clients: clientConns{client: client, counts: map[netip.Prefix]int64{}},
	}
}

// Bound sets the largest number of connections, in total and for each client; 0 means no bound. It closes no
// connection.
func (l *ConnLimit) Bound(total, perClient int64) {
	l.maxOpen.Store(total)
	l.clients.maxPerClient.Store(perClient)
}

// Open returns the number of open connections.
func (l *ConnLimit) Open() int64 { return l.open.Load() }

// Idle returns how many open connections have no request in progress.
func (l *ConnLimit) Idle() int { return l.idle.count() }

// Max returns the bound; 0 for none.
func (l *ConnLimit) Max() int64 { return l.maxOpen.Load() }

// Rejected returns how many connections were rejected because there was no room.
func (l *ConnLimit) Rejected() int64 { return l.rejected.Load() }

// Wait waits until all rejections have been sent: at most a second if no connections arrive.
func (l *ConnLimit) Wait() { l.sending.Wait() }

// Admit counts a connection until it is closed. If there are too many connections, it rejects the new one and returns
// nil. If less than a sixteenth of the connections is left, it also closes the connection that has been idle for
// longest.
func (l *ConnLimit) Admit(conn streamConn, sendTimeout time.Duration) *Conn {
	client, ok := l.clients.add(conn.RemoteAddr())
	if !ok {
		l.warnClient(conn.RemoteAddr())
		l.reject(conn)
		return nil
	}
	open, maxOpen := l.open.Add(1), l.maxOpen.Load()
	if maxOpen > 0 && open > maxOpen-maxOpen/16 {
		l.idle.dropOldest()
	}
	if maxOpen > 0 && open > maxOpen && l.open.Load() > maxOpen {
		l.open.Add(-1)
		l.clients.remove(client)
		l.log.Warn("too many connections: new connections are "+l.full.Outcome, "for", l.role, "max_connections", maxOpen)
		l.reject(conn)
		return nil
	}
	counted := &Conn{streamConn: conn, limit: l, client: client, sender: sender{timeout: sendTimeout}}
	l.idle.assign(counted)
	return counted
}

func (l *ConnLimit) warnClient(client net.Addr) {
	l.log.Warn("too many connections of one client: its new connections are "+l.full.Outcome, "for", l.role,
		"client", client.String(), "max_connections_per_client", l.clients.maxPerClient.Load())
}

func (l *ConnLimit) reject(conn streamConn) {
	if l.mayAnswer(conn) {
		l.sending.Go(func() { l.answer(conn) })
	}
}

// mayAnswer counts a rejection. If too many rejections are being sent, it closes the connection and returns false.
func (l *ConnLimit) mayAnswer(conn streamConn) bool {
	l.rejected.Add(1)
	select {
	case l.rejections <- struct{}{}:
		return true
	default:
		_ = conn.Close()
		return false
	}
}

func (l *ConnLimit) answer(conn streamConn) {
	defer func() { <-l.rejections }()
	sendRejection(conn, l.full.Answer)
}

// sendRejection sends an answer and closes the connection. Before that, it reads the request. If it closed a connection
// with unread data, the system would send a reset, which can overtake the answer. A TLS client gets a failed handshake
// instead of the answer.
func sendRejection(conn streamConn, answer string) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(rejectTime)) // an error would also be returned by the calls below
	if _, err := io.WriteString(conn, answer); err != nil {
		return
	}
	if conn.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// A Conn is a client's connection, which a [ConnLimit] counts until it is closed.
type Conn struct {
	streamConn
	limit    *ConnLimit
	closed   atomic.Bool
	answered bool // a request was answered, or the connection has ended; for [httpProtocol]
	idle     idlePlace
	sender   sender
	receiver receiver

	mu     sync.Mutex
	client netip.Prefix // the client for which it is counted
}

// countFor counts the connection for a client, and reports whether there is room.
func (c *Conn) countFor(client net.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return true
	}
	added, ok := c.limit.clients.add(client)
	if ok {
		c.limit.clients.remove(c.client)
		c.client = added
	}
	return ok
}

// connOf returns the Conn of an accepted connection, with or without TLS.
func connOf(conn net.Conn) *Conn {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if proxied, ok := conn.(*proxiedConn); ok {
		return proxied.counted
	}
	return conn.(*Conn)
}

// Close implements [net.Conn].
func (c *Conn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.limit.open.Add(-1)
		c.mu.Lock()
		c.limit.clients.remove(c.client)
		c.mu.Unlock()
		c.markClosed()
	}
	return c.streamConn.Close()
}
