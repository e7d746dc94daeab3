package overshoot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/internal/freeport"
)

// A Server is a redis-server process that only Run uses, on a free port of the loopback interface. It stores nothing on
// disk.
type Server struct {
	Address string // host:port
	client  rueidis.Client
	process *exec.Cmd
	exited  chan struct{} // closed when the process is over
	folder  string
}

// StartServer starts a server, from the path or name of redis-server, and waits at most five seconds for its answer.
func StartServer(ctx context.Context, binary string) (*Server, error) {
	path, err := exec.LookPath(binary)
	if err != nil {
		return nil, fmt.Errorf("overshoot: no redis-server (Debian package redis-server): %w", err)
	}
	port, _, err := freeport.Port()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "weir-overshoot-")
	if err != nil {
		return nil, err
	}
	s := &Server{
		Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), exited: make(chan struct{}), folder: folder,
		process: exec.CommandContext(ctx, path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "", "--appendonly", "no", "--dir", folder),
	}
	if err := s.process.Start(); err != nil {
		_ = os.RemoveAll(folder)
		return nil, fmt.Errorf("overshoot: %s: %w", path, err)
	}
	go func() {
		_ = s.process.Wait()
		close(s.exited)
	}()
	for deadline := time.Now().Add(5 * time.Second); ; {
		s.client, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Address}, DisableCache: true})
		if err == nil {
			return s, nil
		}
		select {
		case <-s.exited:
			err = errors.New("it is over already")
		case <-time.After(20 * time.Millisecond):
			if time.Now().Before(deadline) {
				continue
			}
		}
		s.Close()
		return nil, fmt.Errorf("overshoot: %s on %s does not answer: %w", path, s.Address, err)
	}
}

// Close kills the process and waits for its end.
func (s *Server) Close() {
	if s.client != nil {
		s.client.Close()
	}
	_ = s.process.Process.Kill()
	<-s.exited
	_ = os.RemoveAll(s.folder)
}
