package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"

	"github.com/weir-go/weir/shard"
)

// FuzzPolicy (I1): for any numbers, New returns an error, or makes a limiter that admits exactly its burst.
func FuzzPolicy(f *testing.F) {
	f.Add(1.0, int64(time.Second), uint64(5), int32(1000), 1)
	f.Fuzz(func(t *testing.T, tokens float64, period int64, burst uint64, keys int32, shards int) {
		maxKeys := int(keys) % 5000
		now := time.Unix(1_700_000_000, 123_456_789)
		clock := func() time.Time { return now }
		policy := TokenBucket(Per(tokens, time.Duration(period)), burst)
		l, err := New(policy, MaxKeys(maxKeys), Shards(shards), ClockFunc(clock), SweepInterval(24*time.Hour))
		if wrong := firstWrong(tokens, time.Duration(period), burst, maxKeys, shards); len(wrong) > 0 {
			require.Error(t, err)
			require.Nil(t, l)
			for _, text := range append(wrong, "engine: ") {
				require.ErrorContains(t, err, text)
			}
			return
		}
		require.NoError(t, err)
		defer l.Close()
		require.GreaterOrEqual(t, l.Stats().Slots, uint64(maxKeys))

		algorithm, err := TokenBucket(Per(tokens, time.Duration(period)), burst).build(burst)
		require.NoError(t, err)
		exact := algorithm.(*atomicbucket.TokenBucket).Exact()
		// The whole burst is taken at once, or its last three tokens one by one.
		require.Equal(t, Decision{Limit: burst, Remaining: burst, RetryAfter: Never}, l.Take("k", burst+1))
		all := l.Take("all at once", burst)
		require.True(t, all.Allowed)
		require.Zero(t, all.Remaining)
		require.Positive(t, all.ResetAfter)
		require.False(t, l.Allow("all at once"))
		one := min(burst, 3)
		if burst > one {
			require.True(t, l.Take("k", burst-one).Allowed)
		}
		for i := range one {
			d := l.Take("k", 1)
			if i == one-1 && i+burst > 1 && !exact {
				// A burst that is taken in parts within one tick gets its last token in the next tick.
				require.False(t, d.Allowed)
				require.Positive(t, d.RetryAfter)
				if d.RetryAfter > time.Second {
					return
				}
				now = now.Add(d.RetryAfter - 1)
				require.False(t, l.Allow("k"))
				now = now.Add(1)
				d = l.Take("k", 1)
			}
			require.True(t, d.Allowed, "token %d of the last %d", i+1, one)
			if exact || i == one-1 {
				require.Equal(t, one-1-i, d.Remaining)
			} else { // because of rounding, a part of a token may be missing
				require.InDelta(t, one-1-i, d.Remaining, 1)
			}
		}
		d := l.Take("k", 1)
		require.False(t, d.Allowed, "one more than the burst")
		require.Positive(t, d.RetryAfter)
		require.Equal(t, d.RetryAfter, l.Peek(l.Key("k"), 1).RetryAfter)
		require.GreaterOrEqual(t, d.ResetAfter, d.RetryAfter)
		if now.UnixNano() < math.MaxInt64-int64(d.RetryAfter) {
			now = now.Add(d.RetryAfter - 1)
			require.False(t, l.Allow("k"), "a nanosecond early")
			now = now.Add(1)
			require.True(t, l.Allow("k"), "after waiting as told")
		}
		l.Reset(l.Key("k"))
		require.True(t, l.Take("k", burst).Allowed)
	})
}

// firstWrong returns the texts that the error must contain, or nothing if all numbers are in range.
func firstWrong(tokens float64, period time.Duration, burst uint64, maxKeys, shards int) []string {
	named := fmt.Sprintf("%v tokens every %v", tokens, period)
	if math.IsNaN(tokens) || math.IsInf(tokens, 0) || tokens <= 0 {
		return []string{named, "above 0 and finite"}
	}
	if period <= 0 {
		return []string{named, "at least 1ns"}
	}
	// The limiter reads a number of tokens as the printed decimal number, not as the exact float.
	decimal, _ := new(big.Rat).SetString(strconv.FormatFloat(tokens, 'g', -1, 64))
	nanos := new(big.Rat).SetInt64(int64(period))
	switch longest := new(big.Rat).SetInt64(math.MaxInt64); {
	case decimal.Cmp(nanos) > 0:
		return []string{named, "at most 1000000000 tokens a second"}
	case longest.Mul(longest, decimal).Cmp(nanos) < 0:
		return []string{named, "at least one token in", "292 years"}
	case burst < 1 || burst > 1<<32:
		return []string{fmt.Sprintf("burst of %d tokens", burst), "1 to 4294967296"}
	case maxKeys < 1:
		return []string{fmt.Sprintf("MaxKeys(%d)", maxKeys), "at least 1"}
	case shards < 1 || shards > shard.MaxShards || shards&(shards-1) != 0:
		return []string{fmt.Sprintf("Shards(%d)", shards), "a power of two from 1 to 4096"}
	}
	return nil
}

