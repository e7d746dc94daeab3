//go:build explore

package interleave

// Mix returns a hash of two numbers. Mix(0, 0) is not 0, so that a history in which a zero was read differs from an
// empty history.
func Mix(h, v uint64) uint64 {
	h = (h + 0x9e3779b97f4a7c15 ^ v) * 0xd6e8feb86659fd93
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return h ^ h>>29
}

// Bit returns 1 for true and 0 for false.
func Bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
