//go:build unix && !linux

package redistest

import "syscall"

// attributes returns nil, because only Linux can kill a process together with its parent.
func attributes() *syscall.SysProcAttr { return nil }
