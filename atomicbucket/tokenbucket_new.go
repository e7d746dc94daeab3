package atomicbucket

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"time"
)

// Ranges of the numbers of a [TokenBucket].
const (
	// MaxTokensPerSecond is the highest rate: one token per nanosecond.
	MaxTokensPerSecond = 1_000_000_000
	// MaxBurst is the largest bucket.
	MaxBurst = 1 << 32
)

// ShortestRoom is the longest debt, as a time, for which records have room at every rate: 39 hours.
const ShortestRoom = maxBurstTicks / maxExact * time.Nanosecond

const (
	// maxBurstTicks bounds the burst in ticks, and therefore also the cost of a token in ticks.
	maxBurstTicks = 1 << 51
	// maxExact bounds how many ticks a nanosecond has in an exact algorithm.
	maxExact = 16
)

// NewTokenBucket returns the algorithm of a bucket that gets the given number of tokens every period, spread evenly,
// and holds at most burst tokens. The number of tokens is the decimal number that is printed for the float, so 0.1 is
// exactly a tenth.
//
// The rate is one token in 2^63-1 ns (292 years) to [MaxTokensPerSecond], and the burst is 1 to [MaxBurst]. For other
// numbers, the error names the value and the range.
func NewTokenBucket(tokens float64, period time.Duration, burst uint64) (TokenBucket, error) {
	return NewRoomyBucket(tokens, period, burst, burst)
}

// NewRoomyBucket does what [NewTokenBucket] does, but records have room for a debt of up to room tokens, if that is
// more than the burst. This is for a bucket that had a larger burst before.
func NewRoomyBucket(tokens float64, period time.Duration, burst, room uint64) (TokenBucket, error) {
	if err := CheckRate(tokens, period); err != nil {
		return TokenBucket{}, err
	}
	if burst < 1 || burst > MaxBurst {
		return TokenBucket{}, fmt.Errorf("burst of %d tokens: want 1 to %d", burst, uint64(MaxBurst))
	}
	rate := exactRate(tokens, period)
	b, ok := exactBucket(rate, max(burst, room))
	if !ok {
		b = roundedBucket(rate, max(burst, room))
	}
	b.burst = burst * b.token
	return b, nil
}

// exactBucket returns the exact algorithm for a rate in tokens per nanosecond, or false if there is none for the rate
// and the burst.
func exactBucket(rate *big.Rat, burst uint64) (TokenBucket, bool) {
	num, den := rate.Num(), rate.Denom()
	if num.Uint64() > maxExact || !den.IsUint64() { // num fits: tokens has at most 17 digits, and num <= den
		return TokenBucket{}, false
	}
	hi, ticks := bits.Mul64(burst, den.Uint64())
	if hi != 0 || ticks > maxBurstTicks {
		return TokenBucket{}, false
	}
	return TokenBucket{
		exact: num.Uint64(), burst: ticks, token: den.Uint64(),
		clock: newDivider(num.Uint64()), tokens: newDivider(den.Uint64()),
	}, true
}

// roundedBucket returns the algorithm of a rate whose token is divided into a power of two of ticks.
func roundedBucket(rate *big.Rat, burst uint64) TokenBucket {
	fracBits := 0
	for burst<<(fracBits+1) <= maxBurstTicks {
		fracBits++
	}
	// perNano is the exact number of ticks in a nanosecond. The loop ends: perNano is at most 1 when fracBits is 0.
	perNano := shifted(rate, fracBits)
	for two := big.NewRat(2, 1); perNano.Cmp(two) >= 0; fracBits-- {
		perNano = shifted(perNano, -1)
	}
	token := uint64(1) << fracBits

	return TokenBucket{
		burst: burst * token, token: token, round: 1, step: 1,
		clock: newClock(perNano), tokens: newDivider(token),
	}
}

// NewBatchBucket returns the algorithm of a bucket of at most burst tokens that gets refill tokens at once at every
// multiple of interval. The ranges are 1 to [MaxBurst] for refill and burst, with at most one refill token per
// nanosecond of the interval, and at least a nanosecond for interval. For other numbers, the error names the value and
// the range.
func NewBatchBucket(refill uint64, interval time.Duration, burst uint64) (TokenBucket, error) {
	if interval < 1 || refill < 1 || refill > MaxBurst || refill > uint64(interval) {
		return TokenBucket{}, fmt.Errorf("refill of %d tokens every %v: want 1 to %d tokens, and at most one for each nanosecond of the interval", refill, interval, uint64(MaxBurst))
	}
	if burst < 1 || burst > MaxBurst {
		return TokenBucket{}, fmt.Errorf("burst of %d tokens: want 1 to %d", burst, uint64(MaxBurst))
	}
	return TokenBucket{
		burst: burst, token: 1, step: refill,
		clock: newDivider(uint64(interval)), tokens: newDivider(1),
	}, nil
}

