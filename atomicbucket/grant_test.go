package atomicbucket

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func clocksOfGrants(t testing.TB) []TokenBucket {
	var clocks []TokenBucket
	for _, longest := range []time.Duration{time.Second, 39 * time.Hour, 300 * time.Hour, 26 * 24 * time.Hour, 27 * 24 * time.Hour, MaxWindow} {
		b, err := NewTicks(longest)
		require.NoError(t, err)
		clocks = append(clocks, b)
	}
	for _, rate := range []float64{1, 97, 1e9, 3e8, 0.8e9, 1.0 / (1 << 20)} {
		b, err := NewTokenBucket(rate, time.Second, 100)
		require.NoError(t, err)
		clocks = append(clocks, b)
	}
	return clocks
}

// requireGrant (I1) compares a grant with rational arithmetic: a token never takes less time than the rate says, and at
// most a thousandth more. Grant must return an error for numbers that do not fit.
func requireGrant(t testing.TB, b TokenBucket, tokens float64, period time.Duration, burst uint64) (granted bool) {
	q, err := b.Grant(tokens, period, burst)
	slow, slowErr := b.share(tokens, period, burst, slowdownParts, "a thousandth")
	require.Equal(t, slowErr, err, "%v tokens every %v, burst %d", tokens, period, burst)
	require.Equal(t, slow, q, "%v tokens every %v, burst %d", tokens, period, burst)
	if err != nil {
		return false
	}
	exact := new(big.Rat).Quo(b.ticksPerNano(), exactRate(tokens, period))
	got := new(big.Rat).SetInt(new(big.Int).SetUint64(q.Token))
	require.GreaterOrEqual(t, got.Cmp(exact), 0, "I1: a token of %v every %v takes %d ticks", tokens, period, q.Token)
	require.LessOrEqual(t, got.Cmp(exact.Mul(exact, big.NewRat(1001, 1000))), 0)
	require.Equal(t, burst, q.Tokens)
	require.LessOrEqual(t, burst, uint64(maxBurstTicks)/q.Token)
	return true
}

// TestGrantAgainstRationals (I1): a grant equals rational arithmetic, for whole and fractional numbers of tokens, and
// all kinds of clocks.
func TestGrantAgainstRationals(t *testing.T) {
	random := rand.New(rand.NewPCG(19, 1))
	granted := 0
	for _, b := range clocksOfGrants(t) {
		for range 2000 {
			tokens := math.Trunc(math.Ldexp(random.Float64(), random.IntN(40)))
			if random.IntN(2) == 0 {
				tokens = math.Ldexp(random.Float64(), random.IntN(60)-30)
			} else if random.IntN(3) == 0 {
				tokens = float64(random.IntN(100000)) / 1000
			}
			period := time.Duration(math.Ldexp(random.Float64(), random.IntN(63)))
			if random.IntN(3) > 0 {
				period = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}[random.IntN(4)]
			}
			if requireGrant(t, b, tokens, period, uint64(math.Ldexp(random.Float64(), random.IntN(34)))) {
				granted++
			}
		}
	}
	require.Greater(t, granted, 2000)
}

// FuzzGrant (I1): see requireGrant.
func FuzzGrant(f *testing.F) {
	f.Add(uint8(0), 100.0, int64(time.Second), uint64(200))
	f.Add(uint8(1), 0.1, int64(time.Hour), uint64(1))
	f.Add(uint8(5), 97.0, int64(time.Second), uint64(1<<32))
	f.Add(uint8(7), 1e9, int64(time.Second), uint64(5))
	f.Add(uint8(7), 999_000_000.0, int64(time.Second), uint64(5))
	f.Add(uint8(3), math.NaN(), int64(-1), uint64(0))
	f.Add(uint8(2), 1e300, int64(math.MaxInt64), uint64(math.MaxUint64))
	f.Add(uint8(2), 5e-324, int64(1), uint64(1))
	f.Fuzz(func(t *testing.T, clock uint8, tokens float64, period int64, burst uint64) {
		clocks := clocksOfGrants(t)
		requireGrant(t, clocks[int(clock)%len(clocks)], tokens, time.Duration(period), burst)
	})
}

