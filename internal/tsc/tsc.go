// Package tsc reads the processor's time stamp counter, a register that counts at a constant rate. Reading the counter
// takes a few nanoseconds and no system call.
package tsc

import (
	"os"
	"strings"
)

// Trusted reports whether the kernel itself uses the counter as its clock. A kernel uses the counter only after it has
// checked that the counter is constant, does not stop, and agrees between processors.
func Trusted() bool {
	const source = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
	name, err := os.ReadFile(source)
	return err == nil && clocksource != "" && strings.TrimSpace(string(name)) == clocksource
}
