//go:build race

package testrace

// Enabled reports whether the race detector is on. With it, a sync.Pool drops values, so allocations cannot be counted.
const Enabled = true