// FuzzKey (I2): a text and the same bytes have one key, and other texts have other keys.
func FuzzKey(f *testing.F) {
	f.Add([]byte("a"), []byte("b"), uint64(7))
	now := func() time.Time { return time.Unix(1_700_000_000, 0) }
	f.Fuzz(func(t *testing.T, a, b []byte, number uint64) {
		for _, stable := range []bool{false, true} {
			// The table has only one neighborhood, so a run does not depend on the hash's seed.
			options := []Option{MaxKeys(1), Shards(1), ClockFunc(now), SweepInterval(24 * time.Hour)}
			if stable {
				options = append(options, HashStable())
			}
			l, err := New(TokenBucket(Per(1, time.Hour), 2), options...)
			require.NoError(t, err)
			defer l.Close()
			was := string(a)
			ka, kb := l.Key(string(a)), l.Key(string(b))
			require.Equal(t, ka, l.KeyBytes(a))
			require.Equal(t, was, string(a), "the text itself must not change")
			if !stable || len(a) <= 8 && len(b) <= 8 { // longer texts may collide under the stable hash
				require.Equal(t, string(a) == string(b), ka == kb, "%q and %q", a, b)
			}
			requireOneBucket(t, l, ka, func(n uint64) Decision { return l.Take(string(a), n) },
				func() bool { return l.Allow(string(a)) },
				func(n uint64) Decision { return l.Peek(l.Key(string(a)), n) }, func() { l.Reset(l.Key(string(a))) })

			kn := l.KeyUint64(number)
			require.Equal(t, kn, l.KeyUint64(number))
			require.NotEqual(t, kn, l.KeyUint64(number+1))
			require.NotEqual(t, kn, l.KeyBytes(binary.LittleEndian.AppendUint64(nil, number)), "a number is no text")
			requireOneBucketOf(t, l, kn)

			addr, ok := netip.AddrFromSlice(a)
			if !ok {
				addr = netip.AddrFrom4([4]byte(slices.Concat(a, []byte("four"))))
			}
			k16 := l.KeyAddr(netip.AddrFrom16(addr.As16()))
			require.Equal(t, k16, l.KeyAddr(addr), "mapped into IPv6 or not")
			require.Equal(t, k16, l.KeyAddr(addr.Unmap()))
			require.Equal(t, k16, l.KeyAddr(addr.WithZone(string(b))), "the zone is not looked at")
			require.Equal(t, k16 == l.KeyAddr(netip.IPv6Unspecified()), k16 == l.KeyAddr(netip.Addr{}))
			as16 := addr.As16()
			require.NotEqual(t, k16, l.KeyBytes(as16[:]), "an address is no text")
			require.NotEqual(t, k16, kn)
			if next := addr.Next(); next.IsValid() {
				require.NotEqual(t, k16, l.KeyAddr(next))
			}
			requireOneBucketOf(t, l, k16)
		}
	})
}

func requireOneBucketOf(t *testing.T, l *Limiter, k Key) {
	requireOneBucket(t, l, k, func(n uint64) Decision { return l.TakeKey(k, n) }, func() bool { return l.AllowKey(k) },
		func(n uint64) Decision { return l.Peek(k, n) }, func() { l.Reset(k) })
}

// requireOneBucket checks that a key and its text have the same bucket. The bucket must have two tokens and be full.
func requireOneBucket(t *testing.T, l *Limiter, k Key, take func(uint64) Decision, allow func() bool,
	peek func(uint64) Decision, reset func()) {
	defer l.Reset(k)
	full := Decision{Allowed: true, Limit: 2, Remaining: 2}
	require.Equal(t, full, peek(2))
	require.Equal(t, full, l.Peek(k, 2), "peeking takes nothing")
	require.Equal(t, Decision{Allowed: true, Limit: 2, Remaining: 1, ResetAfter: time.Hour}, take(1))
	require.Equal(t, Decision{Allowed: true, Limit: 2, Remaining: 1, ResetAfter: time.Hour}, l.Peek(k, 1))
	require.Equal(t, peek(2), l.TakeKey(k, 2), "refused, as Peek has said")
	require.True(t, l.AllowKey(k))
	require.False(t, allow())
	empty := Decision{Limit: 2, RetryAfter: time.Hour, ResetAfter: 2 * time.Hour}
	require.Equal(t, empty, peek(1))
	require.Equal(t, empty, l.TakeAt(k, 1, l.clock.function.read()))
	reset()
	require.Equal(t, full, l.Peek(k, 1))
}
