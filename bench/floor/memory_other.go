//go:build !linux

package floor

import (
	"errors"
	"unsafe"
)

// Map returns zeroed memory whose pages are all there already. It is of the heap: how large its
// pages are is the system's choice.
func Map(size uint64, _ bool) (memory []byte, release func(), err error) {
	words := make([]uint64, size/8) // aligned for atomic access
	for i := 0; i < len(words); i += 512 {
		words[i] = 0
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size), func() {}, nil
}

// Huge cannot be told here.
func Huge([]byte) (uint64, error) { return 0, errors.New("only Linux tells the size of pages") }