// TestNewTicks: a bucket that takes the longest time to fill fits into a record, and the tick is the finest possible
// one.
func TestNewTicks(t *testing.T) {
	for _, c := range []struct {
		longest time.Duration
		perNano *big.Rat
	}{
		{1, big.NewRat(16, 1)},
		{39 * time.Hour, big.NewRat(16, 1)},
		{40 * time.Hour, big.NewRat(15, 1)},
		{26 * 24 * time.Hour, big.NewRat(1, 1)},
		{27 * 24 * time.Hour, big.NewRat(1, 2)},
		{MaxWindow, big.NewRat(1, 16)},
	} {
		b, err := NewTicks(c.longest)
		require.NoError(t, err)
		require.Equal(t, 0, b.ticksPerNano().Cmp(c.perNano), "%v: %v ticks a nanosecond", c.longest, b.ticksPerNano())
		_, err = b.Grant(1, c.longest, 1)
		require.NoError(t, err, c.longest)
	}
	for _, longest := range []time.Duration{math.MinInt64, -1, 0, MaxWindow + 1, math.MaxInt64} {
		_, err := NewTicks(longest)
		require.ErrorContains(t, err, "want 1ns to 8760h0m0s", longest)
	}
}

// quickly calculates the result of quickTicks with rational numbers. It checks every reason for which ok is false.
func quickly(b TokenBucket, tokens float64, period time.Duration) (token uint64, ok bool) {
	digits, shift, ok := decimal(tokens)
	if !(tokens > 0) || period <= 0 || !ok || digits == 0 || b.step > 1 {
		return 0, false
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(shift)), nil)
	nanos := new(big.Int).Mul(big.NewInt(int64(period)), scale) // digits is the number of tokens in this time
	if !nanos.IsUint64() || nanos.Uint64() < digits {
		return 0, false
	}
	exact := new(big.Rat).SetFrac(nanos, new(big.Int).SetUint64(digits))
	exact.Mul(exact, b.ticksPerNano())
	up := new(big.Int).Quo(exact.Num(), exact.Denom())
	if !exact.IsInt() {
		up.Add(up, big.NewInt(1))
		if up.Cmp(big.NewInt(slowdownParts+1)) <= 0 {
			return 0, false
		}
	}
	return up.Uint64(), up.Sign() > 0 && up.Cmp(big.NewInt(maxBurstTicks)) <= 0
}

// TestQuickTicks (I1): quickTicks returns the result of rational arithmetic, and ok is true in all cases in which it
// can be.
func TestQuickTicks(t *testing.T) {
	random := rand.New(rand.NewPCG(19, 3))
	batch, err := NewBatchBucket(3, time.Second, 9)
	require.NoError(t, err)
	slow, err := NewTokenBucket(1.5/(1<<33), time.Second, 1<<32) // a bucket with very long ticks
	require.NoError(t, err)
	quick := 0
	for _, b := range append(clocksOfGrants(t), batch, slow) {
		for range 4000 {
			tokens := float64(1 + random.IntN(1000))
			switch random.IntN(4) {
			case 0:
				tokens = math.Ldexp(random.Float64(), random.IntN(80)-30)
			case 1:
				tokens /= 1000
			case 2:
				tokens = math.Trunc(math.Ldexp(random.Float64(), random.IntN(53)))
			}
			period := time.Duration(math.Ldexp(random.Float64(), random.IntN(63)))
			if random.IntN(2) == 0 { // near powers of two
				period = time.Duration(1)<<random.IntN(63) + time.Duration(random.IntN(3)-1)
			}
			want, wantOK := quickly(b, tokens, period)
			token, ok := b.quickTicks(tokens, period)
			require.Equal(t, wantOK, ok, "%v tokens every %d", tokens, period)
			if ok {
				quick++
				require.Equal(t, want, token, "%v tokens every %d", tokens, period)
			}
		}
	}
	require.Greater(t, quick, 10000)
}

