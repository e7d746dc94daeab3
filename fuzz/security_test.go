package fuzz

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/shard"
)

// # Twins
//
// At the end of a text, groups of eight bytes remain, the lanes. xxHash64 mixes the lanes into the hash, one after the
// other:
//
//	h = rotl(h ^ r(lane), 27) * P1 + P4,   r(x) = rotl(x * P2, 31) * P1
//
// r is a known bijection, so an attacker can choose lanes by their effect on h. If r(a) and r(a') differ only in bit
// 36, the two values of h differ only in bit 63 after the rotation. The multiplication by an odd number and the
// addition preserve this difference, and the next lane can cancel it. So two pairs of lanes (a, b) and (a', b') with
// r(a') = r(a) ^ 2^36 and r(b') = r(b) ^ 2^63 lead from any h to the same new h, whatever the text before them and the
// seed.

const (
	prime1 = 11400714785074694791
	prime2 = 14029467366897019727
)

func xxRound(lane uint64) uint64 { return bits.RotateLeft64(lane*prime2, 31) * prime1 }

func xxRoundInverse(r uint64) uint64 {
	return bits.RotateLeft64(r*inverse(prime1), -31) * inverse(prime2)
}

// inverse returns the inverse of an odd number n modulo 2^64. n and its inverse have the same lowest three bits.
// Each step of Newton's method doubles the number of correct bits.
func inverse(n uint64) uint64 {
	x := n
	for range 5 {
		x *= 2 - n*x
	}
	return x
}

// twinLanes returns two different lanes whose rounds in xxHash64 differ only in the given bit. Each lane is eight bytes
// of printable UTF-8.
func twinLanes(random *rand.Rand, bit int) (lane, twin string) {
	for { // this takes some thousand tries
		var a, b [8]byte
		for i := 0; i < len(a); {
			r := 'a' + random.Int32N(26)
			if i < len(a)-1 && random.IntN(2) == 0 {
				r = 0xa0 + random.Int32N(0x500)
			}
			i += utf8.EncodeRune(a[i:], r)
		}
		binary.LittleEndian.PutUint64(b[:], xxRoundInverse(xxRound(binary.LittleEndian.Uint64(a[:]))^1<<bit))
		if printable(a[:]) && printable(b[:]) {
			return string(a[:]), string(b[:])
		}
	}
}

func printable(text []byte) bool {
	return utf8.Valid(text) && !bytes.ContainsFunc(text, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) })
}

// A twin is a pair of different texts with the same xxHash64.
type twin struct {
	name string
	size int
	keys [2]string
}

// twins returns pairs of texts that look like keys. In some pairs, both texts have the same text around the lanes.
func twins() []twin {
	random := rand.New(rand.NewPCG(64, 64))
	a, a2 := twinLanes(random, 36)
	b, b2 := twinLanes(random, 63)
	var all []twin
	for _, w := range []struct {
		name          string
		size          int
		before, after string
	}{
		{"a token", 16, "", ""},
		{"a token with a prefix", 24, "sk_live_", ""},
		{"a token with a suffix", 31, "", "-eu-west-1-prod"},
		{"an address", 48, "https://api.example.com/v1/keys/", ""}, // the lanes are behind a stripe of 32 bytes
		{"a long address", 95, "https://api.example.com/v1/keys/customers/0123456789/tokens/abc/", "-eu-west-1-prod"},
	} {
		// The lanes begin behind the last complete stripe of 32 bytes, at a multiple of eight bytes.
		all = append(all, twin{w.name, w.size, [2]string{w.before + a + b + w.after, w.before + a2 + b2 + w.after}})
	}
	return all
}

// TestTwinsCollideUnderEverySeedOfXXHash: the two texts of a twin have the same hash under every seed, so xxHash64 is
// unsuitable for keys that strangers choose. The tests below need these collisions.
func TestTwinsCollideUnderEverySeedOfXXHash(t *testing.T) {
	require.EqualValues(t, 12345, xxRoundInverse(xxRound(12345)))
	random := rand.New(rand.NewPCG(1, 2))
	hash := func(seed uint64, text string) uint64 {
		d := xxhash.NewWithSeed(seed)
		_, _ = d.WriteString(text)
		return d.Sum64()
	}
	for _, tw := range twins() {
		t.Log(tw.name, tw.keys)
		require.Len(t, tw.keys[0], tw.size)
		require.Len(t, tw.keys[1], tw.size)
		require.NotEqual(t, tw.keys[0], tw.keys[1])
		// If only one lane is exchanged, the hash differs.
		lane := strings.Index(tw.keys[0], twins()[0].keys[0]) + 8
		half := tw.keys[0][:lane] + tw.keys[1][lane:]
		for i := range 1000 {
			seed := random.Uint64() * uint64(i) // the first seed is 0
			require.Equal(t, hash(seed, tw.keys[0]), hash(seed, tw.keys[1]), "%s, seed %d", tw.name, seed)
			require.NotEqual(t, hash(seed, tw.keys[0]), hash(seed, half))
		}
	}
}

