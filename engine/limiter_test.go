package engine

import (
	"math"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/leakcheck"
	"github.com/weir-go/weir/internal/testalloc"
	"github.com/weir-go/weir/shard"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// A hand is a clock that a test sets.
type hand struct {
	nanos atomic.Int64
	other atomic.Pointer[time.Time] // the clock returns this time instead, if it is not nil
}

func (h *hand) now() time.Time {
	if other := h.other.Load(); other != nil {
		return *other
	}
	return time.Unix(1_700_000_000, h.nanos.Load())
}

func (h *hand) advance(d time.Duration) { h.nanos.Add(int64(d)) }

func newLimiter(t testing.TB, p Policy, options ...Option) (*Limiter, *hand) {
	h := new(hand)
	l, err := New(p, append([]Option{ClockFunc(h.now), MaxKeys(1000)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l, h
}

// These are the seven quick requests of the README.
func TestSevenQuickRequests(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 5))
	for i, want := range []bool{true, true, true, true, true, false, false} {
		d := l.Take("203.0.113.7", 1)
		assert.Equal(t, want, d.Allowed, "request %d", i+1)
		if !want {
			assert.Equal(t, Decision{Limit: 5, RetryAfter: time.Second, ResetAfter: 5 * time.Second}, d)
		}
	}
	assert.True(t, l.Allow("203.0.113.8"), "another client has a bucket of its own")
	h.advance(time.Second - 1)
	assert.False(t, l.Allow("203.0.113.7"), "one nanosecond early")
	h.advance(1)
	assert.True(t, l.Allow("203.0.113.7"))
	assert.False(t, l.Allow("203.0.113.7"))
}

func TestDecision(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(2), 10))
	assert.Equal(t, Decision{Allowed: true, Limit: 10, Remaining: 6, ResetAfter: 2 * time.Second}, l.Take("k", 4))
	h.advance(250 * time.Millisecond)
	assert.Equal(t, Decision{Allowed: true, Limit: 10, Remaining: 5, ResetAfter: 2250 * time.Millisecond},
		l.Take("k", 1), "5.5 tokens are 5 whole ones")
	assert.Equal(t, Decision{Limit: 10, Remaining: 5, RetryAfter: 250 * time.Millisecond,
		ResetAfter: 2250 * time.Millisecond}, l.Take("k", 6))
	h.advance(time.Hour)
	assert.Equal(t, Decision{Allowed: true, Limit: 10, Remaining: 0, ResetAfter: 5 * time.Second}, l.Take("k", 10),
		"the bucket holds no more than its burst")
}

// A cost of 0 is always admitted, and a cost above the limit is never admitted.
func TestCostsOutsideTheBucket(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(2), 10))
	for _, n := range []uint64{11, math.MaxUint64, uint64(1) << 63} {
		assert.Equal(t, Decision{Limit: 10, Remaining: 10, RetryAfter: Never}, l.Take("k", n))
	}
	assert.Equal(t, Decision{Allowed: true, Limit: 10, Remaining: 10}, l.Take("k", 0))
	l.Take("k", 10)
	assert.Equal(t, Decision{Allowed: true, Limit: 10, ResetAfter: 5 * time.Second}, l.Take("k", 0))
	assert.Equal(t, Decision{Limit: 10, RetryAfter: Never, ResetAfter: 5 * time.Second}, l.Take("k", 11))
	assert.Equal(t, Decision{Limit: 10, RetryAfter: Never, ResetAfter: 5 * time.Second},
		l.TakeAt(l.Key("k"), 11, time.Unix(1_700_000_000, 0)))
}

func TestPeekTakesNothing(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 3))
	for range 10 {
		assert.Equal(t, Decision{Allowed: true, Limit: 3, Remaining: 3}, l.Peek(l.Key("k"), 2))
	}
	l.Take("k", 2)
	for range 10 {
		assert.Equal(t, Decision{Limit: 3, Remaining: 1, RetryAfter: time.Second, ResetAfter: 2 * time.Second},
			l.Peek(l.Key("k"), 2), "RetryAfter is right also when only peeking")
	}
	h.advance(time.Second)
	assert.True(t, l.Peek(l.Key("k"), 2).Allowed)
	assert.True(t, l.Take("k", 2).Allowed)
}

