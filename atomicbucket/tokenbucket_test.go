package atomicbucket_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/reference"
)

// policies has test cases for token buckets, from one end of the allowed ranges to the other.
var policies = []struct {
	tokens float64
	period time.Duration
	burst  uint64
}{
	{1, time.Second, 1},
	{1, time.Second, 5},
	{100, time.Second, 200},
	{10, 1500 * time.Millisecond, 10},
	{1e7, time.Hour, 1e7},
	{3e8, time.Second, 1000},
	{1e9, time.Second, 1},
	{1e9, time.Second, 1 << 32},
	{1, 24 * time.Hour, 1},
	{1, 24 * time.Hour, 1 << 32},
	{0.1, time.Second, 3},
	{7, 3 * time.Nanosecond * 1e6, 11},
	{1.0 / 3, time.Minute, 2},
	{1, math.MaxInt64, 4},
	{999999937, time.Second, 4294967291},
	{0.1, time.Second, 2},
	{60, time.Second, 100},
	{16, 15 * time.Nanosecond * 1e3, 3},
	{17, 15 * time.Nanosecond * 1e3, 3},
	{97, time.Second, 97},
}

func TestTokenBucketKnowsWhetherItIsExact(t *testing.T) {
	for i, want := range []bool{true, true, true, true, true, true, true, true, true, false, true, true, false, false, false, true, true, true, false, false} {
		p := policies[i]
		algorithm, err := atomicbucket.NewTokenBucket(p.tokens, p.period, p.burst)
		require.NoError(t, err)
		assert.Equal(t, want, algorithm.Exact(), "%v", p)
		assert.Equal(t, p.burst, algorithm.Quota().Tokens)
	}
}

// A bucket is one word, which the test uses as a table would: it forgets the word when the bucket is idle.
type bucket struct {
	algorithm atomicbucket.TokenBucket
	state     atomicbucket.State
	used      bool
}

func newBucket(t testing.TB, tokens float64, period time.Duration, burst uint64) *bucket {
	algorithm, err := atomicbucket.NewTokenBucket(tokens, period, burst)
	require.NoError(t, err)
	return &bucket{algorithm: algorithm}
}

func (b *bucket) take(nanos int64, n uint64) bool {
	now := b.algorithm.Ticks(nanos)
	if !b.used {
		b.state = atomicbucket.NewState(atomicbucket.Live, 0, b.algorithm.Full(now))
	}
	payload, ok := b.algorithm.Take(b.state.Record(), now, b.algorithm.Quota().Demand(n))
	if ok {
		b.state, b.used = atomicbucket.NewState(atomicbucket.Live, 0, payload), true
	}
	return ok
}

// TestTokenBucketAgainstRationals (I1, I2): an exact algorithm equals the exact bucket with the same history. Any other
// algorithm is never early, and late by at most two ticks. So the exact bucket must admit whatever the algorithm
// admits. An exact bucket with two ticks less must refuse whatever the algorithm refuses.
func TestTokenBucketAgainstRationals(t *testing.T) {
	for i, p := range policies {
		t.Run(fmt.Sprintf("%v per %v burst %d", p.tokens, p.period, p.burst), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range 40 {
				checkAgainstRationals(t, newBucket(t, p.tokens, p.period, p.burst),
					reference.NewTokenBucket(p.tokens, p.period, p.burst), random, p.burst)
			}
		})
	}
}

