package keyhash

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/internal/testalloc"
)

// TestTextAndBytes: a text and its bytes have the same hash, for any length including zero.
func TestTextAndBytes(t *testing.T) {
	seed := NewSeed()
	for n := range 300 {
		text := strings.Repeat("k", n)
		assert.Equal(t, String(seed, text), Bytes(seed, []byte(text)), "length %d", n)
	}
	assert.Equal(t, String(seed, ""), Bytes(seed, nil))
}

// TestSeeds: a text has different hashes under different seeds, and always the same hash under the same seed.
func TestSeeds(t *testing.T) {
	a, b := NewSeed(), NewSeed()
	assert.NotEqual(t, String(a, "192.0.2.1"), String(b, "192.0.2.1"))
	assert.Equal(t, String(a, "192.0.2.1"), String(a, "192.0.2.1"))
}

// TestSpread: even if the keys differ little, each bit of the hash is set for about half of the keys, and no two keys
// have the same hash. The bits must be good, because the table takes its shard, its line and its label from them.
func TestSpread(t *testing.T) {
	const keys = 1 << 14
	seed, seen, set := NewSeed(), map[uint64]bool{}, [64]int{}
	for i := range keys {
		h := String(seed, fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
		assert.False(t, seen[h], "key %d", i)
		seen[h] = true
		for ; h != 0; h &= h - 1 {
			set[bits.TrailingZeros64(h)]++
		}
	}
	for bit, n := range set {
		// Ten standard deviations of a fair coin: one run in 10^20 fails.
		assert.InDelta(t, keys/2, n, 10*64, "bit %d", bit)
	}
}

// TestNoAllocation: hashing a text of any length allocates nothing.
func TestNoAllocation(t *testing.T) {
	seed, text, sum := NewSeed(), strings.Repeat("x", 200), uint64(0)
	data := []byte(text)
	assert.Zero(t, testalloc.PerCall(func() { sum += String(seed, text) + Bytes(seed, data) }))
	assert.NotZero(t, sum)
}
