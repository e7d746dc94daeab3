package serve

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weir-go/weir/cmd/internal/listen"
	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// succeed starts another server with the sockets of r, as an upgrade does. After that, r ends.
func succeed(t *testing.T, r *running) *running {
	t.Helper()
	handed, err := r.socketsForNext()
	require.NoError(t, err)
	var told strings.Builder
	inherited, err := handed.Inherit(closer{&told})
	require.NoError(t, err)
	next := startInheriting(t, r.path, inherited)
	inherited.Tell(nil)
	assert.Equal(t, listen.Serving, told.String())
	r.yield()
	return next
}

// TestTheEndAfterAnUpgrade: when an upgrade is complete, this process may end before HandOver has returned. The new
// process must not be killed then.
func TestTheEndAfterAnUpgrade(t *testing.T) {
	for _, isComplete := range []bool{true, false} {
		next := exec.Command("sleep", "60")
		require.NoError(t, next.Start())
		var l life
		l.init()
		l.upgrade.successor.Store(next.Process)
		if isComplete {
			l.upgrade.complete()
			<-l.upgrade.done
		}
		l.upgrade.killSuccessor()
		if isComplete {
			require.NoError(t, next.Process.Signal(unix.SIGTERM))
		}
		_ = next.Wait() // an error: a signal has ended it
		want := map[bool]unix.Signal{true: unix.SIGTERM, false: unix.SIGKILL}[isComplete]
		assert.Equal(t, want, next.ProcessState.Sys().(syscall.WaitStatus).Signal())
	}
}

type closer struct{ io.Writer }

func (closer) Close() error { return nil }

// TestInheritedSocketsAreServedAsBoundOnes: inherited sockets have the settings of the rule file: the PROXY protocol,
// the bound on connections, TLS, and the modes of Unix sockets.
func TestInheritedSocketsAreServedAsBoundOnes(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	writeCertificate(t, filepath.Dir(path), "weir.example")
	text := func(mode string) string {
		return fmt.Sprintf(`listen:
  - {address: "127.0.0.1:0", proxy_protocol: true}
  - {address: "127.0.0.1:0", tls: {cert: %[1]s/cert.pem, key: %[1]s/key.pem}}
  - {address: "unix:%[2]s", mode: %[3]s}
trusted_proxies: 127.0.0.1
admin: {address: "127.0.0.1:0"}
server: {max_connections: 1}
rules: [{name: default, rate: 1/h, burst: 1, max_keys: 100}]
`, filepath.Dir(path), path, mode)
	}
	first := start(t, text("600"))
	addresses := func(s *running) (all []string) {
		for _, line := range regexp.MustCompile(`msg=listening url=(?:\w+://|unix:)([^/ ]*\S*?)/? for=`).FindAllStringSubmatch(s.log.String(), -1) {
			all = append(all, line[1])
		}
		return all
	}
	before := addresses(first)
	first.write(text("660"))
	next := succeed(t, first)
	first.stop()
	assert.Equal(t, before, addresses(next))

	info, err := os.Stat(path)
	require.NoError(t, err, "the file stays when the first server ends")
	assert.Equal(t, os.FileMode(0o660), info.Mode().Perm())

	ask := func(client string) string {
		conn, err := net.Dial("tcp", before[0])
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "PROXY TCP4 %s 127.0.0.1 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", client)
		require.NoError(t, err)
		answer, err := io.ReadAll(conn) // reads to the end of the connection, which is then no longer counted
		require.NoError(t, err)
		require.NotEmpty(t, answer)
		return strings.Fields(string(answer))[1]
	}
	assert.Equal(t, "200 429 200", strings.Join([]string{ask("192.0.2.1"), ask("192.0.2.1"), ask("192.0.2.2")}, " "))

	secured, err := tls.Dial("tcp", before[1], &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	require.NoError(t, secured.Close())
	require.Eventually(t, func() bool { return next.connections[clients].Open() == 0 }, time.Minute, time.Millisecond)

	held, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer held.Close()
	_, err = io.WriteString(held, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(held), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	require.Eventually(t, func() bool { return next.connections[clients].Idle() == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, "200", ask("192.0.2.3"), "in the room of the connection that is idle, the one there may be")
	_, err = held.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)

	next.stop()
	assert.NoFileExists(t, path, "it was the last server's")
}

// dialled returns a connection that the server has accepted.
func dialled(t *testing.T, s *running) net.Conn {
	t.Helper()
	before := s.connections[clients].Open()
	conn, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(s.URL(), "http://"), "/"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.Eventually(t, func() bool { return s.connections[clients].Open() > before }, time.Minute, time.Millisecond)
	return conn
}

func exchangeOn(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer
}

func isGone(t *testing.T, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, time.Minute, time.Millisecond)
}

