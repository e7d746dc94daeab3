package serve

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A room bounds the connections of all clients together. When it is full, who comes is told so at once:
// left waiting in the system's queue they could not tell a busy server from a dead one, and would
// stay there as long as idle connections hold the room.
type room struct {
	most atomic.Int64 // 0 for no bound
	open atomic.Int64
	log  *slog.Logger

	turnedAway atomic.Int64 // since the log said so
	said       atomic.Int64 // when it last did
	parting    chan struct{}
	partings   sync.WaitGroup
}

// How long, and to how many at once, the refusal is being told. Others see a connection that is closed.
const (
	partingTime = time.Second
	maxPartings = 64
)

const fullAnswer = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n" +
	"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n\r\nToo many connections\n"

func newRoom(log *slog.Logger) *room {
	return &room{log: log, parting: make(chan struct{}, maxPartings)}
}

// admit returns the connection, which leaves the room when it is closed; or nil if there is no room, and
// it has been dealt with.
func (r *room) admit(conn *net.TCPConn) net.Conn {
	open := r.open.Add(1)
	if most := r.most.Load(); most > 0 && open > most {
		r.open.Add(-1)
		r.turnAway(conn, most)
		return nil
	}
	return &guest{TCPConn: conn, room: r}
}

func (r *room) turnAway(conn *net.TCPConn, most int64) {
	r.turnedAway.Add(1)
	const every = 10 * time.Second
	if now, said := time.Now().UnixNano(), r.said.Load(); now-said > int64(every) && r.said.CompareAndSwap(said, now) {
		r.log.Warn("too many connections: new ones are answered 503", "max_connections", most, "turned_away", r.turnedAway.Swap(0))
	}
	select {
	case r.parting <- struct{}{}:
	default:
		_ = conn.Close()
		return
	}
	r.partings.Go(func() {
		defer func() { <-r.parting }()
		part(conn)
	})
}

// part tells a client that there is no room. To close with its request unread would be a reset, which
// can overtake the answer. (Over TLS it is gibberish, and as good as closing.)
func part(conn *net.TCPConn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(partingTime)) // what fails below ends it, too
	if _, err := io.WriteString(conn, fullAnswer); err != nil {
		return
	}
	if conn.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// A guest is a connection in the room.
type guest struct {
	*net.TCPConn // as it is: a server also closes one half of it
	room         *room
	left         atomic.Bool
}

// Close implements [net.Conn].
func (g *guest) Close() error {
	if g.left.CompareAndSwap(false, true) {
		g.room.open.Add(-1)
	}
	return g.TCPConn.Close()
}