// TestQuickTicksByHeart compares quickTicks with hand-computed numbers at the ends of its range, beyond which it
// returns 0.
func TestQuickTicksByHeart(t *testing.T) {
	one, err := NewTicks(26 * 24 * time.Hour) // a tick is a nanosecond
	require.NoError(t, err)
	long, err := NewTicks(MaxWindow)
	require.NoError(t, err)
	tick := time.Duration(long.clock.first(1))
	fine, err := NewTicks(time.Second) // sixteen ticks per nanosecond
	require.NoError(t, err)
	nine, err := NewTicks(maxBurstTicks / 9)
	require.NoError(t, err)
	batch, err := NewBatchBucket(3, time.Second, 9)
	require.NoError(t, err)
	halves, err := NewTokenBucket(0.8e9, time.Second, 100) // a token takes 5/4 ns
	require.NoError(t, err)
	for _, c := range []struct {
		name   string
		bucket TokenBucket
		tokens float64
		period time.Duration
		token  uint64
		ok     bool
	}{
		{"a token a second", one, 1, time.Second, 1e9, true},
		{"a token a nanosecond", one, 1, 1, 1, true},
		{"more than a token a nanosecond", one, 2, 1, 0, false},
		{"more digits than fit", one, 1e-19, time.Minute, 0, false},
		{"rounded by a thousandth", one, 2, 2001, 1001, false},
		{"rounded by less", one, 2, 2003, 1002, true},
		{"the longest", one, 1, 1 << 51, 1 << 51, true},
		{"longer than the longest", one, 1, 1<<51 + 1, 1<<51 + 1, false},
		{"none", one, 0, time.Second, 0, false},
		{"less than none", one, -1, time.Second, 0, false},
		{"not a number", one, math.NaN(), time.Second, 0, false},
		{"in no time", one, 1, 0, 0, false},
		{"in less than no time", one, 1, -1, 0, false},
		{"too many decimals", one, 1e-20, time.Second, 0, false},
		{"batches", batch, 1, time.Second, 0, false},
		{"long ticks", long, 1, tick << 51, 1 << 51, true},
		{"long ticks, rounded up", long, 1, tick<<51 - 1, 1 << 51, true},
		{"long ticks, rounded up too far", long, 1, tick<<51 + 1, 1<<51 + 1, false},
		{"a token of less than a tick", long, 1, 1, 1, false},
		{"more ticks than a word holds", fine, 1, 1<<60 + 1, 0, false},
		{"as many ticks as a word holds, rounded up", nine, 4, 8198552921648689607, 0, false},
		{"rounded ticks", halves, 0.8e9, time.Second, halves.token, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			token, ok := c.bucket.quickTicks(c.tokens, c.period)
			require.Equal(t, c.ok, ok)
			require.Equal(t, c.token, token)
		})
	}
}

// TestDecimal: decimal returns the digits of the text of a float, up to the ends of the range that fits.
func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		f      float64
		digits uint64
		shift  int
		ok     bool
	}{
		{0, 0, 0, true}, {1, 1, 0, true}, {0.1, 1, 1, true}, {12.5, 125, 1, true}, {1 << 52, 1 << 52, 0, true}, {1 << 53, 1 << 53, 0, true},
		{1 << 60, 1152921504606847000, 0, true}, // its text is less than the number
		{1e-19, 1, 19, true}, {1e-20, 0, 0, false}, {1.5e-19, 0, 0, false},
		{1e19, 1e19, 0, true}, {1.8e19, 18e18, 0, true}, {1.9e19, 0, 0, false}, {2e19, 0, 0, false}, {1e300, 0, 0, false},
		{1<<51 + 0.5, 22517998136852485, 1, true},
	} {
		digits, shift, ok := decimal(c.f)
		require.Equal(t, []any{c.digits, c.shift, c.ok}, []any{digits, shift, ok}, "%v", c.f)
	}
}

