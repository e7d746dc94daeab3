//go:build unix

package serve

import "syscall"

// openFiles returns how many files the process may open; 0 means no bound. Go programs raise their soft limit to the
// hard limit when they start, so openFiles returns the hard limit.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<30 {
		return 0
	}
	return uint64(limit.Cur)
}