// TestTwinsShareNoBucket (I2): an attacker cannot drain a victim's bucket with a twin of the victim's key, because the
// default hash is not xxHash64, and has a seed. With HashStable, the two keys do share a bucket, so the keys of
// HashStable must be trusted.
//
// Any two keys share a bucket by chance with a probability of 2^-64.
func TestTwinsShareNoBucket(t *testing.T) {
	const burst = 5
	for _, stable := range []bool{false, true} {
		options := []engine.Option{engine.ClockFunc(func() time.Time { return time.Unix(1_700_000_000, 0) }), engine.MaxKeys(1000)}
		if stable {
			options = append(options, engine.HashStable())
		}
		for _, tw := range twins() {
			for name, key := range map[string]func(l *engine.Limiter, text string) engine.Key{
				"Key":      (*engine.Limiter).Key,
				"KeyBytes": func(l *engine.Limiter, text string) engine.Key { return l.KeyBytes([]byte(text)) },
				"a header": func(l *engine.Limiter, text string) engine.Key { return l.Key(sentAsHeader(t, text)) },
			} {
				l, err := engine.New(engine.TokenBucket(engine.PerSecond(1), burst), options...)
				require.NoError(t, err)
				victim, attacker := key(l, tw.keys[0]), key(l, tw.keys[1])
				require.True(t, l.TakeKey(attacker, burst).Allowed)
				require.False(t, l.AllowKey(attacker))
				require.False(t, l.Allow(tw.keys[1]), "Allow hashes as Key does")

				left := uint64(burst)
				if stable {
					left = 0
				}
				assert.Equal(t, left, l.Peek(victim, 1).Remaining, "%s, %s, stable: %v", tw.name, name, stable)
				assert.Equal(t, !stable, l.TakeKey(victim, burst).Allowed)
				require.NoError(t, l.Close())
			}
		}
	}
}

// sentAsHeader returns the text as a server receives it in a header.
func sentAsHeader(t *testing.T, text string) string {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + text + "\r\n\r\n")))
	require.NoError(t, err)
	return r.Header.Get("X-Api-Key")
}

// # Cycling keys

// A cycled is a limiter that an attacker calls with one key after another.
type cycled struct {
	take        func(key uint64, at int64, tokens uint64) (allowed bool, resetAfter time.Duration)
	counted     func() uint64 // evictions, and requests refused or admitted because there was no room
	latest      func(at int64)
	probeWindow int
	perToken    int64
	burst       uint64
}

// attack tries to make the table forget the drained key 0. For this it takes tokens from other keys, until only one
// slot of the window is idle or free. The other keys become idle in between.
//
// Between any two admissions of a key, both included, at most burst + rate * t may be admitted, where t is the time
// between them. No record may be evicted, and no request may be decided by a lack of room.
func (c *cycled) attack(t *testing.T, seed uint64, others uint64, steps int) (admitted uint64) {
	random := rand.New(rand.NewPCG(seed, uint64(c.probeWindow)))
	now, idleAt := int64(start), map[uint64]int64{}
	admissions := map[uint64][]soakAdmission{}
	take := func(key uint64, at int64, tokens uint64) {
		// At a late time, fewer keys are idle than now.
		busy := 0
		for other, idle := range idleAt {
			if other != key && idle >= at {
				busy++
			}
		}
		if busy > c.probeWindow-2 {
			return
		}
		allowed, reset := c.take(key, at, tokens)
		if allowed {
			// The take was decided at its own time or at the watermark, but not at a time later than now.
			admissions[key] = append(admissions[key], soakAdmission{at, now, int64(tokens) * c.perToken})
			idleAt[key] = max(idleAt[key], at+int64(reset))
		}
	}
	for range c.burst {
		take(0, now, 1)
	}
	for step := range steps {
		switch random.IntN(8) {
		case 0:
			now += random.Int64N(int64(c.burst+2) * c.perToken) // the drained key may also become idle
		case 1, 2, 3:
			now += random.Int64N(2*c.perToken/int64(c.probeWindow) + 1)
		}
		c.latest(now)
		late := now
		if step%3 == 0 {
			late = max(late-random.Int64N(int64(c.burst)*c.perToken), start)
		}
		if random.IntN(2) == 0 {
			take(0, late, 1+random.Uint64N(2))
		} else {
			take(1+random.Uint64N(others), late, 1+random.Uint64N(2))
		}
	}
	require.Zero(t, c.counted(), "a slot was idle all the time")
	for key, list := range admissions {
		var audit soakAudit
		require.LessOrEqual(t, audit.excess(list), int64(c.burst)*c.perToken, "key %d, seed %d, probe window %d, %d other keys", key, seed, c.probeWindow, others)
	}
	return uint64(len(admissions[0]))
}