func checkAgainstRationals(t *testing.T, b *bucket, exact *reference.TokenBucket, random *rand.Rand, burst uint64) {
	nanos := random.Int64N(math.MaxInt64 / 2)
	// One token is Cost(1) ticks. The clock is slow by one part in 2^63, far below the thousandth of a tick that is
	// added.
	late := new(big.Rat).SetFrac(big.NewInt(2001), new(big.Int).Mul(big.NewInt(1000), new(big.Int).SetUint64(b.algorithm.Cost(1))))
	if b.algorithm.Exact() {
		late.SetInt64(0)
	}
	for range 100 {
		n := 1 + random.Uint64N(burst)
		if random.IntN(2) == 0 {
			n = 1 + random.Uint64N(min(burst, 3))
		}
		before := exact.Tokens(nanos)
		if b.take(nanos, n) {
			require.True(t, exact.Take(nanos, n), "early: %d of %v tokens at %d", n, before, nanos)
			require.LessOrEqual(t, b.algorithm.Status(b.state.Record(), nanos, b.algorithm.Quota().Demand(0)).Remaining, floor(exact.Tokens(nanos)))
		} else {
			less := new(big.Rat).Sub(before, late)
			require.Negative(t, less.Cmp(new(big.Rat).SetInt(new(big.Int).SetUint64(n))), "late: %d of %v tokens at %d", n, before, nanos)
		}
		// The clock moves to the edge of the next admission, near it, or far away.
		wait := b.algorithm.Status(b.state.Record(), nanos, b.algorithm.Quota().Demand(n)).RetryAfter
		switch step := random.IntN(6); {
		case step == 0:
			wait /= 2
		case step == 1:
			wait += time.Duration(random.Int64N(5)) - 2
		case step == 2:
			wait = time.Duration(random.Int64N(1e6))
		case step == 3:
			wait = time.Duration(random.Int64N(int64(week)))
		}
		nanos += min(max(int64(wait), 0), int64(week))
		if random.IntN(2) == 0 && b.algorithm.Idle(b.state, b.algorithm.Ticks(nanos)) {
			b.used = false // a table may forget it here, and no call can observe that (I7)
		}
	}
}

// week is shorter than the time after which an idle record looks as if it owed something again.
const week = 7 * 24 * time.Hour

func floor(r *big.Rat) uint64 { return new(big.Int).Quo(r.Num(), r.Denom()).Uint64() }

// TestTokenBucketWaitIsExact: the request is admitted after RetryAfter, and not a nanosecond sooner. The time until the
// bucket is full is exact, too.
func TestTokenBucketWaitIsExact(t *testing.T) {
	for i, p := range policies {
		t.Run(fmt.Sprintf("%v per %v burst %d", p.tokens, p.period, p.burst), func(t *testing.T) {
			random := rand.New(rand.NewPCG(2, uint64(i)))
			for range 1000 {
				b := newBucket(t, p.tokens, p.period, p.burst)
				nanos := random.Int64N(math.MaxInt64 / 2)
				require.True(t, b.take(nanos, p.burst-random.Uint64N(min(p.burst, 7))))
				n := 1 + random.Uint64N(p.burst)

				wait := b.algorithm.Status(b.state.Record(), nanos, b.algorithm.Quota().Demand(n)).RetryAfter
				if at := nanos + int64(wait); wait > 0 && wait < week {
					_, ok := b.algorithm.Take(b.state.Record(), b.algorithm.Ticks(at), b.algorithm.Quota().Demand(n))
					require.True(t, ok, "%d tokens after %v", n, wait)
					_, ok = b.algorithm.Take(b.state.Record(), b.algorithm.Ticks(at-1), b.algorithm.Quota().Demand(n))
					require.False(t, ok, "%d tokens 1ns before %v", n, wait)
				}
				full := b.algorithm.Status(b.state.Record(), nanos, b.algorithm.Quota().Demand(n)).ResetAfter
				if at := nanos + int64(full); full < week {
					require.True(t, b.algorithm.Idle(b.state, b.algorithm.Ticks(at)))
					require.False(t, b.algorithm.Idle(b.state, b.algorithm.Ticks(at-1)))
				}
			}
		})
	}
}

