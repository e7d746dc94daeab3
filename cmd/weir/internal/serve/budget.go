package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// A budget divides the files that the process may have open. A connection is a file, to a client or to an upstream.
//
//   - reserve is for all else: listeners, the rule file, the administrator's connections, those of other proxies that
//     ask, and the store's. So the administrator can look at a server that is full.
//   - Clients get half of the rest, unless the rule file says max_connections.
//   - Upstreams get what is left. Over HTTP/2 one client can have many requests under way, a connection to an upstream
//     each.
type budget struct {
	clients   int64 // connections; 0 for no bound
	upstreams int64 // connections; 0 for no bound
}

const (
	minReserve = 32
	maxReserve = 256
)

// newBudget divides so many files, 0 for no bound.
func newBudget(files uint64, s *config.Server) budget {
	most := int64(s.MaxConnections)
	if files == 0 {
		return budget{clients: max(most, 0)}
	}
	rest := max(int64(files)-min(max(int64(files)/8, minReserve), maxReserve), 2)
	if most == config.ByOpenFiles {
		most = rest / 2
	}
	if most == 0 { // no bound: upstreams cannot know what clients leave
		return budget{upstreams: rest}
	}
	return budget{clients: most, upstreams: max(rest-most, 1)}
}

// warn says that more connections are allowed than there can be.
func (b budget) warn(files uint64, log *slog.Logger) {
	if files > 0 && (b.clients == 0 || 2*uint64(b.clients)+minReserve > files) {
		log.Warn("the limit of open files is too low for so many connections: raise LimitNOFILE or ulimit -n",
			"open_files", files, "max_connections", b.clients)
	}
}

var errNoFile = errors.New("as many connections to upstreams are open as the limit of open files allows")

// upstreamConns counts the connections to all upstreams.
type upstreamConns struct {
	most atomic.Int64 // 0 for no bound
	open atomic.Int64
}

// dialer returns a function that dials and counts the connection until it is closed. When there are too many, it closes
// idle connections and tries once more.
func (u *upstreamConns) dialer(dial func(context.Context, string, string) (net.Conn, error), closeIdle func(),
) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if !u.add() {
			closeIdle()
			if !u.add() {
				return nil, errNoFile
			}
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			u.open.Add(-1)
			return nil, err
		}
		return &upstreamConn{Conn: conn, conns: u}, nil
	}
}

func (u *upstreamConns) add() bool {
	open := u.open.Add(1)
	if most := u.most.Load(); most > 0 && open > most {
		u.open.Add(-1)
		return false
	}
	return true
}

// An upstreamConn is a connection that counts until it is closed.
type upstreamConn struct {
	net.Conn
	conns  *upstreamConns
	closed atomic.Bool
}

// ReadFrom is for io.Copy, and as quick as that of the connection.
func (c *upstreamConn) ReadFrom(from io.Reader) (int64, error) { return io.Copy(c.Conn, from) }

// Close implements [net.Conn].
func (c *upstreamConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.conns.open.Add(-1)
	}
	return c.Conn.Close()
}
