//go:build unix

package limitertest

import (
	"syscall"
	"time"
)

// spent returns the processor time of this process. It does not include other work on the machine.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return time.Since(started)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
