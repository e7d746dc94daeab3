//go:build unix

package stores

import "syscall"

// stop has the server's process stop where it is, and goOn has it go on.
func (s *Server) stop() error { return s.process.Process.Signal(syscall.SIGSTOP) }
func (s *Server) goOn() error { return s.process.Process.Signal(syscall.SIGCONT) }
