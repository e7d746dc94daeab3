package serve

import (
	"bytes"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startProgram starts a program and waits until it listens. The program ends with the test.
func startProgram(t *testing.T, address string, cmd *exec.Cmd) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			require.NoError(t, conn.Close())
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatal(cmd.Path, " ended: ", err, said.String())
		default:
			require.True(t, time.Now().Before(deadline), "%s does not listen on %s", cmd.Path, address)
		}
	}
}
