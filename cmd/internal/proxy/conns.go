package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
)

var errNoFile = errors.New("the connections to upstreams have reached the limit of open files")

type connCount struct {
	limit atomic.Int64 // 0 for no bound
	open  atomic.Int64
}

// dialer returns a function that dials, and counts the new connection until it is closed. If there are too many
// connections, the function closes idle ones and tries once more.
func (u *connCount) dialer(dial func(context.Context, string, string) (net.Conn, error), closeIdle func(),
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
		return &countedConn{Conn: conn, count: u}, nil
	}
}

func (u *connCount) add() bool {
	open := u.open.Add(1)
	if limit := u.limit.Load(); limit > 0 && open > limit {
		u.open.Add(-1)
		return false
	}
	return true
}

// A countedConn is a connection that is counted until it is closed.
type countedConn struct {
	net.Conn
	count  *connCount
	closed atomic.Bool
}

// ReadFrom makes io.Copy as fast as with the wrapped connection.
func (c *countedConn) ReadFrom(from io.Reader) (int64, error) { return io.Copy(c.Conn, from) }

// CloseWrite closes the sending direction. Either end of a WebSocket may do so.
func (c *countedConn) CloseWrite() error {
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

func (c *countedConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.count.open.Add(-1)
	}
	return c.Conn.Close()
}
