//go:build unix

package serve

import "syscall"

// openFiles returns how many files the process may open; 0 means no bound. It returns the hard limit, because a Go
// program raises its soft limit to the hard limit when it starts.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<30 {
		return 0
	}
	return uint64(limit.Cur)
}
