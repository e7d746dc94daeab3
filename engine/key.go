package engine

import (
	"encoding/binary"
	"net/netip"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-go/weir/internal/keyhash"
	"github.com/weir-go/weir/shard"
)

// A Key is a hashed key. Make it once with [Limiter.Key] or one of its variants, and use it for any number of
// decisions. By default a Key works in every limiter of this process, and in no other process. With [HashStable] it
// works in every limiter that has this option, and with [Shared] in every limiter of the same file.
//
// An address and a text with the same bytes are different keys, and so is a number.
type Key struct {
	hash  uint64
	quota shard.Quota // zero means the limiter's own policy
}

// Tier returns the same key under another tier of the limiter ([Tiers]). A limiter without this tier refuses every
// request for the key, and RetryAfter is [Never].
func (k Key) Tier(tier int) Key {
	if tier < 0 || tier >= shard.MaxTiers {
		tier = shard.MaxTiers - 1
	}
	k.quota = shard.TierQuota(uint8(tier))
	return k
}

// seeds has one secret seed for each kind of key, drawn once per process.
var seeds = struct{ text, addr, number keyhash.Seed }{
	keyhash.NewSeed(), keyhash.NewSeed(), keyhash.NewSeed(),
}

// The stable hash has no seeds. With these constants, texts, addresses and numbers hash differently.
const (
	stableAddr   = 0x9e37_79b9_7f4a_7c15
	stableNumber = 0xd1b5_4a32_d192_ed03
)

// Key returns the key of a text of any length, including the empty text. It does not allocate.
func (l *Limiter) Key(text string) Key {
	if !l.seeded {
		if l.secrets != nil {
			return Key{hash: keyhash.Keyed(&l.secrets.text, text)}
		}
		l.requireMade()
		return Key{hash: xxhash.Sum64String(text)}
	}
	return Key{hash: keyhash.String(seeds.text, text)}
}

// KeyBytes returns Key(string(text)). It does not allocate, and does not keep the slice.
func (l *Limiter) KeyBytes(text []byte) Key {
	if !l.seeded {
		if l.secrets != nil {
			return Key{hash: keyhash.KeyedBytes(&l.secrets.text, text)}
		}
		l.requireMade()
		return Key{hash: xxhash.Sum64(text)}
	}
	return Key{hash: keyhash.Bytes(seeds.text, text)}
}

// KeyAddr returns the key of an address. An IPv4 address and the same address mapped into IPv6 are one key. The zone is
// ignored, and the zero Addr has the key of ::. KeyAddr does not allocate.
func (l *Limiter) KeyAddr(addr netip.Addr) Key {
	b := addr.As16()
	if !l.seeded {
		if l.secrets != nil {
			return Key{hash: keyhash.KeyedBytes(&l.secrets.addr, b[:])}
		}
		l.requireMade()
		return Key{hash: xxhash.Sum64(b[:]) ^ stableAddr}
	}
	return Key{hash: keyhash.Bytes(seeds.addr, b[:])}
}

// KeyUint64 returns the key of a number, such as a user's id. It does not allocate.
func (l *Limiter) KeyUint64(n uint64) Key {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	if !l.seeded {
		if l.secrets != nil {
			return Key{hash: keyhash.KeyedBytes(&l.secrets.number, b[:])}
		}
		l.requireMade()
		return Key{hash: xxhash.Sum64(b[:]) ^ stableNumber}
	}
	return Key{hash: keyhash.Bytes(seeds.number, b[:])}
}
