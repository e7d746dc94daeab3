package keyhash

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// A Secret is the key of a hash that is the same in every process that has the Secret. Its words are random.
type Secret [4]uint64

// Derive returns another secret for each number. The derived secret reveals nothing about s.
func (s *Secret) Derive(number uint64) (d Secret) {
	var text [16]byte
	binary.LittleEndian.PutUint64(text[:], number)
	for i := range d {
		text[8] = byte(i)
		d[i] = KeyedBytes(s, text[:])
	}
	return d
}

// Keyed returns the hash of a text with a secret. It folds products of words that are unknown without the secret. On
// processors without AES instructions, Go's own maps use a hash of the same kind, and Keyed is as strong as that hash.
func Keyed(s *Secret, text string) uint64 {
	return KeyedBytes(s, unsafe.Slice(unsafe.StringData(text), len(text)))
}

// KeyedBytes returns the same hash as Keyed(s, string(text)).
func KeyedBytes(s *Secret, text []byte) uint64 {
	n, sum := len(text), s[0]
	var a, b uint64
	switch {
	case n > 16:
		tail := text
		for ; len(tail) > 16; tail = tail[16:] {
			sum = fold(binary.LittleEndian.Uint64(tail)^s[1], binary.LittleEndian.Uint64(tail[8:])^sum)
		}
		a, b = binary.LittleEndian.Uint64(text[n-16:]), binary.LittleEndian.Uint64(text[n-8:])
	case n >= 8:
		a, b = binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[n-8:])
	case n >= 4:
		a, b = uint64(binary.LittleEndian.Uint32(text)), uint64(binary.LittleEndian.Uint32(text[n-4:]))
	case n > 0:
		a = uint64(text[0])<<16 | uint64(text[n/2])<<8 | uint64(text[n-1])
	}
	return fold(s[2]^uint64(n), fold(a^s[3], b^sum))
}

// fold returns the two halves of a product as one word.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
