//go:build !linux

package server

import (
	"fmt"
	"runtime"
	"time"
)

// CPU returns an error, because only Linux reports the processor time of a running process.
func (p *Process) CPU() (time.Duration, error) {
	return 0, fmt.Errorf("the processor time of %s while it runs: want Linux, not %s", p.name, runtime.GOOS)
}
