//go:build !linux

package floor

import (
	"errors"
	"unsafe"
)

// Map returns zeroed memory on the heap with all its pages present. The system chooses the size of the pages.
func Map(size uint64, _ bool) (memory []byte, release func(), err error) {
	words := make([]uint64, size/8) // aligned for atomic access
	for i := 0; i < len(words); i += 512 {
		words[i] = 0
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size), func() {}, nil
}

// Huge returns an error, because only Linux reports the size of pages.
func Huge([]byte) (uint64, error) { return 0, errors.New("only Linux reports the size of pages") }
