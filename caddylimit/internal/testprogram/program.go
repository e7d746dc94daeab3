// Package testprogram runs programs for tests. It does not link Caddy.
package testprogram

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testlog"
)

// Program returns the path of a program. If the program is missing, the test is skipped, or fails if CI is set.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is missing: make programs installs it", name)
		}
		t.Skipf("%s is missing: make programs installs it", name)
	}
	return path
}

// A Process is a program that runs until the test ends.
type Process struct {
	Output testlog.Log
	Exited chan struct{} // closed when the process has ended
	kill   func() error
}

// Kill ends the process, if it runs, and waits until it has ended.
func (p *Process) Kill() {
	_ = p.kill() // an error means that it has already ended
	<-p.Exited
}

// Run starts a program, which is killed at the end of the test.
func Run(t testing.TB, program string, args ...string) *Process {
	t.Helper()
	p := &Process{Exited: make(chan struct{})}
	cmd := exec.Command(program, args...)
	folder := t.TempDir() // the folder in which Caddy stores its state
	cmd.Env = append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)
	cmd.Stdout, cmd.Stderr = &p.Output, &p.Output
	require.NoError(t, cmd.Start())
	p.kill = cmd.Process.Kill
	go func() {
		_ = cmd.Wait() // the output contains the error
		close(p.Exited)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s: %s", program, p.Output.String())
		}
	})
	return p
}
