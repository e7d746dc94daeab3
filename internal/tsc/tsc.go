// Package tsc reads the processor's time stamp counter: a register that counts
// at a constant rate, read in a few nanoseconds without asking the kernel.
package tsc

import (
	"os"
	"strings"
)

// Trusted reports whether the kernel itself keeps time by this counter. A kernel
// does so only after it has checked that the counter is constant, does not
// stop, and agrees between processors.
func Trusted() bool {
	const source = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
	name, err := os.ReadFile(source)
	return err == nil && clocksource != "" && strings.TrimSpace(string(name)) == clocksource
}