func TestReset(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(Per(1, time.Hour), 1))
	require.True(t, l.Allow("k"))
	require.False(t, l.Allow("k"))
	l.Reset(l.Key("nobody"))
	l.Reset(l.Key("k"))
	assert.True(t, l.Allow("k"))
	assert.False(t, l.Allow("k"))
}

// TestTakeAtLateTimes (I8): a call with a time in the past never admits what the latest time would refuse.
func TestTakeAtLateTimes(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1000), 1))
	k, base := l.Key("k"), time.Unix(1_700_000_000, 0)
	admitted := 0
	for i := range 1001 {
		at := base.Add(time.Duration(i) * time.Microsecond)
		if i%2 == 1 {
			at = at.Add(-time.Hour / 2)
		}
		if l.TakeAt(k, 1, at).Allowed {
			admitted++
		}
	}
	assert.Equal(t, 2, admitted, "the burst, and the token of one millisecond")
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Unix(math.MinInt64, 0), base} {
		assert.False(t, l.TakeAt(k, 1, at).Allowed)
	}
}

func TestOverflowRefuseTellsWhenThereIsRoom(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 5), MaxKeys(1), Overflow(Refuse), Shards(1))
	for i := range uint64(32) {
		require.True(t, l.TakeKey(l.KeyUint64(i), 1+i%5).Allowed)
	}
	d := l.Take("late", 1)
	assert.Equal(t, Decision{Limit: 5, RetryAfter: time.Second, ResetAfter: time.Second}, d)
	assert.EqualValues(t, 1, l.Stats().NoRoom)
	h.advance(d.RetryAfter)
	assert.True(t, l.Allow("late"))
}

func TestOverflowAdmitKeepsNoRecord(t *testing.T) {
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 5), MaxKeys(1), Overflow(Admit), Shards(1))
	for i := range uint64(32) {
		require.True(t, l.AllowKey(l.KeyUint64(i)))
	}
	for range 9 {
		assert.Equal(t, Decision{Allowed: true, Limit: 5, Remaining: 4, ResetAfter: time.Second}, l.Take("late", 1))
	}
	assert.EqualValues(t, 9, l.Stats().Unrecorded)
}

func TestKeys(t *testing.T) {
	for _, options := range [][]Option{nil, {HashStable()}} {
		l, _ := newLimiter(t, TokenBucket(Per(1, time.Hour), 1), options...)
		v4, v6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::ffff:192.0.2.1")
		assert.Equal(t, l.KeyAddr(v4), l.KeyAddr(v6), "mapped or not, one address")
		assert.Equal(t, l.KeyAddr(netip.IPv6Unspecified()), l.KeyAddr(netip.Addr{}))
		assert.Equal(t, l.KeyAddr(netip.MustParseAddr("fe80::1%a")), l.KeyAddr(netip.MustParseAddr("fe80::1%b")))
		long := strings.Repeat("x", 1<<20)
		keys := map[Key]string{}
		for _, text := range []string{"", "a", "b", "a\x00", long, long[1:], "192.0.2.1"} {
			k := l.Key(text)
			assert.Equal(t, k, l.KeyBytes([]byte(text)))
			keys[k] = text
			assert.True(t, l.Allow(text), "%.10q is a key like any other", text)
			assert.False(t, l.Allow(text))
		}
		// The three kinds of key are different keys even if their bytes are equal.
		b16, b8 := v4.As16(), [8]byte{7}
		for _, k := range []Key{l.KeyAddr(v4), l.KeyUint64(7), l.KeyBytes(b16[:]), l.KeyBytes(b8[:])} {
			assert.NotContains(t, keys, k)
			keys[k] = "other"
		}
		assert.Len(t, keys, 11)
	}
}

// A Key of the default hash works in every limiter of the process.
func TestOneKeyForSeveralLimiters(t *testing.T) {
	a, _ := newLimiter(t, TokenBucket(Per(1, time.Hour), 1))
	b, _ := newLimiter(t, TokenBucket(Per(1, time.Hour), 2))
	assert.Equal(t, a.Key("k"), b.Key("k"))
}

