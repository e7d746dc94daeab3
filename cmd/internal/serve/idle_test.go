//go:build linux

package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const idle = 10_000

// TestTenThousandIdleConnections: with ten thousand idle connections, other connections are served, and a reload closes
// no connection. At the end, no connection is left. The clients are a separate process, because one process could not
// open enough files.
func TestTenThousandIdleConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand connections, and two processes")
	}
	const spare = 200
	var files syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	if files.Max < idle+spare { // a Go program has already raised the soft limit to the hard limit
		t.Skipf("the system allows %d open files, %d are needed", files.Max, idle+spare)
	}
	const rules = "rules: [{name: a, rate: 1/m, burst: 30000, max_keys: 100}]"
	// On a slow machine, opening the connections takes longer than the default read_header_timeout.
	const server = "max_connections: 0, read_header_timeout: 1h"
	s := start(t, "server: {"+server+", idle_timeout: 1h}\n"+rules)
	before := memory()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), idleClients+"="+s.address())
	cmd.Stderr = os.Stderr
	orders, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	reports := bufio.NewReader(out)
	report := func() string {
		line, err := reports.ReadString('\n')
		assert.NoError(t, err)
		return line
	}
	served := fmt.Sprintf("served %d\n", idle)
	assert.Equal(t, served, report())
	assert.Equal(t, int64(idle), s.connections[clients].Open())
	assert.Equal(t, "200", s.statuses(1))
	each := (memory() - before) / idle
	t.Logf("an idle connection takes %d bytes", each)
	assert.Less(t, each, 36<<10, "docs/operations.md says 35 KB")
	s.change("server: {" + server + ", idle_timeout: 2h}\n" + rules)
	_, err = io.WriteString(orders, "again\n")
	require.NoError(t, err)
	assert.Equal(t, served, report(), "over the same connections")
	s.stop()
	assert.Zero(t, s.connections[clients].Open())
	require.NoError(t, orders.Close())
	assert.NoError(t, cmd.Wait())
}

func memory() int {
	runtime.GC()
	runtime.GC() // the first collection shrinks stacks
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapInuse + stats.StackInuse)
}

// If the environment variable idleClients is set, this program acts as the clients of a server.
const idleClients = "WEIR_TEST_IDLE_CLIENTS"

// beIdleClients opens the connections and sends a request on each. For each line that it reads from orders, it sends a
// request on each connection again.
func beIdleClients(address string, orders io.Reader, reports io.Writer) error {
	conns := make([]net.Conn, idle)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", address); err != nil {
			return err
		}
	}
	for lines := bufio.NewScanner(orders); ; {
		served := 0
		for _, conn := range conns {
			if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				return err
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode == http.StatusOK {
				served++
			}
		}
		if _, err := fmt.Fprintf(reports, "served %d\n", served); err != nil || !lines.Scan() {
			return err
		}
	}
}

func init() {
	address := os.Getenv(idleClients)
	if address == "" {
		return
	}
	if err := beIdleClients(address, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
