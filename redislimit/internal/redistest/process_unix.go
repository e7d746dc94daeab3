//go:build unix && !linux

package redistest

import "syscall"

// attributes asks for nothing: only Linux can kill a process together with its parent.
func attributes() *syscall.SysProcAttr { return nil }
