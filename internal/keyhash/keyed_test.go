package keyhash

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/internal/testalloc"
)

var secret = Secret{0x2545_f491_4f6c_dd1d, 0x9fb2_1c65_1e98_df25, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db}

// TestKeyedTextAndBytes: a text and its bytes have the same hash. The length and each byte affect the hash, but the
// memory behind the text does not.
func TestKeyedTextAndBytes(t *testing.T) {
	seen := map[uint64]int{}
	for n := range 200 {
		text := []byte(strings.Repeat("k", n) + "behind")[:n]
		h := Keyed(&secret, string(text))
		assert.Equal(t, h, KeyedBytes(&secret, text), "length %d", n)
		assert.NotContains(t, seen, h, "length %d", n)
		seen[h] = n
		for i := range text {
			text[i] ^= 1
			assert.NotEqual(t, h, KeyedBytes(&secret, text), "byte %d of %d", i, n)
			text[i] ^= 1
		}
	}
	assert.Equal(t, Keyed(&secret, ""), KeyedBytes(&secret, nil))
}

// TestKeyedSecrets: each word of a secret affects the hash, and derived secrets differ. The hash must never change,
// because files have records that are stored under it.
func TestKeyedSecrets(t *testing.T) {
	for i := range secret {
		other := secret
		other[i]++
		for _, text := range []string{"12345678", "192.0.2.1", strings.Repeat("k", 40)} {
			if i != 1 || len(text) > 16 { // the word with number 1 affects only longer texts
				assert.NotEqual(t, Keyed(&secret, text), Keyed(&other, text), "word %d of %q", i, text)
			}
		}
	}
	assert.NotEqual(t, secret.Derive(0), secret.Derive(1))
	assert.NotEqual(t, secret, secret.Derive(0))
	assert.Equal(t, secret.Derive(2), secret.Derive(2))
	assert.Equal(t, uint64(0xd64a_2a56_8e81_6681), Keyed(&secret, "192.0.2.1"))
	assert.Equal(t, uint64(0x42e9_d2c0_32bf_aaa9), Keyed(&secret, strings.Repeat("k", 40)))
}

// TestKeyedSpread makes the same checks as TestSpread, for short texts that differ little.
func TestKeyedSpread(t *testing.T) {
	const keys = 1 << 14
	for _, format := range []string{"10.%d.%d.%d", "%d.%d.%d.1234567890", "%c%c%c"} {
		seen, set := map[uint64]bool{}, [64]int{}
		for i := range keys {
			h := Keyed(&secret, fmt.Sprintf(format, i>>14&127, i>>7&127, i&127))
			assert.False(t, seen[h], "key %d", i)
			seen[h] = true
			for ; h != 0; h &= h - 1 {
				set[bits.TrailingZeros64(h)]++
			}
		}
		for bit, n := range set {
			assert.InDelta(t, keys/2, n, 10*64, "bit %d", bit) // ten standard deviations of a fair coin
		}
	}
}

// TestKeyedNoAllocation: hashing a text of any length allocates nothing.
func TestKeyedNoAllocation(t *testing.T) {
	text, sum := strings.Repeat("x", 200), uint64(0)
	data := []byte(text)
	assert.Zero(t, testalloc.PerCall(func() { sum += Keyed(&secret, text) + KeyedBytes(&secret, data) }))
	assert.NotZero(t, sum)
}
