package stores

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Server is a redis-server that only the benchmark uses. It stores nothing on disk.
type Server struct {
	Address string
	process *exec.Cmd
	client  *redis.Client
	folder  string
}

// StartServer starts a server on a free port of the loopback interface, and waits until it answers.
func StartServer(ctx context.Context, binary string) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "weir-bench-stores-")
	if err != nil {
		return nil, err
	}
	s := &Server{
		Address: address, folder: folder, client: redis.NewClient(&redis.Options{Addr: address}),
		process: exec.CommandContext(ctx, binary, "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", folder),
	}
	if err := s.process.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("redis-server (Debian package redis-server): %w", err), os.RemoveAll(folder))
	}
	for range 250 {
		if err = s.client.Ping(ctx).Err(); err == nil {
			return s, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.Close()
	return nil, fmt.Errorf("redis-server does not answer: %w", err)
}

// Close kills the server.
func (s *Server) Close() {
	_ = s.client.Close()
	_ = s.process.Process.Kill() // an error means that it has already ended
	_ = s.process.Wait()
	_ = os.RemoveAll(s.folder)
}

type use struct {
	scripts   int
	processor time.Duration
}

func (s *Server) use(ctx context.Context) (use, error) {
	text, err := s.client.Info(ctx, "commandstats", "cpu").Result()
	if err != nil {
		return use{}, err
	}
	return parseUse(text)
}

func parseUse(text string) (u use, err error) {
	seconds := 0.0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		var n float64
		switch name {
		case "cmdstat_eval", "cmdstat_evalsha":
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			if n, err = strconv.ParseFloat(calls, 64); err == nil {
				u.scripts += int(n)
			}
		case "used_cpu_user", "used_cpu_sys":
			if n, err = strconv.ParseFloat(value, 64); err == nil {
				seconds += n
			}
		}
		if err != nil {
			return use{}, fmt.Errorf("INFO: %q: %w", line, err)
		}
	}
	u.processor = time.Duration(seconds * float64(time.Second))
	return u, nil
}
