//go:build unix

package stores

import "syscall"

func (s *Server) stop() error { return s.process.Process.Signal(syscall.SIGSTOP) }
func (s *Server) goOn() error { return s.process.Process.Signal(syscall.SIGCONT) }
