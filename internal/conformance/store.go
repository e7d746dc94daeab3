package conformance

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Store is a real Redis or Valkey server on a free loopback port, in its own process.
type Store struct {
	t       *testing.T
	port    string
	program string
	process *exec.Cmd
}

// startStore starts a store. If the program of the store is missing, the test is skipped, or fails if CI is set.
func startStore(t *testing.T) *Store {
	t.Helper()
	s := &Store{t: t}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			s.program = path
			break
		}
	}
	if s.program == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("redis-server is not installed: make programs does that")
		}
		t.Skip("redis-server is not installed: make programs does that")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, s.port, _ = net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	s.launch()
	t.Cleanup(s.Stop)
	return s
}

// Address returns host and port.
func (s *Store) Address() string { return net.JoinHostPort("127.0.0.1", s.port) }

func (s *Store) launch() {
	s.t.Helper()
	s.process = exec.Command(s.program, "--port", s.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", os.TempDir())
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(usualPatience); ; time.Sleep(time.Millisecond) {
		if err := s.ping(); err == nil {
			return
		} else if time.Now().After(deadline) {
			s.t.Fatalf("the store does not answer: %v", err)
		}
	}
}

func (s *Store) ping() error { return s.send("PING", "+PONG") }

// Forget deletes everything in the store.
func (s *Store) Forget() {
	if s.process == nil {
		return
	}
	s.t.Helper()
	if err := s.send("FLUSHALL", "+OK"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Store) send(command, want string) error {
	conn, err := net.DialTimeout("tcp", s.Address(), usualPatience)
	if err != nil {
		return err
	}
	defer conn.Close()
	answer := make([]byte, 64)
	n := 0
	if err = conn.SetDeadline(time.Now().Add(usualPatience)); err == nil {
		if _, err = fmt.Fprint(conn, command+"\r\n"); err == nil {
			n, err = conn.Read(answer)
		}
	}
	if err == nil && !strings.HasPrefix(string(answer[:n]), want) {
		err = fmt.Errorf("%q", answer[:n])
	}
	return err
}

// Stop ends the process. Its content is lost.
func (s *Store) Stop() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// Suspend suspends the process. The store then keeps its content, but does not answer.
func (s *Store) Suspend() { s.signal("STOP") }

// Resume lets a suspended process continue.
func (s *Store) Resume() { s.signal("CONT") }

// signal sends a signal with the program kill, because package syscall has these signals only on Unix. The program kill
// exists on Unix only, too.
func (s *Store) signal(name string) {
	if s.process == nil {
		return
	}
	s.t.Helper()
	if err := exec.Command("kill", "-"+name, strconv.Itoa(s.process.Process.Pid)).Run(); err != nil {
		s.t.Fatal(err)
	}
}
