package serve

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

// A connLimit bounds the open connections of all endpoints of a role together. A connection above the bound is answered
// 503, or an error of Redis, and closed at once. Left waiting in the system's queue, its client could not tell a busy
// server from a dead one, and would stay there as long as idle connections fill the bound.
type connLimit struct {
	most atomic.Int64 // 0 for no bound
	open atomic.Int64
	role role
	log  *slog.Logger

	clients clientConns
	idle    idleConns

	rejected   atomic.Int64
	rejections chan struct{} // one element for each rejection that is being sent
	sending    sync.WaitGroup
}

// A rejection is sent for rejectTime at most, and to maxRejections clients at once. Further connections are closed
// without a word.
const (
	rejectTime    = time.Second
	maxRejections = 64
)

const fullAnswer = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n" +
	"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n\r\nToo many connections\n"

// fullOfRedis is what Redis says.
const fullOfRedis = "-ERR max number of clients reached\r\n"

// newConnLimit returns a limit without bounds. The connections of trusted peers do not count for one client.
func newConnLimit(r role, trusts func(netip.Addr) bool, log *slog.Logger) *connLimit {
	return &connLimit{
		role: r, log: log, rejections: make(chan struct{}, maxRejections),
		clients: clientConns{trusts: trusts, of: map[netip.Prefix]int64{}},
	}
}

// admit counts a connection until it is closed. It returns nil if there are too many, and has rejected it then. Of the
// last sixteenth of the room each new connection first takes that of the one that has been idle for longest.
func (l *connLimit) admit(conn streamConn, sendTimeout time.Duration) *countedConn {
	client, ok := l.clients.add(conn.RemoteAddr())
	if !ok {
		l.warnOf(conn.RemoteAddr())
		l.reject(conn, fullAnswer)
		return nil
	}
	open, most := l.open.Add(1), l.most.Load()
	if most > 0 && open > most-most/16 {
		l.idle.drop()
	}
	if most > 0 && open > most && l.open.Load() > most {
		l.open.Add(-1)
		l.clients.remove(client)
		answer, message := fullAnswer, "too many connections: new ones are answered 503"
		if l.role == redisClients {
			answer, message = fullOfRedis, "too many connections: new ones are refused"
		}
		l.log.Warn(message, "for", l.role, "max_connections", most)
		l.reject(conn, answer)
		return nil
	}
	counted := &countedConn{streamConn: conn, limit: l, client: client, sender: sender{timeout: sendTimeout}}
	l.idle.assign(counted)
	return counted
}

func (l *connLimit) warnOf(client net.Addr) {
	l.log.Warn("too many connections of one client: its new ones are answered 503", "for", l.role,
		"client", client.String(), "max_connections_per_client", l.clients.most.Load())
}

// reject answers and closes the connection. It does not wait for that.
func (l *connLimit) reject(conn streamConn, answer string) {
	if l.mayAnswer(conn) {
		l.sending.Go(func() { l.answer(conn, answer) })
	}
}

// mayAnswer counts a rejection, and closes the connection if there are too many to be answered.
func (l *connLimit) mayAnswer(conn streamConn) bool {
	l.rejected.Add(1)
	select {
	case l.rejections <- struct{}{}:
		return true
	default:
		_ = conn.Close()
		return false
	}
}

func (l *connLimit) answer(conn streamConn, answer string) {
	defer func() { <-l.rejections }()
	sendRejection(conn, answer)
}

// sendRejection answers and closes the connection. A close with the request unread would send a reset, which can
// overtake the answer; so the request is read first. A TLS client cannot read the answer and sees a failed handshake.
func sendRejection(conn streamConn, answer string) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(rejectTime)) // an error here comes back from the calls below
	if _, err := io.WriteString(conn, answer); err != nil {
		return
	}
	if conn.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// A countedConn is a connection that counts for a connLimit until it is closed.
type countedConn struct {
	streamConn
	limit    *connLimit
	closed   atomic.Bool
	answered bool // a request, or it has ended; an [httpProtocol] has it
	idle     idlePlace
	sender   sender

	mu     sync.Mutex
	client netip.Prefix // that it counts for
}

// countFor counts the connection for a client, and reports whether there is room for it.
func (c *countedConn) countFor(client net.Addr) bool {
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

// countedOf returns the countedConn of a connection that a listener has accepted, perhaps over TLS.
func countedOf(conn net.Conn) *countedConn {
	if secured, is := conn.(*tls.Conn); is {
		conn = secured.NetConn()
	}
	if proxied, is := conn.(*proxiedConn); is {
		return proxied.counted
	}
	return conn.(*countedConn)
}

// Close implements [net.Conn].
func (c *countedConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.limit.open.Add(-1)
		c.mu.Lock()
		c.limit.clients.remove(c.client)
		c.mu.Unlock()
		c.leave()
	}
	return c.streamConn.Close()
}
