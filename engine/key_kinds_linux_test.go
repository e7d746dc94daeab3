package engine

import (
	"encoding/binary"
	"net/netip"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/keyhash"
)

// TestKindsOfKeys: with every hash, a text and its bytes are one key, but an address or a number is another key.
func TestKindsOfKeys(t *testing.T) {
	seeded, _ := newLimiter(t, TokenBucket(PerSecond(1), 5))
	stable, _ := newLimiter(t, TokenBucket(PerSecond(1), 5), HashStable())
	path := filepath.Join(t.TempDir(), "table")
	one, err := sharedLimiter(path)
	require.NoError(t, err)
	defer one.Close()
	other, err := sharedLimiter(path)
	require.NoError(t, err)
	defer other.Close()

	addr, number := netip.MustParseAddr("2001:db8::1"), uint64(0x0102030405060708)
	addrBytes, numberBytes := addr.As16(), binary.LittleEndian.AppendUint64(nil, number)
	keys := func(l *Limiter) []Key {
		return []Key{
			l.KeyAddr(addr), l.KeyUint64(number), l.KeyBytes(addrBytes[:]), l.KeyBytes(numberBytes), l.Key("text"),
		}
	}
	known := map[Key]bool{}
	for _, l := range []*Limiter{seeded, stable, one} {
		require.Equal(t, l.Key("text"), l.KeyBytes([]byte("text")))
		for _, k := range keys(l) {
			require.False(t, known[k])
			known[k] = true
		}
	}
	require.Equal(t, keys(one), keys(other))
	require.Equal(t, xxhash.Sum64(addrBytes[:])^stableAddr, stable.KeyAddr(addr).hash)
	require.Equal(t, xxhash.Sum64(numberBytes)^stableNumber, stable.KeyUint64(number).hash)
	if strconv.IntSize < 64 {
		return // with 32 bits, a hash with an empty seed panics
	}
	var none keyhash.Seed
	require.NotEqual(t, keyhash.Bytes(none, addrBytes[:]), seeded.KeyAddr(addr).hash)
	require.NotEqual(t, keyhash.Bytes(none, numberBytes), seeded.KeyUint64(number).hash)
}
