//go:build !gc

// Package procid tells on which of Go's processors a goroutine runs.
package procid

import "math/rand/v2"

// Pin returns a random number: this compiler has no processor's.
func Pin() int { return int(rand.Uint32() >> 1) }

// Unpin ends what Pin began.
func Unpin() {}
