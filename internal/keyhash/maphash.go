//go:build !gc || purego || !(amd64 || arm64)

package keyhash

import "hash/maphash"

// A Seed is the key of the hash. Make one with [NewSeed]. It is valid in this process only.
type Seed struct{ s maphash.Seed }

// NewSeed returns a random seed.
func NewSeed() Seed { return Seed{maphash.MakeSeed()} }

// String returns the hash of a text.
func String(seed Seed, text string) uint64 { return maphash.String(seed.s, text) }

// Bytes returns the same hash as String(seed, string(text)).
func Bytes(seed Seed, text []byte) uint64 { return maphash.Bytes(seed.s, text) }
