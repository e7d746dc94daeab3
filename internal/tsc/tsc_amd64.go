package tsc

// clocksource is Linux's name for this counter.
const clocksource = "tsc"

// Read returns the counter. It is not a fence: it may be read a little before
// loads that precede it in the program. A taker wants exactly that, the clock read
// while its cache line is on the way.
func Read() uint64
