//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/internal/freeport"
)

const (
	startTimeout    = 20 * time.Second // until one process answers; machines are slow at times
	electionTimeout = 60 * time.Second // for an election, which is repeated after six seconds if there is no winner
)

// A Server is a process of redis-server or valkey-server. Its methods may be called concurrently, and fail the test
// that started it.
type Server struct {
	t       testing.TB
	program string
	dir     string
	port    int
	busPort int // only for a node of a cluster
	config  []string

	arguments   []string // after the configuration
	environment []string // in addition to that of the test
	clock       string   // the file of [StartWithClock]

	mu      sync.Mutex
	command *exec.Cmd
	ended   chan struct{} // closed when the process of command has been waited for
	client  rueidis.Client
}

// Start starts a server, until t ends.
func Start(t testing.TB) *Server {
	t.Helper()
	return start(t, false)
}

// StartReplica starts a replica of master that has the master's data.
func StartReplica(t testing.TB, master *Server) *Server {
	t.Helper()
	s := start(t, false, fmt.Sprintf("replicaof 127.0.0.1 %d", master.port), "repl-diskless-load swapdb")
	s.AwaitReplica()
	return s
}

// program returns the path of the server's program. Without it, the test is skipped, or fails if CI is set.
func program(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no redis-server or valkey-server on the PATH")
	}
	t.Skip("there is no redis-server or valkey-server on the PATH: make test installs it; on Debian: apt-get install redis-server")
	return ""
}

func start(t testing.TB, cluster bool, config ...string) *Server {
	t.Helper()
	return (&Server{config: config}).start(t, cluster)
}

func (s *Server) start(t testing.TB, cluster bool) *Server {
	t.Helper()
	// The directory is made first, so it is removed after the process has ended.
	s.t, s.program, s.dir = t, program(t), t.TempDir()
	t.Cleanup(func() {
		s.Stop()
		if s.client != nil {
			s.client.Close()
		}
	})
	s.port = freeport.Number(t)
	if cluster {
		s.busPort = freeport.Number(t)
	}
	if err := s.launch(); err != nil {
		t.Fatalf("%s did not start: %v", s.program, err)
	}
	return s
}

// launch starts the process, and waits for an answer. The answer must come from this process, and not from another one
// on the port.
func (s *Server) launch() error {
	lines := append([]string{
		"bind 127.0.0.1",
		"port " + strconv.Itoa(s.port),
		"dir ./",
		"daemonize no",
		`save ""`,
		"appendonly no",
		"repl-diskless-sync-delay 0",
		"repl-diskless-sync yes",
	}, s.config...)
	if s.busPort != 0 {
		lines = append(lines, "cluster-enabled yes", "cluster-port "+strconv.Itoa(s.busPort))
	}
	file := filepath.Join(s.dir, "server.conf")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	output, err := os.Create(filepath.Join(s.dir, "output"))
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }()
	command, ended := exec.Command(s.program, append([]string{file}, s.arguments...)...), make(chan struct{})
	command.Dir, command.Stdout, command.Stderr = s.dir, output, output
	command.Env = append(os.Environ(), s.environment...)
	command.SysProcAttr = attributes()
	if err := command.Start(); err != nil {
		return err
	}
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	s.mu.Lock()
	s.command, s.ended = command, ended
	s.mu.Unlock()

	deadline := time.Now().Add(startTimeout)
	for {
		err := s.checkProcess(command.Process.Pid)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			log, _ := os.ReadFile(output.Name())
			return fmt.Errorf("ended at once: %s", log)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.Stop()
			return fmt.Errorf("no answer within %v: %w", startTimeout, err)
		}
	}
}

func (s *Server) checkProcess(pid int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{s.Addr()},
		ForceSingleClient: true,
		DisableCache:      true,
		DisableRetry:      true,
		Dialer:            net.Dialer{Timeout: time.Second},
	})
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Do(ctx, client.B().Ping().Build()).Error(); err != nil {
		return err
	}
	info, err := client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return err
	}
	if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", pid)) {
		return fmt.Errorf("port %d is answered by another process than %d", s.port, pid)
	}
	return nil
}

// Addr returns the server's address, such as 127.0.0.1:40123. It stays the same after a Restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL returns the server's address as a URL.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Client returns a client for only this server, even in a cluster, until the test ends. It connects again after a
// Restart.
func (s *Server) Client() rueidis.Client {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress:       []string{s.Addr()},
			ForceSingleClient: true,
			DisableCache:      true,
			AlwaysRESP2:       true, // no maps, so that text only has to handle arrays
		})
		if err != nil {
			s.t.Fatalf("client of %s: %v", s.Addr(), err)
		}
		s.client = client
	}
	return s.client
}

// Do sends a command to the server, such as Do("SCRIPT", "FLUSH"), and returns the answer as text. A nil is "", and an
// array has one string per line. An error, or no answer within 10 s, fails the test. Do may send the command twice,
// because sentinels close connections.
func (s *Server) Do(command ...string) string {
	s.t.Helper()
	answer, err := s.ask(command...)
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.Addr(), strings.Join(command, " "), err)
	}
	return answer
}

func (s *Server) ask(command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client := s.Client()
	message, err := client.Do(ctx, client.B().Arbitrary(command...).Build()).ToMessage()
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) {
		message, err = client.Do(ctx, client.B().Arbitrary(command...).Build()).ToMessage()
	}
	if err != nil {
		if rueidis.IsRedisNil(err) {
			return "", nil
		}
		return "", err
	}
	return text(message)
}

func text(message rueidis.RedisMessage) (string, error) {
	switch {
	case message.IsNil():
		return "", nil
	case message.IsInt64():
		n, err := message.ToInt64()
		return strconv.FormatInt(n, 10), err
	case message.IsArray():
		values, err := message.ToArray()
		lines := make([]string, len(values))
		for i := 0; err == nil && i < len(values); i++ {
			lines[i], err = text(values[i])
		}
		return strings.Join(lines, "\n"), err
	default:
		return message.ToString()
	}
}

// await polls until done returns nil, and fails the test after startTimeout.
func (s *Server) await(goal string, done func() error) {
	s.t.Helper()
	await(s.t, goal, done)
}

func await(t testing.TB, goal string, done func() error) {
	t.Helper()
	awaitFor(t, startTimeout, goal, done)
}

func awaitFor(t testing.TB, timeout time.Duration, goal string, done func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s: %v", timeout, goal, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Pause stops the process by SIGSTOP: its connections stay open, but it does not answer.
func (s *Server) Pause() { s.t.Helper(); s.signal(syscall.SIGSTOP) }

// Resume lets a paused process continue.
func (s *Server) Resume() { s.t.Helper(); s.signal(syscall.SIGCONT) }

func (s *Server) signal(signal syscall.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.command == nil {
		s.t.Fatalf("%s does not run: no %v", s.Addr(), signal)
	}
	if err := s.command.Process.Signal(signal); err != nil {
		s.t.Fatalf("%v to %s: %v", signal, s.Addr(), err)
	}
}

func (s *Server) isRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.command != nil
}

// Stop kills the process, if it runs. Then the server's port refuses connections, and its data are lost.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.command == nil {
		return
	}
	_ = s.command.Process.Kill()
	<-s.ended
	s.command = nil
}

// Restart stops the server and starts it on the same port, without data and scripts.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	// This may need several attempts, because the system may use the port meanwhile as the local port of a connection.
	s.await("a restart on the same port", s.launch)
	// The first use of the client's connection to the old process returns an error.
	s.await("a new connection", func() error { _, err := s.ask("PING"); return err })
}
