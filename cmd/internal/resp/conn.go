package resp

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A conn is the connection of a client. Only its goroutine may call its methods, except interrupt.
type conn struct {
	net.Conn
	server         *Server
	settings       *Settings
	id             int64
	name           string
	resp3          bool
	authenticated  bool         // the client has sent its password, or needs none
	closing        bool         // the connection ends after the answers that wait
	wrongPasswords int          // number of wrong passwords so far; RESET does not clear it
	multi          *transaction // the current transaction, or nil

	parser parser
	small  [smallBuffer]byte
	large  *[maxCommand]byte // from largeBuffers; nil while it is not needed
	buffer []byte            // small, or large
	end    int               // end of the bytes in buffer that are not answered yet

	waitingFor  waitReason
	hasProgress bool // a command was completed since the wait began

	stopping atomic.Bool
}

var largeBuffers = sync.Pool{New: func() any { return new([maxCommand]byte) }}

// NetConn returns the connection below TLS.
func (c *conn) NetConn() net.Conn {
	if t, ok := c.Conn.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c.Conn
}

// interrupt ends the connection if it waits for a command. This method may be called from any goroutine.
func (c *conn) interrupt() {
	c.stopping.Store(true)
	_ = c.NetConn().SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
}

func (c *conn) serve() {
	c.buffer = c.small[:]
	defer c.shrink()
	if c.useSettings()(); c.settings == nil || c.handshake() != nil {
		return
	}
	c.authenticated = len(c.settings.Passwords) == 0
	for !c.closing {
		if !c.await() {
			break
		}
		n, err := c.Read(c.buffer[c.end:])
		if n > 0 {
			c.end += n
			if !c.answer() {
				return
			}
			c.resize(n)
		}
		if err != nil {
			break
		}
	}
	c.finish()
}

// useSettings stores the current settings in the connection. The caller must call release when it no longer uses them.
func (c *conn) useSettings() (release func()) {
	settings := c.server.Settings()
	if settings == nil {
		return func() {}
	}
	if c.settings = settings; settings.Leave == nil {
		return func() {}
	}
	return settings.Leave
}

// A waitReason says what a connection waits for. The reason determines how long the connection may wait.
type waitReason uint8

const (
	waitUnbounded waitReason = iota // not set yet, or a wait without a bound
	waitCommand                     // the next command, within Settings.IdleTimeout
	waitRemainder                   // the rest of a command that has begun
	waitExec                        // the rest of a transaction
	waitPassword                    // the password; other data does not restart its time
)

// await sets the deadline for reading the next bytes. It returns false if the server is stopping.
func (c *conn) await() bool {
	reason, timeout := waitUnbounded, time.Duration(0)
	switch {
	case !c.authenticated:
		reason, timeout = waitPassword, commandTimeout
	case c.end > 0:
		reason, timeout = waitRemainder, commandTimeout
	case c.multi != nil:
		reason, timeout = waitExec, transactionTimeout
	case c.settings.IdleTimeout > 0:
		reason, timeout = waitCommand, c.settings.IdleTimeout
	}
	keepDeadline := reason == c.waitingFor && (reason == waitPassword || reason == waitUnbounded || !c.hasProgress) && reason != waitCommand
	c.waitingFor, c.hasProgress = reason, false
	if !keepDeadline && c.setReadTimeout(timeout) != nil {
		return false
	}
	return !c.stopping.Load() // checked after the deadline is set, so that the deadline of interrupt is not lost
}

// setReadTimeout sets how long reading may take from now on. 0 means any time.
func (c *conn) setReadTimeout(timeout time.Duration) error {
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	return c.SetReadDeadline(deadline)
}

func (c *conn) handshake() error {
	t, ok := c.Conn.(*tls.Conn)
	if !ok {
		return nil
	}
	if err := c.SetDeadline(time.Now().Add(commandTimeout)); err != nil {
		return err
	}
	if err := t.Handshake(); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// resize changes to the large buffer if a command does not fit into the small one. It gives the large buffer back when
// it is no longer needed.
func (c *conn) resize(read int) {
	switch size := len(c.buffer); {
	case c.large == nil && c.end+read >= size && c.authenticated: // the client has sent more than fits
		c.large = largeBuffers.Get().(*[maxCommand]byte)
		copy(c.large[:], c.buffer[:c.end])
		c.buffer = c.large[:]
	case c.large != nil && c.end == 0 && read < smallBuffer:
		c.shrink()
	}
}

func (c *conn) shrink() {
	if c.large != nil {
		largeBuffers.Put(c.large)
		c.large, c.buffer = nil, c.small[:]
	}
}

// answer answers the complete commands in the buffer. Bytes after them stay in the buffer. It returns false if the
// connection is broken.
func (c *conn) answer() bool {
	defer c.useSettings()()
	b := batches.Get().(*batch)
	b.begin(c)
	offset, ok := 0, true
	for offset < c.end && !c.closing && ok {
		length, err := c.parser.next(c.buffer[offset:c.end], c.bounds())
		if err != nil {
			b.failProtocol(c, err)
			break
		}
		if length == 0 {
			break
		}
		offset += length
		c.hasProgress = true
		if len(c.parser.args) > 0 {
			b.dispatch(c, c.parser.args)
		}
		if len(b.out) >= flushBytes {
			ok = b.flush(c)
		}
	}
	ok = ok && b.flush(c)
	b.release(c)
	c.end = copy(c.buffer, c.buffer[offset:c.end])
	return ok
}

func (c *conn) bounds() bounds {
	if c.authenticated {
		return boundsAfterAuth
	}
	return boundsBeforeAuth
}

// A closing connection still reads the data of the client, and drops them. These numbers bound the time and the bytes.
const (
	drainTimeout       = time.Second
	drainTimeoutOnStop = 20 * time.Millisecond // when the server stops
	maxDrain           = 1 << 20
)

// finish announces the end of the answers, and then reads what the client still sends. If a connection with unread data
// were closed, the system would send a reset, which can overtake the last answer.
func (c *conn) finish() {
	type halfCloser interface{ CloseWrite() error }
	timeout := drainTimeout
	if c.stopping.Load() {
		timeout = drainTimeoutOnStop
	}
	if h, ok := c.Conn.(halfCloser); !ok || h.CloseWrite() != nil || c.setReadTimeout(timeout) != nil {
		return
	}
	for range maxDrain / smallBuffer {
		if _, err := c.Read(c.small[:]); err != nil {
			return
		}
	}
}
