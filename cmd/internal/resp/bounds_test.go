package resp

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/internal/testrace"
)

// memory is a connection without a network. Read returns the bytes of in, and Write drops all bytes.
type memory struct {
	net.Conn
	in   []byte
	rest []byte
	size int64 // how many bytes were written
	most int   // the largest number of bytes in one write
}

func (m *memory) Read(p []byte) (int, error) {
	if len(m.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

func (m *memory) Write(p []byte) (int, error) {
	m.size += int64(len(p))
	m.most = max(m.most, len(p))
	return len(p), nil
}
func (*memory) Close() error                     { return nil }
func (*memory) SetReadDeadline(time.Time) error  { return nil }
func (*memory) SetWriteDeadline(time.Time) error { return nil }

// TestATakeDoesNotAllocate: a take does not allocate, from reading the bytes of a pipeline to writing the bytes of its
// answers.
func TestATakeDoesNotAllocate(t *testing.T) {
	if testrace.Enabled {
		t.Skip("allocations are not counted under the race detector")
	}
	clock := newClock()
	settings := &Settings{Limiter: clock.limiter(t, longestOfTests), Longest: longestOfTests}
	for _, command := range []string{"CL.THROTTLE key:1 15 30 60", "rl.throttle key:1 15 30 60 2", "CL.THROTTLE key:1 15 30 60 0",
		"GCRA key:1 15 30 60.5", "GCRA key:1 15 30 60 TOKENS 3"} {
		for _, pipeline := range []int{1, 64, 1000} {
			m := &memory{in: []byte(strings.Repeat(resp(command), pipeline))}
			c := &conn{Conn: m, server: &Server{Settings: func() *Settings { return settings }, Counters: &Counters{}}, settings: settings, authenticated: true}
			c.buffer = c.small[:]
			round := func() {
				for m.rest = m.in; len(m.rest) > 0; {
					n, _ := c.Read(c.buffer[c.end:])
					c.end += n
					c.await()
					require.True(t, c.answer())
					c.resize(n)
				}
			}
			round()
			assert.Zero(t, testalloc.PerCall(round), "%d of %s", pipeline, command)
			assert.Positive(t, m.size)
			assert.Zero(t, c.end)
		}
	}
}

// impatient is a connection of the server on which clients have little time to read.
type impatient struct{ *net.TCPConn }

func (c impatient) SetWriteDeadline(time.Time) error {
	return c.TCPConn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
}

// TestASlowReaderIsDropped: a client sends without end and reads nothing. It gets only a bounded buffer, and is cut
// off.
func TestASlowReaderIsDropped(t *testing.T) {
	d := openWith(t, func(c net.Conn) net.Conn { return impatient{c.(*net.TCPConn)} })
	c := d.dial()
	flood := []byte(strings.Repeat("COMMAND DOCS\r\n", 1000)) // the answers are a thousand times as long
	for {
		if _, err := c.Write(flood); err != nil {
			break
		}
	}
	require.Eventually(t, func() bool { return d.Open() == 0 }, time.Minute, time.Millisecond)
	assert.EqualValues(t, 1, d.counters.Count().Slow)
}

// TestALargeBufferIsGivenBack: a waiting connection gives its large buffer back. The memory for answers is bounded.
func TestALargeBufferIsGivenBack(t *testing.T) {
	settings := &Settings{Limiter: newClock().limiter(t, longestOfTests)}
	m := &memory{}
	c := &conn{Conn: m, server: &Server{Settings: func() *Settings { return settings }, Counters: &Counters{}}, settings: settings, authenticated: true}
	c.buffer = c.small[:]
	feed := func(text string) {
		for m.rest = []byte(text); len(m.rest) > 0; {
			n, _ := c.Read(c.buffer[c.end:])
			c.end += n
			require.True(t, c.answer())
			c.resize(n)
		}
	}
	feed(strings.Repeat("PING\r\n", 10_000))
	require.NotNil(t, c.large)
	feed(strings.Repeat("COMMAND DOCS\r\n", 5000))
	assert.Less(t, m.most, flushBytes+16<<10, "answers that are held before they are written")
	feed("PING\r\n")
	assert.Nil(t, c.large)
	assert.Len(t, c.buffer, smallBuffer)
}

// TestThousandsOfConnections: thousands of waiting connections take little memory, and all get answers.
func TestThousandsOfConnections(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	d := open(t)
	before := inUse()
	all := make([]*net.TCPConn, n)
	for i := range all {
		c, err := net.Dial("tcp", d.address)
		if err != nil {
			t.Skipf("%d connections are as many as this machine has room for: %v", i, err)
		}
		defer c.Close()
		all[i] = c.(*net.TCPConn)
		_, err = io.WriteString(c, resp(fmt.Sprintf("CL.THROTTLE k%d 0 1 60", i)))
		require.NoError(t, err)
	}
	for _, c := range all {
		answer := make([]byte, len("*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n"))
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := io.ReadFull(c, answer)
		require.NoError(t, err)
		assert.Equal(t, "*5 :0 :1 :0 :-1 :60", flat(string(answer)))
	}
	assert.Less(t, (int64(inUse())-int64(before))/int64(n), int64(32<<10), "bytes for each connection that waits, both ends")
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// TestAPassword: without the password, a client can only log in. Until then, the client gets little memory.
func TestAPassword(t *testing.T) {
	const noAuth, wrong = "-NOAUTH Authentication required.", "-WRONGPASS invalid username-password pair or user is disabled."
	for _, c := range []struct{ name, sent, want string }{
		{"none", resp("PING", "CL.THROTTLE a 0 1 60", "FOO", "DEL a", "INFO"), strings.TrimSpace(strings.Repeat(noAuth+" ", 5))},
		{"a wrong one", resp("AUTH x", "PING", "AUTH default x", "AUTH other old", "PING"), strings.Join([]string{wrong, noAuth, wrong, wrong, noAuth}, " ")},
		{"the right one", resp("AUTH new", "PING"), "+OK +PONG"},
		{"the other right one", resp("AUTH default old", "PING"), "+OK +PONG"},
		{"after a wrong one", resp("AUTH old", "AUTH x", "PING"), "+OK " + wrong + " +PONG"},
		{"hello without", resp("HELLO 3", "PING"), "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> " +
			"AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time " + noAuth},
		{"hello with a wrong one", resp("HELLO 3 AUTH default x", "PING"), wrong + " " + noAuth},
		{"quit", resp("QUIT"), "+OK"},
		{"reset", resp("AUTH old", "RESET", "PING"), "+OK +RESET " + noAuth},
		{"a long command", "*2\r\n$4\r\nAUTH\r\n$4097\r\n", "-ERR Protocol error: invalid bulk length 4097: want 0 to 4096"},
		{"many arguments", "*11\r\n", "-ERR Protocol error: invalid multibulk length 11: want at most 10"},
		{"a long line", strings.Repeat("x", 5000), "-ERR Protocol error: too big inline request: want at most 4096 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, flat(open(t, "old", "new").says(c.sent)))
		})
	}
	got := flat(open(t, "old").says(resp("HELLO 3 AUTH default old SETNAME me", "CLIENT GETNAME")))
	assert.True(t, strings.HasPrefix(got, "%7 ") && strings.HasSuffix(got, " $2 me"), got)
}

// TestPasswordsAreNotGuessedInAPipeline: a few wrong passwords end the connection. The right password, later in the
// pipeline, is not read.
func TestPasswordsAreNotGuessedInAPipeline(t *testing.T) {
	d := open(t, "secret")
	answer := d.says(strings.Repeat("AUTH wrong\r\nRESET\r\n", maxWrongPasswords) + "AUTH secret\r\nPING\r\n")
	assert.Equal(t, maxWrongPasswords, strings.Count(answer, "-WRONGPASS"))
	assert.NotContains(t, answer, "PONG")
	answer = d.says(strings.Repeat("AUTH wrong\r\n", maxWrongPasswords-1) + "AUTH secret\r\nPING\r\n")
	assert.Contains(t, answer, "PONG")
}

// TestChangedSettings: a new password applies only to new connections. A new table applies to all.
func TestChangedSettings(t *testing.T) {
	d := open(t)
	c := d.dial()
	ask := func() string {
		_, err := io.WriteString(c, resp("CL.THROTTLE a 0 1 60"))
		require.NoError(t, err)
		answer := make([]byte, 200)
		n, err := c.Read(answer)
		require.NoError(t, err)
		return flat(string(answer[:n]))
	}
	assert.Equal(t, "*5 :0 :1 :0 :-1 :60", ask())
	assert.Equal(t, "*5 :1 :1 :0 :60 :60", ask())
	all, err := ParsePasswords("x")
	require.NoError(t, err)
	d.settings.Store(&Settings{Limiter: d.clock.limiter(t, longestOfTests), Longest: longestOfTests, Passwords: all})
	assert.Equal(t, "*5 :0 :1 :0 :-1 :60", ask())
	assert.Equal(t, "-NOAUTH Authentication required.", flat(d.says(resp("PING"))))
	d.settings.Store(nil) // the listener is being closed
	assert.Equal(t, "*5 :1 :1 :0 :60 :60", ask())
}

// TestShutdownAnswersWhatItHasRead: a shutdown ends waiting connections at once, but first answers commands that were
// already read.
func TestShutdownAnswersWhatItHasRead(t *testing.T) {
	var reads atomic.Int64
	answer := make(chan struct{})
	d := openWith(t, func(c net.Conn) net.Conn { return &held{TCPConn: c.(*net.TCPConn), reads: &reads, answer: answer} })
	idle, busy := d.dial(), d.dial()
	_, err := io.WriteString(busy, "PING\r\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return reads.Load() == 1 && d.Open() == 2 }, time.Minute, time.Millisecond)
	done := make(chan error)
	go func() { done <- d.Shutdown(context.Background()) }()
	got, err := io.ReadAll(idle)
	require.NoError(t, err)
	assert.Empty(t, got)
	close(answer)
	got, err = io.ReadAll(busy)
	require.NoError(t, err)
	assert.Equal(t, "+PONG\r\n", string(got))
	require.NoError(t, <-done)
}

// TestShutdownEndsInTime: at a shutdown, a client that does not read its answers is cut off.
func TestShutdownEndsInTime(t *testing.T) {
	d := open(t)
	c := d.dial()
	flood := []byte(strings.Repeat("COMMAND DOCS\r\n", 1000))
	require.NoError(t, c.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	for {
		if _, err := c.Write(flood); err != nil {
			break // the server reads no more, because it waits until the client reads
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, d.Shutdown(ctx), context.DeadlineExceeded)
	assert.Zero(t, d.Open())
}

// held is a connection that writes its answers only when the channel answer is closed.
type held struct {
	*net.TCPConn
	reads  *atomic.Int64
	answer chan struct{}
}

func (c *held) Write(p []byte) (int, error) {
	c.reads.Add(1)
	<-c.answer
	return c.TCPConn.Write(p)
}

// TestTheServerOutlivesAFullSystem: if the system has no room for another connection, the server continues.
func TestTheServerOutlivesAFullSystem(t *testing.T) {
	l := &failing{errs: []error{
		&net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}, syscall.ECONNABORTED, net.ErrClosed,
	}}
	assert.ErrorIs(t, (&Server{Counters: &Counters{}}).Serve(l), net.ErrClosed)
	assert.Empty(t, l.errs)
}

// failing is a listener that returns errors, one after the other.
type failing struct {
	net.Listener
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, err
}
