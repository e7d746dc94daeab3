package serve

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/weir-go/weir/cmd/internal/listen"
)

// copied returns another descriptor of a socket. systemd would pass the socket in this way.
func copied(t *testing.T, socket syscall.Conn) *os.File {
	t.Helper()
	conn, err := socket.SyscallConn()
	require.NoError(t, err)
	var fd int
	require.NoError(t, conn.Control(func(of uintptr) { fd, err = syscall.Dup(int(of)) }))
	require.NoError(t, err)
	return os.NewFile(uintptr(fd), "weir.socket")
}

// TestASocketWhoseFileIsGone: if the file of an inherited Unix socket is missing, no client can connect. So weir
// creates a new socket. If systemd passed the socket, weir reports an error instead.
func TestASocketWhoseFileIsGone(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	first := start(t, "listen: unix:"+path+"\n"+one)
	require.NoError(t, os.Remove(path))
	next := succeed(t, first)
	assert.Contains(t, first.log.String(), `level=WARN msg="upgrade: the file of a Unix socket is gone, so no one can connect: `+
		`the next process makes the socket anew" listen=unix:`+path+"\n")
	first.stop()
	status, _ := askSocket(t, path, "/")
	assert.Equal(t, http.StatusOK, status)
	next.stop()
	assert.NoFileExists(t, path)

	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, os.Remove(path))
	_, err = listen.Passed([]*os.File{copied(t, l)})
	assert.ErrorContains(t, err, "the inherited socket weir.socket: its file is gone, so no one can connect: restart the program "+
		"that has bound it (with systemd: the socket unit)")
}

// TestAnAddressThatWeirItselfHas: a reload or an upgrade may need a new socket on a port that weir itself uses. It then
// fails, says what to do, and the current socket stays open.
func TestAnAddressThatWeirItselfHas(t *testing.T) {
	const advice = ", and a reload or an upgrade closes nothing before what is new is open: stop weir and start it again, or " +
		"reload with another address in between"
	const address = "127.0.0.1:0"
	s := start(t, "listen: "+address+"\n"+one)
	_, port, err := net.SplitHostPort(s.address())
	require.NoError(t, err)
	s.path = filepath.Join(t.TempDir(), "weir.yaml") // not the file that the server watches
	s.write("listen: \":" + port + "\"\n" + one)
	assert.EqualError(t, s.Reload(), "cannot listen on :"+port+": weir has it already, at "+address+" for clients"+advice)

	handed, err := s.socketsForNext()
	require.NoError(t, err)
	inherited, err := handed.Inherit(closer{io.Discard})
	require.NoError(t, err)
	every := parsed(t, "listen: \":"+port+"\"\n"+one)
	_, err = Start(Config{File: every, Log: slog.New(slog.DiscardHandler), Inherited: inherited})
	assert.EqualError(t, err, "cannot listen on :"+port+": the weir before has it, at "+address+" for clients"+advice)
	assert.Equal(t, "200", s.statuses(1))

	of, err := net.Listen("tcp", address)
	require.NoError(t, err)
	defer of.Close()
	inherited, err = listen.Passed([]*os.File{copied(t, of.(*net.TCPListener))})
	require.NoError(t, err)
	_, port, err = net.SplitHostPort(of.Addr().String())
	require.NoError(t, err)
	every = parsed(t, "listen: \":"+port+"\"\n"+one)
	_, err = Start(Config{File: every, Log: slog.New(slog.DiscardHandler), Inherited: inherited})
	assert.EqualError(t, err, "cannot listen on :"+port+": systemd has it, and has passed the socket weir.socket, "+of.Addr().String()+
		": write that address into the rule file, or change ListenStream= in systemd's unit")

	path := filepath.Join(socketDir(t), "s")
	local := start(t, "listen: unix:"+path+"\n"+one)
	local.write("listen: 127.0.0.1:0\ndecide: unix:" + path + "\ntrusted_proxies: 127.0.0.1\n" + one)
	assert.EqualError(t, local.Reload(), "cannot listen on unix:"+path+": weir has it already, at unix:"+path+" for clients"+advice)
}

// TestAnotherHostWithReusePort: with reuse_port, weir can open a port at all addresses while the same port is open at
// one address.
func TestAnotherHostWithReusePort(t *testing.T) {
	address := keptPort(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	text := func(host string) string {
		return "listen: {address: \"" + net.JoinHostPort(host, port) + "\", reuse_port: true}\n" + one
	}
	s := start(t, text("127.0.0.1"))
	for _, host := range []string{"0.0.0.0", "127.0.0.1"} {
		s.change(text(host))
		assert.Equal(t, "200", s.statuses(1))
	}
}
