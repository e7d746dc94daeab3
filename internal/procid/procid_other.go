//go:build !gc

// Package procid reports on which of Go's processors a goroutine runs.
package procid

import "math/rand/v2"

// Pin returns a random number, because with this compiler the processor is not known.
func Pin() int { return int(rand.Uint32() >> 1) }

// Unpin does nothing.
func Unpin() {}