// TestTokenBucketTicksAndWait: Ticks and Wait equal rational arithmetic, up to the end of the timeline.
func TestTokenBucketTicksAndWait(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for _, p := range policies {
		algorithm, err := atomicbucket.NewTokenBucket(p.tokens, p.period, p.burst)
		require.NoError(t, err)
		exact := reference.NewTokenBucket(p.tokens, p.period, p.burst).Rate()
		exact.Mul(exact, new(big.Rat).SetInt(new(big.Int).SetUint64(algorithm.Cost(1))))
		for range 2000 {
			nanos := random.Int64N(math.MaxInt64) >> random.IntN(40)
			tick := algorithm.Ticks(nanos)
			want := new(big.Rat).Mul(exact, new(big.Rat).SetInt64(nanos))
			off := want.Sub(want, new(big.Rat).SetInt(new(big.Int).SetUint64(tick)))
			if algorithm.Exact() { // ticks count modulo 2^64
				circle := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 64))
				require.True(t, off.Quo(off, circle).IsInt())
			} else {
				require.GreaterOrEqual(t, off.Sign(), 0, "fast at %d", nanos)
				require.Negative(t, off.Cmp(big.NewRat(2, 1)), "more than a tick and the drift slow at %d", nanos)
			}

			// After Wait, the ticks have passed, and a nanosecond earlier they have not.
			ticks := random.Uint64N(1<<51) >> random.IntN(51)
			wait := algorithm.Wait(nanos, ticks)
			if wait < math.MaxInt64-time.Duration(nanos) {
				require.GreaterOrEqual(t, algorithm.Ticks(nanos+int64(wait))-tick, ticks)
			}
			if wait > 0 && wait < week {
				require.Less(t, algorithm.Ticks(nanos+int64(wait)-1)-tick, ticks)
			}
		}
		assert.Zero(t, algorithm.Wait(1e18, 0))
	}
	algorithm, err := atomicbucket.NewTokenBucket(1.0/3, 1e9*time.Second, 1<<32)
	require.NoError(t, err)
	assert.Equal(t, time.Duration(math.MaxInt64), algorithm.Wait(1e18, 1<<51), "beyond the end of the timeline")

	algorithm, err = atomicbucket.NewTokenBucket(476.8371582031, time.Second, 5) // almost two ticks per nanosecond
	require.NoError(t, err)
	assert.Equal(t, time.Duration(math.MaxInt64), algorithm.Wait(math.MaxInt64, 1<<22), "beyond the last tick")
}

// TestTokenBucketMaxSkew: the skew of an algorithm is at least 19 hours. It is a sixteenth of the circle, but at most
// 2^59 ns.
func TestTokenBucketMaxSkew(t *testing.T) {
	for _, p := range policies {
		algorithm, err := atomicbucket.NewTokenBucket(p.tokens, p.period, p.burst)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, algorithm.MaxSkew(), 19*time.Hour)
		assert.LessOrEqual(t, algorithm.MaxSkew(), time.Duration(1<<59))
		if algorithm.MaxSkew() < 1<<59 {
			assert.InDelta(t, float64(1<<50), float64(algorithm.Ticks(int64(algorithm.MaxSkew()))), 16, "the ticks of a nanosecond")
		}
	}
}

// TestTokenBucketNarrowFuture: a TAT that is further ahead than burst and skew allow has wrapped around the circle, so
// it is read as past.
func TestTokenBucketNarrowFuture(t *testing.T) {
	b := newBucket(t, 1, time.Second, 5)
	const now = 1 << 60
	at := func(tat uint64) atomicbucket.State { return atomicbucket.NewState(atomicbucket.Live, 9, tat) }
	for _, ahead := range []uint64{1, 5e9, 1 << 51, 3<<50 + 1} {
		assert.Equal(t, ahead, b.algorithm.Debt(at(now+ahead).Record(), now))
		assert.Zero(t, b.algorithm.Debt(at(now-ahead).Record(), now))
	}
	for _, ahead := range []uint64{0, 3<<50 + 2, 1 << 53, 1<<54 - 1, 1 << 54} {
		assert.True(t, b.algorithm.Idle(at(now+ahead), now), "%d ticks ahead", ahead)
	}
}

// TestTokenBucketPollingKeepsTheRemainder: a client that polls faster than a token comes back must not keep the bucket
// empty. Some other implementations have this fault.
func TestTokenBucketPollingKeepsTheRemainder(t *testing.T) {
	b := newBucket(t, 10, time.Second, 1)
	nanos, admitted := int64(1e17), 0
	for range 1000 { // one second, with a poll per millisecond
		if b.take(nanos, 1) {
			admitted++
		}
		nanos += 1e6
	}
	assert.Equal(t, 10, admitted)
}

// TestTokenBucketLateTimeMintsNothing: a time in the past must not set the clock back and create tokens (I8). This is a
// fault of x/time/rate and others.
func TestTokenBucketLateTimeMintsNothing(t *testing.T) {
	b := newBucket(t, 1000, time.Second, 1)
	now, admitted := int64(1e17), 0
	for i := range int64(2000) {
		if b.take(now-i%2*1e9, 1) {
			admitted++
		}
	}
	assert.Equal(t, 1, admitted)
}