// TestCyclingKeysWhileASlotIsIdle (I1, I7): an attacker who cycles through keys never gets more tokens from a drained
// key than the limit allows, as long as a slot of the window is idle.
func TestCyclingKeysWhileASlotIsIdle(t *testing.T) {
	const perToken, burst = int64(time.Second), 4
	steps := 1500
	if testing.Short() {
		steps = 300
	}
	for _, probeWindow := range []int{2, 3, 4, 5, 8, 32} {
		for _, policy := range []shard.Overflow{shard.Evict, shard.Refuse, shard.Admit} {
			admitted, reclaimed := uint64(0), false
			for seed := range uint64(8) {
				tb := table(t, 1, burst, 1, probeWindow, policy) // one home
				c := &cycled{probeWindow: probeWindow, perToken: perToken, burst: burst, latest: func(int64) {}}
				c.counted = func() uint64 {
					s := tb.Stats()
					return s.Evictions + s.Forgiven + s.NoRoom + s.Unrecorded
				}
				c.take = func(key uint64, at int64, tokens uint64) (bool, time.Duration) {
					o := tb.Take(tb.Find(key), at, tokens, 0)
					s, decided, v := o.State, o.At, o.Verdict
					if v == shard.Admitted {
						debt := bucketOf(tb).Debt(s.Record(), bucketOf(tb).Ticks(decided))
						return true, time.Duration(decided-at) + bucketOf(tb).Wait(decided, debt)
					}
					require.Equal(t, shard.Refused, v)
					return false, 0
				}
				admitted += c.attack(t, seed, []uint64{uint64(probeWindow), uint64(3 * probeWindow), 1 << 40}[seed%3], steps)
				reclaimed = reclaimed || tb.Watermark() > start
			}
			require.Greater(t, admitted, uint64(8*2*burst), "the drained key was used")
			require.True(t, reclaimed, "idle records were forgotten")
		}
	}
}

// TestCyclingKeysThroughTheEngine (I1, I7) makes the same attack on a limiter of package engine. The limiter has one
// window. The keys are texts, and the times for TakeAt are late.
func TestCyclingKeysThroughTheEngine(t *testing.T) {
	const perToken, burst = int64(100 * time.Millisecond), 6
	steps := 3000
	if testing.Short() {
		steps = 600
	}
	for _, policy := range []engine.OverflowPolicy{engine.Evict, engine.Refuse, engine.Admit} {
		admitted := uint64(0)
		for seed := range uint64(8) {
			var clock atomic.Int64
			clock.Store(start)
			l, err := engine.New(engine.TokenBucket(engine.Per(1, time.Duration(perToken)), burst), engine.MaxKeys(1), engine.Shards(1),
				engine.Overflow(policy), engine.ClockFunc(func() time.Time { return time.Unix(0, clock.Load()) }))
			require.NoError(t, err)
			require.EqualValues(t, shard.DefaultProbeWindow, l.Stats().Slots, "one probe window")
			c := &cycled{probeWindow: shard.DefaultProbeWindow, perToken: perToken, burst: burst, latest: clock.Store}
			c.counted = func() uint64 {
				s := l.Stats()
				return s.Evictions + s.Forgiven + s.NoRoom + s.Unrecorded
			}
			c.take = func(key uint64, at int64, tokens uint64) (bool, time.Duration) {
				text := fmt.Sprintf("203.0.113.%d", key)
				if at < clock.Load() {
					d := l.TakeAt(l.Key(text), tokens, time.Unix(0, at))
					return d.Allowed, d.ResetAfter
				}
				d := l.Take(text, tokens)
				return d.Allowed, d.ResetAfter
			}
			admitted += c.attack(t, seed, []uint64{32, 100, 1 << 40}[seed%3], steps)
			require.NoError(t, l.Close())
		}
		require.Greater(t, admitted, uint64(8*2*burst), "the drained key was used")
	}
}

