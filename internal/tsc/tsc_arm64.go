package tsc

const clocksource = "arch_sys_counter"

// Read returns the counter. Read is not a fence: the processor may read the counter before loads that precede this call
// in the program. Callers profit from this, because they read the clock while a cache line is loaded.
func Read() uint64
