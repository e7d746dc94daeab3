//go:build gc

// Package procid tells on which of Go's processors a goroutine runs.
package procid

import _ "unsafe" // for go:linkname

// The runtime keeps these two for the packages that have come to use them: go.dev/issue/67401.

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// Current returns the number of the processor, from 0 to GOMAXPROCS-1. It is a hint: the goroutine may run on another
// one by the time that the caller uses it. It takes some nanoseconds and is the same on every architecture.
func Current() int {
	id := procPin()
	procUnpin()
	return id
}
