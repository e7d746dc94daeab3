package serve

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func address(t *testing.T, hostPort string) Address {
	t.Helper()
	var a Address
	require.NoError(t, a.UnmarshalText([]byte(hostPort)))
	assert.Equal(t, hostPort, a.String())
	return a
}

func TestPortInUse(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	taken := other.Addr().String()
	_, err = Listen(Config{Listen: address(t, taken)})
	assert.EqualError(t, err, "cannot listen on "+taken+": the port is in use; "+
		"stop the program that has it, or choose another port with --listen (port 0 takes a free one)")
}

func TestListenErrorsSayWhatToDo(t *testing.T) {
	// 192.0.2.1 is reserved for documentation: no machine has it.
	_, err := Listen(Config{Listen: address(t, "192.0.2.1:0")})
	assert.ErrorContains(t, err, "cannot listen on 192.0.2.1:0: this machine has no such address")

	a := address(t, "127.0.0.1:80")
	wrap := func(e error) error { return &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", e)} }
	assert.ErrorContains(t, explainListen(a, wrap(syscall.EACCES)), "ports below 1024 are for the administrator")
	assert.ErrorContains(t, explainListen(a, &net.DNSError{Err: "no such host"}), "this machine has no such address")
	odd := errors.New("odd")
	assert.ErrorIs(t, explainListen(a, odd), odd)
	assert.ErrorIs(t, wrap(syscall.EACCES), fs.ErrPermission)
}

func TestAddressRefusesWhatIsNotHostPort(t *testing.T) {
	for text, want := range map[string]string{
		"":               `listen address "": want host:port`,
		"8080":           `listen address "8080": want host:port; write for example 127.0.0.1:8080`,
		"::1:8080":       `listen address "::1:8080": want host:port`,
		"localhost:http": `listen address "localhost:http": the port is "http", want 0 to 65535`,
		"localhost:":     `the port is "", want 0 to 65535`,
		":65536":         `the port is "65536", want 0 to 65535`,
		":-1":            `the port is "-1", want 0 to 65535`,
	} {
		var a Address
		assert.ErrorContains(t, a.UnmarshalText([]byte(text)), want)
	}
}

// at is a listener that is at an address, for its URL only.
type at struct {
	net.Listener
	addr net.TCPAddr
}

func (l *at) Addr() net.Addr { return &l.addr }

func TestURLIsOneThatCanBeTried(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1": "http://127.0.0.1:8080/",
		"0.0.0.0":   "http://localhost:8080/",
		"::":        "http://localhost:8080/",
		"::1":       "http://[::1]:8080/",
	} {
		assert.Equal(t, want, urlOf(&at{addr: net.TCPAddr{IP: net.ParseIP(host), Port: 8080}}))
	}
}

func TestShutdownLetsRequestsFinish(t *testing.T) {
	entered, finish := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-finish
		_, _ = io.WriteString(w, "done")
	}))
	defer upstream.Close()
	s := start(t, "ip", upstream.URL)

	got := make(chan answer, 1)
	go func() { got <- s.get("/") }()
	<-entered
	stopped := make(chan struct{})
	go func() { s.stop(); close(stopped) }()
	// The port closes first: as soon as it does, the request is one under way.
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", s.listener.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err != nil
	}, shutdownTimeout/2, shutdownTimeout/1000)
	select {
	case <-stopped:
		t.Fatal("stopped before the request had finished")
	default:
	}
	close(finish)
	assert.Equal(t, "done", (<-got).body)
	<-stopped
	assert.Contains(t, s.log.String(), "msg=stopped requests=1 allowed=1 refused=0")
}

func TestRunReportsAListenerThatBreaks(t *testing.T) {
	config := start(t, "ip", "").config
	config.Listen = address(t, "127.0.0.1:0")
	s, err := Listen(config)
	require.NoError(t, err)
	require.NoError(t, s.listener.Close())
	assert.ErrorIs(t, s.Run(t.Context()), net.ErrClosed)
}