func TestNewRefuses(t *testing.T) {
	good := TokenBucket(PerSecond(1), 5)
	for _, c := range []struct {
		policy Policy
		option Option
		want   string
	}{
		{Policy{}, Shards(1), "engine: the zero Policy limits nothing"},
		{TokenBucket(PerSecond(0), 5), Shards(1), "engine: token bucket 0/s burst 5: rate of 0 tokens every 1s"},
		{TokenBucket(PerSecond(-3), 5), Shards(1), "rate of -3 tokens"},
		{TokenBucket(PerSecond(math.NaN()), 5), Shards(1), "rate of NaN tokens"},
		{TokenBucket(PerSecond(1e9+1), 5), Shards(1), "want at most 1000000000 tokens a second"},
		{TokenBucket(Rate{}, 5), Shards(1), "rate of 0 tokens"},
		{TokenBucket(PerSecond(1), 0), Shards(1), "burst of 0 tokens: want 1 to 4294967296"},
		{TokenBucket(PerSecond(1), 1<<32+1), Shards(1), "burst of 4294967297 tokens: want 1 to 4294967296"},
		{good, nil, "engine: option 1 of 1 is nil"},
		{good, MaxKeys(0), "engine: MaxKeys(0): want at least 1"},
		{good, MaxKeys(-1), "engine: MaxKeys(-1): want at least 1"},
		{good, MaxKeys(math.MaxInt), "engine: MaxKeys("},
		{good, MaxKeys(math.MaxInt / 2), "engine: MaxKeys("},
		{good, Shards(0), "engine: Shards(0): want a power of two from 1 to 4096"},
		{good, Shards(3), "engine: Shards(3)"},
		{good, Shards(8192), "engine: Shards(8192)"},
		{good, Overflow(7), "engine: Overflow(7): want engine.Evict, engine.Refuse or engine.Admit"},
		{good, SweepInterval(0), "engine: SweepInterval(0s): want 1ms to 24h"},
		{good, SweepInterval(25 * time.Hour), "engine: SweepInterval(25h0m0s)"},
		{good, ClockFunc(nil), "engine: ClockFunc(nil)"},
		{good, ClockFunc(func() time.Time { return time.Time{} }), "engine: the clock reads 0001-01-01 00:00:00 +0000 UTC: want a time from 1970 to 2261"},
		{good, ClockFunc(func() time.Time { return time.Date(1970, 1, 1, 0, 0, 0, 0, time.FixedZone("east", 3600)) }), "engine: the clock reads 1970-01-01"},
	} {
		l, err := New(c.policy, c.option)
		assert.ErrorContains(t, err, c.want)
		assert.Nil(t, l)
	}
}

// New refuses a table that is too large for the memory, and names the numbers.
func TestNewRefusesMoreKeysThanMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reports how much memory there is")
	}
	// This table needs a petabyte, or on a 32-bit system more memory than can be addressed.
	_, err := New(TokenBucket(PerSecond(1), 5), MaxKeys(int(min(uint64(math.MaxInt/8), 1<<46))))
	assert.ErrorContains(t, err, "bytes")
}

// TestMemoryForAMillionKeys (I6): a table for a million keys has 27 bytes per key, and the heap grows by at most that.
func TestMemoryForAMillionKeys(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l, err := New(TokenBucket(PerSecond(1), 5))
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	assert.LessOrEqual(t, l.Stats().Bytes, uint64(27_000_000))
	// If the table can be mapped, the heap does not grow at all.
	assert.LessOrEqual(t, int64(after.HeapAlloc-before.HeapAlloc), int64(27_000_000))
	require.NoError(t, l.Close())
}

func TestOverflowPoliciesAreThoseOfTheTable(t *testing.T) {
	for policy, of := range map[OverflowPolicy]shard.Overflow{Evict: shard.Evict, Refuse: shard.Refuse,
		Admit: shard.Admit} {
		assert.EqualValues(t, of, policy)
		assert.Equal(t, of.String(), policy.String())
	}
}

