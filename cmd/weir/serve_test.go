//go:build unix

package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// started is the program as a server, with its log.
type started struct {
	*exec.Cmd
	t      *testing.T
	stderr *os.File
	lines  *bufio.Scanner
}

func startProgram(t *testing.T, args ...string) *started {
	t.Helper()
	return startCommand(t, exec.Command(build(t), args...))
}

func startCommand(t *testing.T, cmd *exec.Cmd) *started {
	t.Helper()
	s := &started{Cmd: cmd, t: t}
	// The test makes the pipe for the log, because a successor also writes its log to this pipe.
	stderr, theirs, err := os.Pipe()
	require.NoError(t, err)
	s.stderr, s.Stderr = stderr, theirs
	require.NoError(t, s.Start())
	require.NoError(t, theirs.Close())
	t.Cleanup(func() {
		_ = s.Process.Kill() // normally it has ended before
		_ = stderr.Close()   // a test may have closed it
	})
	s.lines = bufio.NewScanner(stderr)
	return s
}

// The method until reads the log until a line matches the pattern. It returns the texts of the groups in the pattern.
func (s *started) until(pattern string) []string {
	s.t.Helper()
	require.NoError(s.t, s.stderr.SetReadDeadline(time.Now().Add(time.Minute)))
	for s.lines.Scan() {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(s.lines.Text()); found != nil {
			return found[1:]
		}
	}
	require.Fail(s.t, "the log ends without", pattern)
	return nil
}

func status(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func TestProgramServesARuleFileAndReloadsIt(t *testing.T) {
	text := "listen: 127.0.0.1:0\nadmin: {address: \"127.0.0.1:0\"}\nrules: [{name: clients, rate: 1/h, burst: 2}]\n"
	name := file(t, "weir.yaml", text)
	s := startProgram(t, "serve", name)
	url := s.until(`msg=listening url=(\S+) for=clients`)[0]
	admin := s.until(`msg=listening url=(\S+) for=administrators`)[0]
	assert.Equal(t, []int{200, 200, 429}, []int{status(t, url), status(t, url), status(t, url)})

	require.NoError(t, s.Process.Signal(syscall.SIGHUP))
	s.until(`msg=reloaded .* changes=0 generation=1`)
	assert.Equal(t, 429, status(t, url), "a reload refills nothing")

	require.NoError(t, os.WriteFile(name, []byte(strings.Replace(text, "rate", "rat", 1)), 0o600))
	s.until(`msg="reload: .*weir.yaml:3:25: unknown key \\"rat\\": did you mean \\"rate\\"\?"`)
	s.until(`msg="reload failed: everything stays as it was" generation=1`)
	assert.Equal(t, 200, status(t, admin+"readyz"))

	require.NoError(t, os.WriteFile(name, []byte(strings.Replace(text, "burst: 2", "burst: 2, shadow: true", 1)), 0o600))
	s.until(`msg="reload: rule clients: changed: shadow"`)
	s.until(`msg=reloaded`)
	assert.Equal(t, 200, status(t, url))

	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	s.until(`msg=stopped requests=5 allowed=3 refused=2 upstream_failures=0`)
	assert.NoError(t, s.Wait())
}

// TestProgramOutlivesItsLog: if standard error is closed, the program does not end (SIGPIPE). If no process reads it,
// requests do not wait.
func TestProgramOutlivesItsLog(t *testing.T) {
	text := "listen: 127.0.0.1:0\nupstream: http://127.0.0.1:1\nlog: {access: all}\n" +
		"rules: [{name: a, rate: 1/d, burst: 100000}]\n"
	s := startProgram(t, "serve", file(t, "weir.yaml", text))
	url := s.until(`msg=listening url=(\S+) for=clients`)[0]
	for range 1000 { // more than fits into the pipe and the scanner
		require.Equal(t, 502, status(t, url+strings.Repeat("x", 500)))
	}
	require.NoError(t, s.stderr.Close())
	for range 20 {
		require.Equal(t, 502, status(t, url))
	}
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, s.Wait())
}

// TestProgramUnderALowLimitOfOpenFiles: the program may open 256 files, and a few hundred connections are open. Clients
// and the administrator still get answers.
func TestProgramUnderALowLimitOfOpenFiles(t *testing.T) {
	text := "listen: 127.0.0.1:0\nadmin: {address: \"127.0.0.1:0\"}\nrules: [{name: a, rate: 1/d, burst: 1000}]\n"
	s := startCommand(t, exec.Command("sh", "-c", `ulimit -n 256 && exec "$0" serve "$1"`, build(t), file(t, "weir.yaml", text)))
	url := s.until(`msg=listening url=(\S+) for=clients`)[0]
	admin := s.until(`msg=listening url=(\S+) for=administrators`)[0]
	go func() { _, _ = io.Copy(io.Discard, s.stderr) }()
	var conns []net.Conn
	for range 300 {
		conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/"))
		require.NoError(t, err)
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	client := http.Client{Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	resp, err := client.Get(admin + "metrics")
	require.NoError(t, err, "the administrator is answered when the server is full")
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, 200, resp.StatusCode)
	for _, conn := range conns {
		require.NoError(t, conn.Close())
	}
	assert.Eventually(t, func() bool {
		resp, err := client.Get(url)
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == 200
	}, time.Minute, time.Millisecond)
}