func TestTokenBucketRefusesNumbersOutOfRange(t *testing.T) {
	for _, c := range []struct {
		tokens float64
		period time.Duration
		burst  uint64
		want   string
	}{
		{0, time.Second, 1, "rate of 0 tokens every 1s: the number of tokens must be above 0 and finite"},
		{-1, time.Second, 1, "rate of -1 tokens"},
		{math.NaN(), time.Second, 1, "rate of NaN tokens"},
		{math.Inf(1), time.Second, 1, "rate of +Inf tokens"},
		{1, 0, 1, "the period must be at least 1ns"},
		{1, -time.Second, 1, "the period must be at least 1ns"},
		{1e9 + 1, time.Second, 1, "want at most 1000000000 tokens a second"},
		{math.MaxFloat64, time.Nanosecond, 1, "want at most"},
		{0.5, math.MaxInt64, 1, "want at least one token in 2562047h47m16.854775807s (292 years)"},
		{math.SmallestNonzeroFloat64, time.Second, 1, "want at least one token"},
		{1, time.Second, 0, "burst of 0 tokens: want 1 to 4294967296"},
		{1, time.Second, 1<<32 + 1, "burst of 4294967297 tokens: want 1 to 4294967296"},
	} {
		_, err := atomicbucket.NewTokenBucket(c.tokens, c.period, c.burst)
		assert.ErrorContains(t, err, c.want)
	}
}

// FuzzTokenBucket compares token buckets with any numbers with rational arithmetic.
func FuzzTokenBucket(f *testing.F) {
	for _, p := range policies {
		f.Add(p.tokens, int64(p.period), p.burst, uint64(1))
	}
	f.Fuzz(func(t *testing.T, tokens float64, period int64, burst, seed uint64) {
		algorithm, err := atomicbucket.NewTokenBucket(tokens, time.Duration(period), burst)
		if err != nil {
			return
		}
		checkAgainstRationals(t, &bucket{algorithm: algorithm}, reference.NewTokenBucket(tokens, time.Duration(period), burst),
			rand.New(rand.NewPCG(seed, 0)), burst)
	})
}

// TestWaitForMoreTicksThanThereAre: the wait for any number of ticks is exact, or is the longest Duration.
func TestWaitForMoreTicksThanThereAre(t *testing.T) {
	for _, rate := range []struct {
		tokens float64
		period time.Duration
	}{{1, 1}, {2, 3}, {16, 17}, {7, 1000}} {
		algorithm, err := atomicbucket.NewTokenBucket(rate.tokens, rate.period, 1)
		require.NoError(t, err)
		require.True(t, algorithm.Exact())
		exact := algorithm.Ticks(1)
		for _, ticks := range []uint64{1, exact, exact + 1, 1 << 62, math.MaxInt64 - 17, math.MaxInt64 - 16, math.MaxInt64 - 15, math.MaxInt64, 1 << 63, math.MaxUint64} {
			want := min((ticks-1)/exact+1, math.MaxInt64)
			require.EqualValues(t, want, algorithm.Wait(12345, ticks), "%d ticks, %d in a nanosecond", ticks, exact)
		}
	}
}

// TestWhatIsLeftIsInTheTokensOfTheLimit: Left counts in tokens of the limit, even if these have another cost than the
// bucket's own tokens.
func TestWhatIsLeftIsInTheTokensOfTheLimit(t *testing.T) {
	for _, p := range policies {
		b, err := atomicbucket.NewTokenBucket(p.tokens, p.period, p.burst)
		require.NoError(t, err)
		own := b.Quota()
		limit := own.Token * own.Tokens
		for _, token := range []uint64{1, 2, b.Ticks(1), own.Token, max(own.Token/2, 1), 2 * own.Token, limit} {
			if token == 0 {
				continue // the bucket's tick is longer than a nanosecond
			}
			for _, owed := range []uint64{0, 1, limit / 3, limit - own.Token, limit - token, limit, limit + 1} {
				if owed > limit+1 {
					continue // the token is more than the limit
				}
				tokens, reset := b.Left(1e18, owed, limit, token)
				require.Equal(t, (limit-min(owed, limit))/token, tokens, "%v: %d of %d owed, in tokens of %d", p, owed, limit, token)
				require.Equal(t, b.Wait(1e18, owed), reset)
			}
		}
	}
}
