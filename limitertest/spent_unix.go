//go:build unix

package limitertest

import (
	"syscall"
	"time"
)

// spent returns how much processor time the process has taken: what others do on the machine is no part of it.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return time.Since(started)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