func TestShardsBySize(t *testing.T) {
	for _, keys := range []int{1, 1000, 1_000_000} {
		l, _ := newLimiter(t, TokenBucket(PerSecond(1), 5), MaxKeys(keys))
		n := l.Stats().Shards
		assert.Zero(t, n&(n-1))
		if n > 1 {
			assert.GreaterOrEqual(t, l.Stats().Slots/uint64(n), uint64(4096))
		}
	}
	l, _ := newLimiter(t, TokenBucket(PerSecond(1), 5), Shards(64))
	assert.Equal(t, 64, l.Stats().Shards)
}

func TestStatsAfterASweep(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 5))
	for i := range uint64(100) {
		l.TakeKey(l.KeyUint64(i), 1+i%2*4)
	}
	l.Sweep()
	assert.EqualValues(t, 100, l.Stats().Keys)
	h.advance(time.Second)
	l.Sweep()
	s := l.Stats()
	assert.EqualValues(t, []uint64{50, 50, 2}, []uint64{s.Keys, s.Reclaimed, s.Sweeps})
	h.advance(time.Minute)
	l.Sweep()
	assert.Zero(t, l.Stats().Keys)
}

func TestCloseTwiceAndThenDecide(t *testing.T) {
	for _, clock := range []Option{ClockTSC(), ClockPrecise(), ClockCoarse()} {
		l, err := New(TokenBucket(Per(1, time.Hour), 2), clock, MaxKeys(100))
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
		assert.Equal(t, []bool{true, true, false}, []bool{l.Allow("k"), l.Allow("k"), l.Allow("k")})
	}
}

// A limiter that is dropped without Close stops its goroutines, which leakcheck in TestMain checks.
func TestForgottenLimiterStops(t *testing.T) {
	l, err := New(TokenBucket(PerSecond(1), 5), MaxKeys(100), ClockCoarse())
	require.NoError(t, err)
	stopped := l.background.stop
	l = nil
	for {
		runtime.GC()
		select {
		case <-stopped:
			return
		default:
			runtime.Gosched()
		}
	}
}

// A mapped table is not unmapped while a call still uses it.
func TestLargeTableOutlivesItsCalls(t *testing.T) {
	for range 3 {
		l, err := New(TokenBucket(PerSecond(1), 5), MaxKeys(3_000_000))
		require.NoError(t, err)
		require.GreaterOrEqual(t, l.Stats().Bytes, uint64(64<<20))
		for i := range uint64(20_000) {
			l.TakeKey(l.KeyUint64(i), 1)
			if i%5000 == 0 {
				runtime.GC()
			}
		}
		require.NoError(t, l.Close())
	}
}

func TestNothingAllocates(t *testing.T) {
	l, h := newLimiter(t, TokenBucket(PerSecond(1), 5), MaxKeys(10_000))
	k, text, addr := l.Key("k"), []byte("bytes"), netip.MustParseAddr("2001:db8::1")
	n := uint64(0)
	for name, f := range map[string]func(){
		"Allow":     func() { l.Allow("some key of ordinary length") },
		"AllowKey":  func() { l.AllowKey(k) },
		"Take":      func() { l.Take("k", 2) },
		"TakeKey":   func() { l.TakeKey(k, 2) },
		"TakeAt":    func() { l.TakeAt(k, 2, h.now()) },
		"Peek":      func() { l.Peek(l.Key("k"), 1) },
		"Reset":     func() { l.Reset(l.Key("k")) },
		"KeyBytes":  func() { l.AllowKey(l.KeyBytes(text)) },
		"KeyAddr":   func() { l.AllowKey(l.KeyAddr(addr)) },
		"KeyUint64": func() { l.AllowKey(l.KeyUint64(9)) },
		"a new key": func() { n++; l.AllowKey(l.KeyUint64(n)) },
		"Sweep":     func() { l.Sweep() },
		"Stats":     func() { l.Stats() },
	} {
		assert.Zero(t, testalloc.PerCall(f), name)
	}
}
