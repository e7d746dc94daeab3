//go:build unix

package limitertest

import (
	"syscall"
	"time"
)

// processorTime returns the processor time of this process. It does not include other work on the machine.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return time.Since(startTime)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
