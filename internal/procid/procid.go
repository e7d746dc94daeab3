//go:build gc

// Package procid reports on which of Go's processors a goroutine runs.
package procid

import _ "unsafe" // for go:linkname

// The runtime keeps these two functions for the packages that have come to use them: go.dev/issue/67401. A wrapper
// around both would cost a third call.

// Pin returns the number of the processor, from 0 to GOMAXPROCS-1, and keeps the goroutine there until it calls Unpin,
// which callers do at once. After that the number is a hint, because the goroutine may have moved to another processor.
// The two calls take a nanosecond or two and are the same on every architecture.
//
//go:linkname Pin runtime.procPin
func Pin() int

// Unpin ends what Pin began.
//
//go:linkname Unpin runtime.procUnpin
func Unpin()
