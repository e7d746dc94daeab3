//go:build gc && !purego && (amd64 || arm64)

package keyhash

import (
	"math/rand/v2"
	"unsafe"
)

// A Seed is the key of the hash. Make one with [NewSeed]. It is valid in this process only.
type Seed struct{ s uintptr }

// NewSeed returns a random seed.
func NewSeed() Seed { return Seed{uintptr(rand.Uint64())} }

// String returns the hash of a text.
func String(seed Seed, text string) uint64 {
	return uint64(memhash(unsafe.Pointer(unsafe.StringData(text)), seed.s, uintptr(len(text))))
}

// Bytes returns the same hash as String(seed, string(text)).
func Bytes(seed Seed, text []byte) uint64 {
	return uint64(memhash(unsafe.Pointer(unsafe.SliceData(text)), seed.s, uintptr(len(text))))
}

// memhash returns the hash of the s bytes at p with the seed h. It is the hash that Go's own maps use.
//
//go:linkname memhash runtime.memhash
//go:noescape
func memhash(p unsafe.Pointer, h, s uintptr) uintptr
