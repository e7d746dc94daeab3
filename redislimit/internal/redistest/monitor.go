//go:build unix

package redistest

import (
	"bufio"
	"net"
	"strconv"
	"strings"
	"time"
)

// A Command is a command that a server carried out.
type Command struct {
	InScript bool
	Words    []string
}

// Monitor calls do, and returns all commands except PING that the server carries out meanwhile for any client, in
// order. The commands of a script follow directly after its call.
func (s *Server) Monitor(do func()) []Command {
	s.t.Helper()
	connection, err := net.DialTimeout("tcp", s.Addr(), startTimeout)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_ = connection.SetDeadline(time.Now().Add(5 * startTimeout))
	if _, err := connection.Write([]byte("MONITOR\r\n")); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewReader(connection)
	if line, err := lines.ReadString('\n'); err != nil || line != "+OK\r\n" {
		s.t.Fatalf("MONITOR: %q, %v", line, err)
	}
	const end = "the end of what is monitored"
	var commands []Command
	done := make(chan error, 1)
	go func() {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				done <- err
				return
			}
			command := parseMonitor(line)
			if len(command.Words) == 2 && command.Words[1] == end {
				done <- nil
				return
			}
			if len(command.Words) > 0 && !strings.EqualFold(command.Words[0], "ping") {
				commands = append(commands, command)
			}
		}
	}()
	do()
	s.Do("ECHO", end)
	if err := <-done; err != nil {
		s.t.Fatalf("MONITOR: %v", err)
	}
	return commands
}

// parseMonitor reads a line such as +1700000000.123456 [0 127.0.0.1:40123] "get" "key".
func parseMonitor(line string) (c Command) {
	prefix, words, _ := strings.Cut(line, "] ")
	c.InScript = strings.HasSuffix(prefix, " lua")
	for {
		quoted, err := strconv.QuotedPrefix(words)
		if err != nil {
			return c
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return c
		}
		c.Words = append(c.Words, word)
		words = strings.TrimPrefix(words[len(quoted):], " ")
	}
}
