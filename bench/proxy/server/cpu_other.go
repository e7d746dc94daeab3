//go:build !linux

package server

import (
	"fmt"
	"runtime"
	"time"
)

// CPU returns an error: only Linux tells the processor time of a process that has not ended.
func (p *Process) CPU() (time.Duration, error) {
	return 0, fmt.Errorf("the processor time of %s while it runs: want Linux, not %s", p.name, runtime.GOOS)
}