// Share returns the quota of another tier of the plan, with its own rate and burst, in ticks of this algorithm. The
// tiers use the same clock and records. A token is rounded up to whole ticks. If that would make the rate slower by
// more than a millionth, Share returns an error.
func (b *TokenBucket) Share(tokens float64, period time.Duration, burst uint64) (Quota, error) {
	return b.share(tokens, period, burst, 1_000_000, "a millionth")
}

// share does what Share does, but the rate may become slower by 1/parts. The parameter part names this fraction in the
// error, such as "a millionth".
func (b *TokenBucket) share(tokens float64, period time.Duration, burst uint64, parts int64, part string) (Quota, error) {
	bucket, err := NewTokenBucket(tokens, period, burst)
	if err != nil {
		return Quota{}, err
	}
	perNano := b.ticksPerNano()
	exact := perNano.Quo(perNano, exactRate(tokens, period))
	token := new(big.Int).Quo(exact.Num(), exact.Denom())
	if !exact.IsInt() {
		token.Add(token, big.NewInt(1))
	}
	slowdown := new(big.Rat).Quo(new(big.Rat).SetInt(token), exact)
	if !token.IsUint64() || slowdown.Cmp(big.NewRat(parts+1, parts)) > 0 {
		return Quota{}, fmt.Errorf("rate of %v tokens every %v: it would be slower by more than %s on the table's clock, whose tick is %s ns",
			tokens, period, part, new(big.Rat).Inv(b.ticksPerNano()).FloatString(3))
	}
	if hi, burstTicks := bits.Mul64(token.Uint64(), burst); hi > 0 || burstTicks > maxBurstTicks {
		return Quota{}, b.tooLong(tokens, period, burst, token.Uint64())
	}
	return Quota{token.Uint64(), bucket.Quota().Tokens}, nil
}

func (b *TokenBucket) tooLong(tokens float64, period time.Duration, burst, token uint64) error {
	return fmt.Errorf("burst of %d tokens at %v tokens every %v: on the table's clock, whose tick is %s ns, want at most %d",
		burst, tokens, period, new(big.Rat).Inv(b.ticksPerNano()).FloatString(3), maxBurstTicks/token)
}

func (b *TokenBucket) ticksPerNano() *big.Rat {
	if b.exact != 0 {
		return new(big.Rat).SetInt64(int64(b.exact))
	}
	return b.clock.rate()
}

// CheckRate checks whether a number of tokens every period is a rate that [NewTokenBucket] accepts. If it is not, the
// error says why.
func CheckRate(tokens float64, period time.Duration) error {
	if math.IsNaN(tokens) || math.IsInf(tokens, 0) || tokens <= 0 {
		return fmt.Errorf("rate of %v tokens every %v: the number of tokens must be above 0 and finite", tokens, period)
	}
	if period <= 0 {
		return fmt.Errorf("rate of %v tokens every %v: the period must be at least 1ns", tokens, period)
	}
	rate := exactRate(tokens, period)
	if rate.Cmp(big.NewRat(1, 1)) > 0 {
		return fmt.Errorf("rate of %v tokens every %v: want at most %d tokens a second", tokens, period, MaxTokensPerSecond)
	}
	if rate.Cmp(big.NewRat(1, math.MaxInt64)) < 0 {
		return fmt.Errorf("rate of %v tokens every %v: want at least one token in %v (292 years)", tokens, period, time.Duration(math.MaxInt64))
	}
	return nil
}

func exactRate(tokens float64, period time.Duration) *big.Rat {
	rate, _ := new(big.Rat).SetString(strconv.FormatFloat(tokens, 'e', -1, 64))
	return rate.Quo(rate, new(big.Rat).SetInt64(int64(period)))
}

func shifted(r *big.Rat, n int) *big.Rat {
	num, den := new(big.Int).Set(r.Num()), new(big.Int).Set(r.Denom())
	if n >= 0 {
		num.Lsh(num, uint(n))
	} else {
		den.Lsh(den, uint(-n))
	}
	return new(big.Rat).SetFrac(num, den)
}
