//go:build unix

package listen

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start starts the program file of this process again, which may now be a newer version. The new process gets the same
// arguments and the sockets. If ctx ends before [Successor.Outcome] returns, the new process gets a SIGTERM.
func (h *Handed) Start(ctx context.Context) (*Successor, error) {
	program, err := exec.LookPath(os.Args[0])
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(h.sockets)
	if err != nil {
		return nil, err
	}
	outcome, childEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), handoverVariable+"="+string(text))
	cmd.ExtraFiles = append([]*os.File{childEnd}, h.files...)
	err = cmd.Start()
	_ = childEnd.Close()
	if err != nil {
		_ = outcome.Close()
		return nil, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }) // fails if the process has ended
	return &Successor{cmd.Process, func() (string, error) {
		defer stop()
		report, err := io.ReadAll(io.LimitReader(outcome, 1<<16))
		_ = outcome.Close()
		if string(report) == Serving {
			return Serving, nil
		}
		return string(report), errors.Join(err, exitError(<-exited))
	}}, nil
}

// exitError says why a process that should serve has ended.
func exitError(err error) error {
	if err == nil {
		return errors.New("it ended without a report")
	}
	return err
}

// duplicate returns another descriptor of a socket. [net.TCPListener.File] would make the socket blocking in both
// processes.
func duplicate(l streamListener) (*os.File, error) {
	conn, err := l.SyscallConn()
	if err != nil {
		return nil, err
	}
	var dup int
	var fcntlErr error
	err = conn.Control(func(fd uintptr) { dup, fcntlErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err := errors.Join(err, fcntlErr); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(dup), l.Addr().String()), nil
}
