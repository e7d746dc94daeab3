//go:build explore

package atomicbucket

// Dropped reports whether a change of an entry of a [Ring] takes it out of the log, for the explorer of interleavings.
func Dropped(from, to uint64) bool { return from&entryGone == 0 && to&entryGone != 0 }