// TestEvictionTakesTheLeastDebt (I7): an insert into a full window evicts the key that owes the least, and counts its
// debt. So a drained key stays longer than other keys.
func TestEvictionTakesTheLeastDebt(t *testing.T) {
	const burst = 20
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 3))
		probeWindow := 2 + random.IntN(31)
		tb := table(t, 1, burst, 1, probeWindow, shard.Evict)
		now := int64(start)
		// debts returns the debts of the keys that are not idle now.
		debts := func(keys map[uint64]uint64) map[uint64]uint64 {
			all := map[uint64]uint64{}
			for key := range keys {
				o, _ := tb.Peek(tb.Find(key), now, 0, 0)
				s, at := o.State, o.At
				if d := bucketOf(tb).Debt(s.Record(), bucketOf(tb).Ticks(at)); d > 0 {
					all[key] = d
				}
			}
			return all
		}
		known := map[uint64]uint64{}
		forgiven := uint64(0)
		for key := range uint64(400) {
			now += random.Int64N(int64(time.Second) / 4)
			before := debts(known)
			evictions := tb.Stats().Evictions
			v := tb.Take(tb.Find(key), now, 1+random.Uint64N(burst), 0).Verdict
			require.Equal(t, shard.Admitted, v)
			after := debts(before)
			known = maps.Clone(after)
			known[key] = 0
			if tb.Stats().Evictions == evictions {
				require.Equal(t, before, after)
				continue
			}
			require.Len(t, before, probeWindow, "no slot was idle")
			require.Len(t, after, probeWindow-1)
			for victim, debt := range before {
				if after[victim] == 0 {
					forgiven += bucketOf(tb).Tokens(debt)
					for other := range maps.Values(after) {
						require.GreaterOrEqual(t, other, debt, "probe window %d, key %d", probeWindow, key)
					}
				}
			}
			require.Equal(t, forgiven, tb.Stats().Forgiven)
		}
		require.Positive(t, forgiven)
	}
}

// TestFloodIntoTheWindowOfADrainedKey (I1, I7): a drained key gets exactly the tokens that come back with time, while
// an attacker's new keys evict records from its window.
//
// A slot that is being claimed cannot be evicted. So with about as many goroutines as slots, only the slot of the
// drained key might be left to evict.
func TestFloodIntoTheWindowOfADrainedKey(t *testing.T) {
	const burst, goroutines, times = 5, 8, 20
	keys := uint64(4000)
	if testing.Short() {
		keys = 800
	}
	tb := table(t, 1, burst, 1, shard.DefaultProbeWindow, shard.Evict)
	const drained = 0
	v := tb.Take(tb.Find(drained), start, burst, 0).Verdict
	require.Equal(t, shard.Admitted, v)
	for half := range int64(times) {
		now := start + half*int64(time.Second)/2
		var fresh, admitted, again atomic.Uint64
		fresh.Store(uint64(half+1) << 32)
		togetherN(goroutines, func() {
			for range keys / goroutines {
				if v := tb.Take(tb.Find(fresh.Add(1)), now, 1, 0).Verdict; v == shard.Admitted {
					admitted.Add(1)
				}
				if v := tb.Take(tb.Find(drained), now, 1, 0).Verdict; v == shard.Admitted {
					again.Add(1)
				}
			}
		})
		want := uint64(0) // at every second step, one token has come back
		if half > 0 && half%2 == 0 {
			want = 1
		}
		require.Equal(t, want, again.Load(), "tokens of the drained key, after %d halves of a token's time", half)
		require.Equal(t, keys, admitted.Load(), "Evict turns no new key away")
	}
	stats := tb.Stats()
	assert.Greater(t, stats.Evictions, times*(keys-2*shard.DefaultProbeWindow))
	assert.Equal(t, stats.Evictions, stats.Forgiven, "each owed one token or a part of it: the drained key was never among them")
}

func togetherN(n int, f func()) {
	done := make(chan struct{})
	for range n {
		go func() {
			defer func() { done <- struct{}{} }()
			f()
		}()
	}
	for range n {
		<-done
	}
}

