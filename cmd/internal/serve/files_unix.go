//go:build unix

package serve

import "syscall"

// openFiles returns how many files the process may open; 0 means no bound. This is the soft limit, which a Go program
// raises to the hard limit when it starts.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<30 {
		return 0
	}
	return uint64(limit.Cur)
}