// TestAnAcceptedConnectionIsAnswered: a connection was accepted before the ports closed. Its request is answered. An
// http.Server alone would close the connection.
func TestAnAcceptedConnectionIsAnswered(t *testing.T) {
	s := start(t, one)
	conn := dialled(t, s)
	go s.stop()
	isGone(t, conn.RemoteAddr().String())
	answer := exchangeOn(t, conn)
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	assert.True(t, answer.Close, "it says that it is the last one")
	s.stop()
}

// TestAnIdleConnectionHasOneMoreAnswer: after an upgrade, the old process gives an idle connection one more answer.
func TestAnIdleConnectionHasOneMoreAnswer(t *testing.T) {
	s := start(t, one)
	conn := dialled(t, s)
	assert.False(t, exchangeOn(t, conn).Close)
	next := succeed(t, s)
	require.Eventually(t, s.sockets.Leaving, time.Minute, time.Millisecond)
	answer := exchangeOn(t, conn)
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	assert.True(t, answer.Close)
	s.stop()
	assert.Equal(t, "200", next.statuses(1))
}

// TestShutdownDelayEndsConnections: during shutdown_delay, a connection gets one more answer and then ends.
func TestShutdownDelayEndsConnections(t *testing.T) {
	s := start(t, "server: {shutdown_delay: 1s}\n"+one)
	conn := dialled(t, s)
	assert.False(t, exchangeOn(t, conn).Close)
	go s.stop()
	<-s.asleep
	assert.True(t, exchangeOn(t, conn).Close)
	s.wake <- 0
	s.stop()
}

// TestSocketsThatCannotBeInherited: if a socket cannot be inherited, the error names the socket and the reason.
func TestSocketsThatCannotBeInherited(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	connected, err := net.Dial("tcp", tcp.Addr().String())
	require.NoError(t, err)
	defer connected.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer udp.Close()
	datagrams, err := net.ListenPacket("unixgram", filepath.Join(socketDir(t), "s"))
	require.NoError(t, err)
	defer datagrams.Close()
	packets, err := net.Listen("unixpacket", filepath.Join(socketDir(t), "s"))
	require.NoError(t, err)
	defer packets.Close()
	for _, socket := range []*os.File{
		copied(t, connected.(*net.TCPConn)), copied(t, udp.(*net.UDPConn)), copied(t, datagrams.(*net.UnixConn)),
		copied(t, packets.(*net.UnixListener)),
	} {
		_, err := listen.Passed([]*os.File{socket})
		assert.EqualError(t, err, "the inherited socket weir.socket: want one that listens for connections: ListenStream= and "+
			"Accept=no in systemd's unit")
	}
	inherited, err := listen.Passed([]*os.File{copied(t, tcp.(*net.TCPListener))})
	require.NoError(t, err)
	_, err = Start(Config{File: parsed(t, "listen: 127.0.0.1:0\n"+one), Log: slog.New(slog.DiscardHandler), Inherited: inherited})
	assert.EqualError(t, err, "systemd has passed the socket weir.socket, "+tcp.Addr().String()+
		", and the rule file has no listener with that address: add one, or remove the socket from systemd's unit")
}

// TestAHandedSocketThatIsAnothers: if another program has replaced the file of a Unix socket, weir does not remove the
// file.
func TestAHandedSocketThatIsAnothers(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	first := start(t, "listen: unix:"+path+"\n"+one)
	require.NoError(t, os.Remove(path))
	other, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer other.Close()
	next := succeed(t, first)
	first.stop()
	next.stop()
	assert.FileExists(t, path)
}

// TestReusePort: several servers can listen on one port with reuse_port. A reload cannot change reuse_port.
func TestReusePort(t *testing.T) {
	port := keptPort(t)
	shared := fmt.Sprintf("listen: {address: %q, reuse_port: true}\n", port) + one
	first, second := start(t, shared), start(t, shared)
	assert.Equal(t, first.URL(), second.URL())
	_, err := Start(Config{File: parsed(t, "listen: "+port+"\n"+one), Log: slog.New(slog.DiscardHandler)})
	assert.ErrorContains(t, err, "the port is in use")

	first.write("listen: " + port + "\n" + one)
	assert.EqualError(t, first.Reload(), "listen "+port+": reuse_port is false, and the port is open with true, which stays "+
		"so: end weir and start it again, or set ReusePort= in the unit of systemd's socket")
	first.write(shared)
	require.NoError(t, first.Reload())
	first.stop()
	assert.Equal(t, "200", second.statuses(1))
}

func parsed(t *testing.T, text string) *rulefile.File {
	t.Helper()
	file, err := rulefile.Parse("weir.yaml", []byte(text))
	require.NoError(t, err)
	return file
}

// keptPort reserves a port by binding it with SO_REUSEPORT. No process listens on it, and the system gives it only to
// programs that share ports.
func keptPort(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unix.Close(fd)) })
	require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{})) // all addresses, because a test may listen on another
	bound, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", bound.(*unix.SockaddrInet4).Port)
}
