package tsc

const clocksource = "arch_sys_counter"

// Read returns the counter. It is not a fence: the processor may read the counter before loads that precede it in the
// program. This is useful to callers, because they read the clock while a cache line is loaded.
func Read() uint64
