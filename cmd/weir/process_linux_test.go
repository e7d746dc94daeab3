package main

import (
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A process is a weir process that a test has started, or the successor of one. It ends with the test.
type process struct {
	t      *testing.T
	pid    int
	waited bool // true after wait, when another process may get the number
}

// adoptOrphans makes the test the parent of each process whose parent has ended.
func adoptOrphans(t *testing.T) {
	t.Helper()
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

func processOf(t *testing.T, pid int) *process {
	p := &process{t: t, pid: pid}
	t.Cleanup(func() {
		if !p.waited {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // normally it has ended before
		}
	})
	return p
}

// successor reads the log until a message begins with the given word, which is upgrade or upgraded. It returns the
// process that this line names.
func (s *started) successor(word string) *process {
	s.t.Helper()
	pid, err := strconv.Atoi(s.until(`msg="` + word + `: .*" pid=(\d+)`)[0])
	require.NoError(s.t, err)
	return processOf(s.t, pid)
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, syscall.Kill(p.pid, s))
}

func (p *process) wait() (status unix.WaitStatus) {
	p.t.Helper()
	_, err := unix.Wait4(p.pid, &status, 0, nil)
	require.NoError(p.t, err)
	p.waited = true
	return status
}

func (p *process) isGone() bool {
	p.waited = p.waited || syscall.Kill(p.pid, 0) == syscall.ESRCH
	return p.waited
}
