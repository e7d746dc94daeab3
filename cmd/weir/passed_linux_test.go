package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// passing returns a command that serves a rule file. It passes descriptors and environment variables as systemd does.
// The parameter pid is the value of LISTEN_PID. In it, $$ means the number of the process.
func passing(ctx context.Context, t *testing.T, pid, rules string, files []*os.File, variables ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, "sh", "-c", "LISTEN_PID="+pid+` exec "$0" serve "$1"`, build(t), rules)
	cmd.Env = append(os.Environ(), variables...)
	cmd.ExtraFiles = files
	return cmd
}

// TestSocketsThatAreNotPassed: LISTEN_FDS says that there are more sockets than were passed. The error then has its
// value and the range.
func TestSocketsThatAreNotPassed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	defer socket.Close()
	rules := file(t, "weir.yaml", "listen: "+l.Addr().String()+"\nrules: [{name: a, rate: 1/s}]\n")
	text, err := os.Open(rules)
	require.NoError(t, err)
	defer text.Close()
	const want = "want how many sockets are passed to this process, 1 to 2147483644: set it, or unset LISTEN_PID and LISTEN_FDS"
	for _, c := range []struct {
		pid       string
		files     []*os.File
		variables []string
		want      string
	}{
		{"x", nil, []string{"LISTEN_FDS=1"}, `LISTEN_PID="x": want the number of the process that the sockets are for, from 1: set it, ` +
			`or unset LISTEN_PID and LISTEN_FDS`},
		{"-1", nil, nil, `LISTEN_PID="-1": want the number of the process that the sockets are for, from 1`},
		{"$$", nil, []string{"LISTEN_FDS="}, `LISTEN_FDS="": ` + want},
		{"$$", nil, []string{"LISTEN_FDS=x"}, `LISTEN_FDS="x": ` + want},
		{"$$", nil, []string{"LISTEN_FDS=0"}, `LISTEN_FDS="0": ` + want},
		{"$$", nil, []string{"LISTEN_FDS=-1"}, `LISTEN_FDS="-1": ` + want},
		{"$$", nil, []string{"LISTEN_FDS=2147483645"}, `LISTEN_FDS="2147483645": ` + want},
		{"$$", []*os.File{socket}, []string{"LISTEN_FDS=2147483644"}, `LISTEN_FDS=2147483644, which are the descriptors 3 to ` +
			`2147483646: descriptor 4: want a socket that listens for connections: `},
		{"$$", []*os.File{text}, []string{"LISTEN_FDS=1"}, "LISTEN_FDS=1, which are the descriptors 3 to 3: descriptor 3: want a " +
			"socket that listens for connections: socket operation on non-socket"},
		{"$$", []*os.File{socket}, []string{"LISTEN_FDS=1", "LISTEN_FDNAMES=a:b"}, `LISTEN_FDNAMES="a:b" has 2 names, and ` +
			`LISTEN_FDS is 1: want a name for each socket, with colons between them`},
	} {
		// If a program should refuse this but keeps running, the test must not hang.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := passing(ctx, t, c.pid, rules, c.files, c.variables...).CombinedOutput()
		cancel()
		assert.EqualError(t, err, "exit status 1", "%v", c)
		assert.Contains(t, string(out), "weir: error: "+c.want)
	}
}

// TestSocketsOfAnotherProcess: if LISTEN_FDS is missing or LISTEN_PID is another process, no sockets count as passed.
func TestSocketsOfAnotherProcess(t *testing.T) {
	rules := file(t, "weir.yaml", "listen: 127.0.0.1:0\nrules: [{name: a, rate: 1/s}]\n")
	for pid, variables := range map[string][]string{
		"1": {"LISTEN_FDS=-1", "LISTEN_FDNAMES=a:b"}, "$$": nil, "": {"LISTEN_FDS=1"},
	} {
		s := startCommand(t, passing(t.Context(), t, pid, rules, nil, variables...))
		s.until("msg=listening")
		require.NoError(t, s.Process.Signal(os.Interrupt))
		assert.NoError(t, s.Wait())
	}
}
