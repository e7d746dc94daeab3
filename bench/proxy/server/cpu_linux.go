package server

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns the processor time of all threads of the process so far, without its children. It returns an error if the
// process has ended.
func (p *Process) CPU() (time.Duration, error) {
	const all = 2 // CPUCLOCK_SCHED: all processor time, not only user or system time
	clock := int32(^p.cmd.Process.Pid<<3 | all)
	var took unix.Timespec
	if err := unix.ClockGettime(clock, &took); err != nil {
		return 0, fmt.Errorf("the processor time of %s: %w", p.name, err)
	}
	return time.Duration(took.Nano()), nil
}