// TestWhatRecordsHaveRoomFor: SameUnits returns true if a quota means the same tokens in both algorithms and fits into
// the records.
func TestWhatRecordsHaveRoomFor(t *testing.T) {
	bucket := func(rate float64, burst uint64) *TokenBucket {
		b, err := NewTokenBucket(rate, time.Second, burst)
		require.NoError(t, err)
		return &b
	}
	batch := func(refill uint64, interval time.Duration) *TokenBucket {
		b, err := NewBatchBucket(refill, interval, 9)
		require.NoError(t, err)
		return &b
	}
	ticks := func(longest time.Duration) *TokenBucket {
		b, err := NewTicks(longest)
		require.NoError(t, err)
		return &b
	}
	fixed := func(most uint64) *FixedWindow {
		w, err := NewFixedWindow(5, most, time.Minute, false)
		require.NoError(t, err)
		return &w
	}
	sliding := func(most uint64) *SlidingWindow {
		w, err := NewSlidingWindow(5, most, time.Minute)
		require.NoError(t, err)
		return &w
	}
	log := func(most uint64) *SlidingLog {
		l, err := NewSlidingLog(5, most, time.Minute)
		require.NoError(t, err)
		return &l
	}
	require.Equal(t, uint64(maxBurstTicks), Most(bucket(1, 5)))
	require.EqualValues(t, 15, Most(fixed(9)))
	require.EqualValues(t, 15, Most(sliding(9)))
	require.EqualValues(t, 9, Most(log(9)))
	for _, c := range []struct {
		name          string
		before, after Algorithm
		same          bool
	}{
		{"another burst", bucket(1, 5), bucket(1, 6), true},
		{"another exact rate", bucket(1, 5), bucket(2, 5), false},
		{"another exact rate, with prices", bucket(1, 5).Priced(), bucket(2, 5).Priced(), true},
		{"longer ticks, with prices", bucket(1, 5).Priced(), bucket(0.8e9, 5).Priced(), false},
		{"shorter ticks", bucket(1, 5), bucket(0.8e9, 5), false},
		{"the same rounded ticks", bucket(97, 5), bucket(97, 5), true},
		{"other rounded ticks", bucket(97, 5), bucket(89, 5), false},
		{"longer ticks", ticks(27 * 24 * time.Hour), ticks(MaxWindow), false},
		{"the same batches", batch(3, time.Second), batch(3, time.Second), true},
		{"batches of another size", batch(3, time.Second), batch(4, time.Second), false},
		{"batches at other times", batch(3, time.Second), batch(3, time.Minute), false},
		{"ticks and batches of as long", batch(1, 2), ticks(27 * 24 * time.Hour), true},
		{"ticks and batches of two", batch(2, 2), ticks(27 * 24 * time.Hour), false},
		{"exact ticks and batches of as long", batch(1, 1), bucket(1, 5), false},
		{"exact ticks of another length", ticks(26 * 24 * time.Hour), ticks(39 * time.Hour), false},
		{"a window that counts as far", fixed(9), fixed(15), true},
		{"a window that counts further", fixed(9), fixed(16), true},
		{"a window that does not count so far", fixed(16), fixed(9), false},
		{"a counter that counts further", sliding(9), sliding(16), true},
		{"a counter that does not count so far", sliding(16), sliding(9), false},
		{"a log of the same size", log(9), log(9), true},
		{"a larger log", log(9), log(10), true},
		{"a smaller log", log(10), log(9), false},
		{"a bucket and a window", bucket(1, 5), fixed(9), false},
		{"a window and a bucket", fixed(9), bucket(1, 5), false},
		{"a window and a counter", fixed(9), sliding(9), false},
		{"a counter and a log", sliding(9), log(9), false},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.same, SameUnits(c.before, c.after)) })
	}
	require.False(t, SameUnits(bucket(1, 5), nil))
}

// TestTheLargestGrant: the largest burst uses all ticks that a record has room for. A larger burst is refused, even if
// its ticks overflow a word.
func TestTheLargestGrant(t *testing.T) {
	b, err := NewTicks(26 * 24 * time.Hour) // a tick is a nanosecond
	require.NoError(t, err)
	q, err := b.Grant(1, 1<<50, 2)
	require.NoError(t, err)
	require.Equal(t, Quota{1 << 50, 2}, q)
	for _, burst := range []uint64{3, 1 << 14, 1<<14 + 1, 1 << 15} { // the last two have about 2^64 and 2^65 ticks
		_, err = b.Grant(1, 1<<50, burst)
		require.ErrorContains(t, err, "want at most 2")
		_, err = b.share(1, 1<<50, burst, slowdownParts, "a thousandth")
		require.ErrorContains(t, err, "want at most 2")
	}
}

