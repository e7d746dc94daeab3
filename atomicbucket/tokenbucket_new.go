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
	// MaxTokensPerSecond is the highest rate: one token a nanosecond.
	MaxTokensPerSecond = 1_000_000_000
	// MaxBurst is the largest bucket.
	MaxBurst = 1 << 32
)

const (
	// maxBurstTicks bounds the burst in ticks, and so how finely a token is cut.
	maxBurstTicks = 1 << 51
	// maxExact bounds the ticks in a nanosecond of an exact rule.
	maxExact = 16
)

// NewTokenBucket returns the rule of a bucket that gets tokens every period,
// spread evenly, and holds at most burst. tokens is taken as the decimal number
// that it prints as: 0.1 means a tenth.
//
// The rate may be anything from one token in 2^63-1 ns (292 years) to
// [MaxTokensPerSecond], the burst 1 to [MaxBurst]; anything else is an
// error that names the value and the range.
func NewTokenBucket(tokens float64, period time.Duration, burst uint64) (TokenBucket, error) {
	if err := CheckRate(tokens, period); err != nil {
		return TokenBucket{}, err
	}
	if burst < 1 || burst > MaxBurst {
		return TokenBucket{}, fmt.Errorf("burst of %d tokens: want 1 to %d", burst, uint64(MaxBurst))
	}
	rate := exactRate(tokens, period)
	if b, ok := exactBucket(rate, burst); ok {
		return b, nil
	}
	return roundedBucket(rate, burst), nil
}

// exactBucket returns the exact rule of a rate in tokens per nanosecond, if there
// is one.
func exactBucket(rate *big.Rat, burst uint64) (TokenBucket, bool) {
	a, b := rate.Num(), rate.Denom()
	if !a.IsUint64() || a.Uint64() > maxExact || !b.IsUint64() {
		return TokenBucket{}, false
	}
	hi, ticks := bits.Mul64(burst, b.Uint64())
	if hi != 0 || ticks > maxBurstTicks {
		return TokenBucket{}, false
	}
	return TokenBucket{exact: a.Uint64(), burst: ticks, token: b.Uint64()}, true
}

// roundedBucket returns the rule of a rate that is cut into binary ticks.
func roundedBucket(rate *big.Rat, burst uint64) TokenBucket {
	frac := 0
	for burst<<(frac+1) <= maxBurstTicks {
		frac++
	}
	// perNano is the exact number of ticks in a nanosecond. The loop ends: at
	// frac = 0 it is at most 1.
	perNano := shifted(rate, frac)
	for two := big.NewRat(2, 1); perNano.Cmp(two) >= 0; frac-- {
		perNano = shifted(perNano, -1)
	}
	token := uint64(1) << frac

	shift := 0
	for one := big.NewRat(1, 1); perNano.Cmp(one) < 0; shift++ {
		perNano = shifted(perNano, 1)
	}
	// Rounding mul down makes the clock of this bucket slow by less than one
	// part in 2^63: late, never early.
	fixed := shifted(perNano, 63)
	mul := new(big.Int).Quo(fixed.Num(), fixed.Denom()).Uint64()
	return TokenBucket{burst: burst * token, token: token, round: 1, mul: mul, shift: uint8(shift)}
}

// CheckRate reports whether tokens every period is a rate that
// [NewTokenBucket] accepts, and if not, why.
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

// exactRate returns tokens per nanosecond.
func exactRate(tokens float64, period time.Duration) *big.Rat {
	rate, _ := new(big.Rat).SetString(strconv.FormatFloat(tokens, 'e', -1, 64))
	return rate.Quo(rate, new(big.Rat).SetInt64(int64(period)))
}

// shifted returns r * 2^n.
func shifted(r *big.Rat, n int) *big.Rat {
	num, den := new(big.Int).Set(r.Num()), new(big.Int).Set(r.Denom())
	if n >= 0 {
		num.Lsh(num, uint(n))
	} else {
		den.Lsh(den, uint(-n))
	}
	return new(big.Rat).SetFrac(num, den)
}
