package resp

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A conn is the connection of a client. Only its goroutine may call its methods, except leave.
type conn struct {
	net.Conn
	server   *Server
	settings *Settings
	id       int64
	name     string
	resp3    bool
	known    bool         // the client has sent its password, or needs none
	closing  bool         // the connection ends after the answers that wait
	wrong    int          // number of wrong passwords so far; RESET does not clear it
	multi    *transaction // the current transaction, or nil

	parser parser
	small  [smallBuffer]byte
	large  *[maxCommand]byte // from largeBuffers; nil while it is not needed
	buffer []byte            // small, or large
	end    int               // end of the bytes in buffer that are not answered yet

	waits    wait
	progress bool // a command was completed since the wait began

	leaving atomic.Bool
}

var largeBuffers = sync.Pool{New: func() any { return new([maxCommand]byte) }}

// NetConn returns the connection below TLS.
func (c *conn) NetConn() net.Conn {
	if t, ok := c.Conn.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c.Conn
}

// leave ends the connection if it waits for a command. This method may be called from any goroutine.
func (c *conn) leave() {
	c.leaving.Store(true)
	_ = c.NetConn().SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
}

func (c *conn) serve() {
	c.buffer = c.small[:]
	defer c.shrink()
	if c.enter()(); c.settings == nil || c.handshake() != nil {
		return
	}
	c.known = len(c.settings.Passwords) == 0
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

// enter stores the current settings in the connection. The caller must call leave when it no longer uses them.
func (c *conn) enter() (leave func()) {
	settings := c.server.Settings()
	if settings == nil {
		return func() {}
	}
	if c.settings = settings; settings.Leave == nil {
		return func() {}
	}
	return settings.Leave
}

// A wait says what a connection waits for, which determines how long it may wait.
type wait uint8

const (
	forNothing  wait = iota // not set yet, or nothing with a bound
	forCommand              // the next command, within Settings.IdleTimeout
	forItsRest              // the rest of a command that has begun
	forExec                 // the rest of a transaction
	forPassword             // the password; other data does not restart its time
)

// await sets the deadline for reading the next bytes. It returns false if the server is stopping.
func (c *conn) await() bool {
	next, most := forNothing, time.Duration(0)
	switch {
	case !c.known:
		next, most = forPassword, commandTimeout
	case c.end > 0:
		next, most = forItsRest, commandTimeout
	case c.multi != nil:
		next, most = forExec, transactionTimeout
	case c.settings.IdleTimeout > 0:
		next, most = forCommand, c.settings.IdleTimeout
	}
	goesOn := next == c.waits && (next == forPassword || next == forNothing || !c.progress) && next != forCommand
	c.waits, c.progress = next, false
	if !goesOn && c.setReadTime(most) != nil {
		return false
	}
	return !c.leaving.Load() // checked after the deadline is set, so that the deadline of leave is not lost
}

// setReadTime sets how long reading may take from now on. 0 means any time.
func (c *conn) setReadTime(most time.Duration) error {
	var until time.Time
	if most > 0 {
		until = time.Now().Add(most)
	}
	return c.SetReadDeadline(until)
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
	switch full := len(c.buffer); {
	case c.large == nil && c.end+read >= full && c.known: // the client has sent more than fits
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
	defer c.enter()()
	b := batches.Get().(*batch)
	b.begin(c)
	at, fine := 0, true
	for at < c.end && !c.closing && fine {
		length, err := c.parser.next(c.buffer[at:c.end], c.bounds())
		if err != nil {
			b.broken(c, err)
			break
		}
		if length == 0 {
			break
		}
		at += length
		c.progress = true
		if len(c.parser.args) > 0 {
			b.command(c, c.parser.args)
		}
		if len(b.out) >= flushAt {
			fine = b.flush(c)
		}
	}
	fine = fine && b.flush(c)
	b.release(c)
	c.end = copy(c.buffer, c.buffer[at:c.end])
	return fine
}

func (c *conn) bounds() bounds {
	if c.known {
		return clientsBounds
	}
	return strangersBounds
}

// A closing connection still reads the data of the client, and drops them. These numbers bound the time and the bytes.
const (
	lastWords      = time.Second
	lastWordsAtEnd = 20 * time.Millisecond // when the server stops
	lastBytes      = 1 << 20
)

// finish announces the end of the answers, and then reads what the client still sends. If a connection with unread data
// were closed, the system would send a reset, which can overtake the last answer.
func (c *conn) finish() {
	type half interface{ CloseWrite() error }
	most := lastWords
	if c.leaving.Load() {
		most = lastWordsAtEnd
	}
	if h, ok := c.Conn.(half); !ok || h.CloseWrite() != nil || c.setReadTime(most) != nil {
		return
	}
	for range lastBytes / smallBuffer {
		if _, err := c.Read(c.small[:]); err != nil {
			return
		}
	}
}