// # Aiming

// hashOf returns the hash inside a Key. Only tests need it.
func hashOf(k engine.Key) uint64 { return reflect.ValueOf(k).Field(0).Uint() }

// TestAimedKeys (I7): with the public stable hash, an attacker can choose keys for one window. Only keys with
// overlapping windows are affected. Some records of these keys are forgotten and counted. A drained key in the middle
// of the window stays drained. With the default hash the same keys do no harm.
//
// Another key is evicted by chance only if its window of eight lines is full. With 1,300 keys in 4,168 lines, the
// probability of this is below 1e-19 (see noOverflow).
func TestAimedKeys(t *testing.T) {
	const shards, burst, aimedKeys, others = 4, 5, 100, 1200
	for _, stable := range []bool{true, false} {
		options := []engine.Option{engine.ClockFunc(func() time.Time { return time.Unix(1_700_000_000, 0) }), engine.MaxKeys(10_000), engine.Shards(shards)}
		if stable {
			options = append(options, engine.HashStable())
		}
		l, err := engine.New(engine.TokenBucket(engine.PerSecond(1), burst), options...)
		require.NoError(t, err)
		defer l.Close()
		// A shard of a table consists of homes and of a few more lines. A home is a line of four slots. The further
		// lines complete the window of the last home.
		const homes = (10_000*10/6/shards + 1 + 3) / 4
		require.EqualValues(t, shards*(homes-1+8)*4, l.Stats().Slots)
		place := func(text string) (sh, home uint64) {
			hash := xxhash.Sum64String(text)
			home, _ = bits.Mul64(hash, homes)
			return hash % shards, home
		}
		const aim = 500 // the number of a home in shard 1

		for i := range others {
			require.True(t, l.Take(fmt.Sprint("other ", i), 2).Allowed)
		}
		aimed := []string{}
		for i := 0; len(aimed) < aimedKeys+1; i++ {
			text := fmt.Sprint("attacker ", i)
			if sh, home := place(text); sh == 1 && home == aim {
				aimed = append(aimed, text)
			}
		}
		drained := aimed[aimedKeys]
		require.True(t, l.Take(drained, burst).Allowed)
		for _, text := range aimed[:aimedKeys] {
			require.True(t, l.Allow(text))
			require.False(t, l.Allow(drained))
		}

		hurt := 0
		for i := range others {
			text := fmt.Sprint("other ", i)
			if left := l.Peek(l.Key(text), 1).Remaining; left != burst-2 {
				hurt++
				sh, home := place(text)
				require.True(t, stable && sh == 1 && home > aim-8 && home < aim+8, "%s, in shard %d at home %d, has %d tokens", text, sh, home, left)
			}
		}
		stats := l.Stats()
		if !stable {
			assert.Zero(t, stats.Evictions)
			continue
		}
		assert.GreaterOrEqual(t, stats.Evictions, uint64(aimedKeys+1-shard.DefaultProbeWindow))
		assert.LessOrEqual(t, stats.Evictions, uint64(aimedKeys+hurt))
		assert.LessOrEqual(t, stats.Forgiven, uint64(aimedKeys+2*hurt))
		assert.Zero(t, stats.NoRoom+stats.Unrecorded)
	}
}

// families has functions that make very similar keys, as attackers or ordinary sites may.
var families = map[string]func(l *engine.Limiter, n uint32) engine.Key{
	"numbers from 0":                func(l *engine.Limiter, n uint32) engine.Key { return l.KeyUint64(uint64(n)) },
	"numbers, the high half":        func(l *engine.Limiter, n uint32) engine.Key { return l.KeyUint64(uint64(n) << 32) },
	"numbers, multiples of 4096":    func(l *engine.Limiter, n uint32) engine.Key { return l.KeyUint64(uint64(n) << 12) },
	"users in decimal":              func(l *engine.Limiter, n uint32) engine.Key { return l.Key(fmt.Sprint("user:", n)) },
	"a long common prefix":          func(l *engine.Limiter, n uint32) engine.Key { return l.Key(fmt.Sprint(strings.Repeat("x", 200), n)) },
	"a long common suffix":          func(l *engine.Limiter, n uint32) engine.Key { return l.Key(fmt.Sprint(n, strings.Repeat("x", 200))) },
	"as many letters as the number": func(l *engine.Limiter, n uint32) engine.Key { return l.Key(many[:n%uint32(len(many))]) },
	"IPv4, a /8":                    func(l *engine.Limiter, n uint32) engine.Key { return l.KeyAddr(address4(10<<24 | n)) },
	"IPv4, every 256th":             func(l *engine.Limiter, n uint32) engine.Key { return l.KeyAddr(address4(n << 8)) },
	"IPv4 as text":                  func(l *engine.Limiter, n uint32) engine.Key { return l.Key(address4(10<<24 | n).String()) },
	"IPv6, within a /64":            func(l *engine.Limiter, n uint32) engine.Key { return l.KeyAddr(address6(0, n)) },
	"IPv6, a /64 each":              func(l *engine.Limiter, n uint32) engine.Key { return l.KeyAddr(address6(n, 1)) },
}

