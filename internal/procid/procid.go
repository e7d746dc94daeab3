//go:build gc

// Package procid reports on which of Go's processors a goroutine runs.
package procid

import _ "unsafe" // for go:linkname

// The runtime keeps these two functions for the packages that already use them: go.dev/issue/67401. This package
// exports both functions. A function that calls both of them would cost a third call.

// Pin returns the number of the processor, from 0 to GOMAXPROCS-1, and keeps the goroutine on it until Unpin. Callers
// call Unpin at once. After that the number is a hint, because the goroutine may have moved to another processor. The
// two calls take a nanosecond or two and are the same on every architecture.
//
//go:linkname Pin runtime.procPin
func Pin() int

// Unpin lets the goroutine move to another processor again.
//
//go:linkname Unpin runtime.procUnpin
func Unpin()