// TestADemandForNothingIsMet: a demand for 0 tokens never waits, even if the record owes more than the limit.
func TestADemandForNothingIsMet(t *testing.T) {
	const at = 1 << 50
	fixed, err := NewFixedWindow(5, 15, time.Minute, false)
	require.NoError(t, err)
	sliding, err := NewSlidingWindow(5, 15, time.Minute)
	require.NoError(t, err)
	bucket, err := NewTokenBucket(1, time.Second, 5)
	require.NoError(t, err)
	inFlight, err := NewConcurrency(5, 15, time.Minute)
	require.NoError(t, err)
	for _, a := range []Algorithm{&fixed, &sliding, &bucket, &inFlight} {
		token := a.Quota().Token
		full := NewState(Live, 1, a.Full(a.Ticks(at))).Record()
		payload, ok := a.Take(full, a.Ticks(at), Demand{9 * token, 15 * token, token})
		require.True(t, ok)
		require.Zero(t, a.Shortfall(full.After(payload), a.Ticks(at), Demand{0, 5 * token, token}), "%T", a)
		require.NotZero(t, a.Shortfall(full.After(payload), a.Ticks(at), Demand{token, 5 * token, token}), "%T", a)
	}
}

// TestNewTicksByHeart: a tick is two nanoseconds for the shortest time that does not fit into ticks of one nanosecond,
// and for the longest time that fits into ticks of two.
func TestNewTicksByHeart(t *testing.T) {
	for _, longest := range []time.Duration{1<<51 + 1, 1 << 52} {
		b, err := NewTicks(longest)
		require.NoError(t, err)
		require.Equal(t, TokenBucket{burst: 5e8, token: 5e8, step: 1, clock: newDivider(2), tokens: newDivider(5e8), prices: true}, b)
	}
	b, err := NewTicks(1<<52 + 1)
	require.NoError(t, err)
	require.Equal(t, newDivider(4), b.clock)
	b, err = NewTicks(1 << 51)
	require.NoError(t, err)
	require.True(t, b.Exact())
}

// TestQuickTicksThatAreAlmostWhole (I1): quickTicks rounds up even if the remainder of a token's ticks is the smallest
// that 128 bits can represent, or smaller. The test computes periods with such remainders from the inverse of the
// clock's factor.
func TestQuickTicksThatAreAlmostWhole(t *testing.T) {
	found := [2]int{} // how often the ticks of a token are in one word of the quotient, and how often in two
	for _, rate := range []float64{97, 89, 83, 3e-5, 3.1e-5, 3.3e-5, 3.5e-5, 3.7e-5, 3.9e-5, 4.1e-5, 4.3e-5} {
		b, err := NewTokenBucket(rate, time.Second, 100)
		require.NoError(t, err)
		cut := uint(63 + b.clock.shift)
		if b.exact != 0 || b.clock.mul%2 == 0 || cut > 70 {
			continue
		}
		for digits := int64(1); digits < 4197; digits += 2 {
			if digits == 3 {
				digits = 4097
			}
			modulus := new(big.Int).Lsh(big.NewInt(digits), cut)
			inverse := new(big.Int).ModInverse(new(big.Int).SetUint64(b.clock.mul), modulus)
			for rest := int64(1); inverse != nil && rest <= digits; rest++ {
				period := new(big.Int).Mul(inverse, big.NewInt(rest))
				if period.Mod(period, modulus).IsInt64() {
					found[cut/64]++
					want, wantOK := quickly(b, float64(digits), time.Duration(period.Int64()))
					token, ok := b.quickTicks(float64(digits), time.Duration(period.Int64()))
					require.Equal(t, []any{want, wantOK}, []any{token, ok}, "%v: %d every %d", rate, digits, period)
				}
			}
		}
	}
	require.Positive(t, found[0])
	require.Positive(t, found[1])
}
