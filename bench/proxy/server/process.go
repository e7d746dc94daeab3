package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/weir-go/weir/internal/freeport"
)

// patience is how long a server may take to start listening, or to end.
const patience = 10 * time.Second

// A Process is a server that is listening.
type Process struct {
	Address string // host:port
	name    string
	cmd     *exec.Cmd
	dir     string
	said    bytes.Buffer
	ended   chan struct{}
	err     error // valid when ended is closed
}

// Start starts a server in a mode and waits until it listens. The server forwards requests to the address upstream. It
// limits clients by the header field with the name header. The caller must call Stop.
func (s *Server) Start(ctx context.Context, mode Mode, upstream, header string) (*Process, error) {
	p, err := s.start(ctx, mode, upstream, header)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", s.Name, mode, err)
	}
	return p, nil
}

// StartUpstream starts the upstream for all servers.
func StartUpstream(ctx context.Context) (*Process, error) {
	return upstream().Start(ctx, Without, "", "")
}

func (s *Server) start(ctx context.Context, mode Mode, upstream, header string) (_ *Process, err error) {
	program, err := s.Program.Find()
	if err != nil {
		return nil, err
	}
	port, _, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p := &Process{Address: address, name: s.Name, ended: make(chan struct{})}
	if p.dir, err = os.MkdirTemp("", "weir-bench-proxy-"); err != nil {
		return nil, err
	}
	config := filepath.Join(p.dir, "config")
	text, err := s.Config(Site{Listen: address, Upstream: upstream, Dir: p.dir, Mode: mode, Header: header})
	if err == nil {
		err = os.WriteFile(config, []byte(text), 0o600)
	}
	if err == nil {
		p.cmd = exec.Command(program, s.args(config)...)
		p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	if err := p.listens(ctx); err != nil {
		_, stopped := p.Stop()
		return nil, errors.Join(err, stopped)
	}
	return p, nil
}

func (p *Process) listens(ctx context.Context) error {
	timed, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(timed, "tcp", p.Address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.ended:
			return errors.New("does not listen") // Stop reports the reason
		case <-timed.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("does not listen on %s after %v", p.Address, patience)
		case <-time.After(time.Millisecond):
		}
	}
}

// Stop ends the process, removes its files, and returns its processor time. If the process has ended earlier, the error
// has its output.
func (p *Process) Stop() (cpu time.Duration, err error) {
	select {
	case <-p.ended:
		err = fmt.Errorf("%s ended by itself: %w", p.name, p.why())
	default:
		err = p.end()
	}
	err = errors.Join(err, os.RemoveAll(p.dir))
	// nginx's times include its worker process, because nginx has waited for the worker's end.
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(), err
}

func (p *Process) end() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(err, p.kill())
	}
	select {
	case <-p.ended:
		return nil // when HAProxy gets the signal, its exit status is that of the signal
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%s did not end within %v of SIGTERM", p.name, patience), p.kill())
	}
}

func (p *Process) kill() error {
	err := p.cmd.Process.Kill()
	<-p.ended
	return err
}

func (p *Process) why() error {
	return fmt.Errorf("%v: %s", p.err, bytes.TrimSpace(p.said.Bytes()))
}