var many = strings.Repeat("a", familySize)

func address4(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

func address6(network, host uint32) netip.Addr {
	b := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint32(b[4:], network)
	binary.BigEndian.PutUint32(b[12:], host)
	return netip.AddrFrom16(b)
}

const familySize = 50_000

// TestFamiliesOfKeysAreSpread: with the default hash, similar keys are spread evenly over shards and windows. The seed
// is random, so the test checks bounds that a random function exceeds only with a small probability:
//
//   - In 1,024 bins by low bits (the shard) and by high bits (the home), chi-square is below 1,508. With k = 1,023
//     degrees of freedom, P(> k + 2 sqrt(kx) + 2x) <= exp(-x) (Laurent and Massart). With x = 40 this is 4e-18. With 49
//     keys per bin the distribution is only approximate, but nine orders of magnitude more would be small enough.
//   - No bin has more than 120 keys. By Chernoff's bound, P(X >= m) <= exp(m - u - m ln(m/u)) for a sum X with mean u.
//     With m = 120 this is 1.1e-16 per bin, and 3e-12 for the 24,576 bins of all families.
//   - All keys together find room in a table of eight times as many slots (noOverflow).
func TestFamiliesOfKeysAreSpread(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine and a million keys: the race detector has nothing to find")
	}
	const binCount, mostInABin = 1 << 10, 120
	mean := float64(familySize) / binCount
	perBin := math.Exp(mostInABin - mean - mostInABin*math.Log(mostInABin/mean))
	require.Less(t, perBin*binCount*2*float64(len(families)), 1e-10)

	for name, family := range families {
		t.Run(name, func(t *testing.T) {
			const shards = 8
			l, err := engine.New(engine.TokenBucket(engine.Per(1, time.Hour), 1), engine.MaxKeys(familySize*8*6/10), engine.Shards(shards),
				engine.Overflow(engine.Refuse), engine.ClockFunc(func() time.Time { return time.Unix(1_700_000_000, 0) }))
			require.NoError(t, err)
			defer l.Close()
			require.Less(t, noOverflow(familySize, float64(l.Stats().Slots)/4-shards*7)*float64(len(families)), 1e-9)

			var low, high [binCount]float64
			for n := range uint32(familySize) {
				k := family(l, n)
				low[hashOf(k)%binCount]++
				high[hashOf(k)>>54]++
				require.True(t, l.AllowKey(k), "key %d: %+v", n, l.Stats())
			}
			for _, bins := range [][binCount]float64{low, high} {
				chi, most := 0.0, 0.0
				for _, count := range bins {
					chi += (count - mean) * (count - mean) / mean
					most = max(most, count)
				}
				assert.LessOrEqual(t, chi, 1508.0)
				assert.LessOrEqual(t, most, float64(mostInABin))
			}
			assert.Zero(t, l.Stats().NoRoom)
		})
	}
}

// noOverflow returns an upper bound for the probability that some key finds no room. The table has homes lines and the
// given number of keys. The hash is a random function, and no key becomes idle.
//
// If a key has no room, its window of eight full lines ends a run of L full lines. The run begins behind a line that is
// not full, or at the beginning of the shard. So the run's 4L keys have their homes in these L lines: a key with an
// earlier home would be in the line that is not full. On average, L lines are the home of u = L * keys/homes keys.
// Chernoff's bound (see above), with m = 4L, bounds the probability of 4L keys. The sum over all L from 8 on, and over
// all beginnings, is a bound for the table. (The lines behind the last home only add room.)
func noOverflow(keys, homes float64) float64 {
	u := keys / homes
	perLine := math.Exp(4 - u - 4*math.Log(4/u))
	return homes * math.Pow(perLine, 8) / (1 - perLine)
}
