//go:build gc

// Package procid tells on which of Go's processors a goroutine runs.
package procid

import _ "unsafe" // for go:linkname

// The runtime keeps these two for the packages that have come to use them: go.dev/issue/67401. A caller that calls both
// itself pays two calls; a function around them would be a third.

// Pin returns the number of the processor, from 0 to GOMAXPROCS-1, and keeps the goroutine there until it calls Unpin,
// which it does at once. Then the number is a hint: the goroutine may run on another one by the time that the caller
// uses it. The two take a nanosecond or two and are the same on every architecture.
//
//go:linkname Pin runtime.procPin
func Pin() int

// Unpin ends what Pin began.
//
//go:linkname Unpin runtime.procUnpin
func Unpin()
