//go:build unix

package stores

import "syscall"

// stop stops the server's process without ending it, and goOn makes it continue.
func (s *Server) stop() error { return s.process.Process.Signal(syscall.SIGSTOP) }
func (s *Server) goOn() error { return s.process.Process.Signal(syscall.SIGCONT) }
