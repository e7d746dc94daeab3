package script

import (
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/engine"
)

// maxExact is the largest number up to which a double, the type of numbers in Lua, represents every whole number.
const maxExact = 1<<53 - 1

// maxFillTime is the longest time that a bucket may take to fill.
const maxFillTime = 10 * 365 * 24 * time.Hour

// perMicrosecond returns a rate in tokens per microsecond, from its decimal form: 0.7 means exactly 7/10.
func perMicrosecond(rate engine.Rate) (*big.Rat, error) {
	if err := atomicbucket.CheckRate(rate.Tokens, rate.Period); err != nil {
		return nil, err
	}
	tokens, ok := new(big.Rat).SetString(strconv.FormatFloat(rate.Tokens, 'g', -1, 64))
	if !ok {
		return nil, fmt.Errorf("rate %v: not a number of tokens", rate)
	}
	return tokens.Mul(tokens, big.NewRat(int64(time.Microsecond), int64(rate.Period))), nil
}

// fraction returns num/den for a rate in tokens per microsecond, so that a double represents all debts exactly. If the
// rate has no such fraction, num/den is lower by less than two millionths.
func fraction(rate *big.Rat, limit, debts uint64) (num, den int64, err error) {
	fill := new(big.Rat).Quo(new(big.Rat).SetInt(new(big.Int).SetUint64(limit)), rate)
	if fill.Cmp(big.NewRat(maxFillTime.Microseconds(), 1)) > 0 {
		seconds, _ := new(big.Rat).Quo(fill, big.NewRat(1e6, 1)).Float64()
		return 0, 0, fmt.Errorf("it takes %.4g s to fill: want at most %v (10 years)", seconds, maxFillTime)
	}
	integerPart := new(big.Int).Quo(rate.Num(), rate.Denom())
	below := floor(rate, maxUnits(limit, debts, integerPart.Int64()))
	return below.Num().Int64(), below.Denom().Int64(), nil
}

// maxUnits returns the largest number of units per token for which a double represents every debt and the numerator of
// the rate exactly.
func maxUnits(limit, debts uint64, integerPart int64) int64 {
	return min(maxExact/(int64(debts+1)*int64(limit)), maxExact/(integerPart+1))
}

// floor returns the largest fraction above 0 that does not exceed x, and whose denominator does not exceed maxDen. It
// descends the Stern-Brocot tree.
func floor(x *big.Rat, maxDen int64) *big.Rat {
	if x.Denom().IsInt64() && x.Denom().Int64() <= maxDen {
		return x
	}
	limit := big.NewInt(maxDen)
	// low <= x < high. The denominator of every fraction between low and high is at least the sum of their
	// denominators.
	lowN, lowD, highN, highD := big.NewInt(0), big.NewInt(1), big.NewInt(1), big.NewInt(0)
	for {
		// Replace low by low + k*high, which is (lowN + k*highN) / (lowD + k*highD). The number k is as large as
		// possible: the fraction must not exceed x, and its denominator must not exceed maxDen.
		k := steps(
			sub(x.Num(), lowD, x.Denom(), lowN),
			sub(x.Denom(), highN, x.Num(), highD))
		if highD.Sign() > 0 {
			k = smaller(k, steps(new(big.Int).Sub(limit, lowD), highD))
		}
		lowN.Add(lowN, new(big.Int).Mul(k, highN))
		lowD.Add(lowD, new(big.Int).Mul(k, highD))
		// In the same way, replace high by high + j*low. The number j is as large as possible: the fraction must stay
		// above x, and its denominator must not exceed maxDen. The denominator of x itself is above maxDen, so low is
		// below x.
		dividend := sub(x.Denom(), highN, x.Num(), highD)
		divisor := sub(x.Num(), lowD, x.Denom(), lowN)
		j := steps(dividend.Sub(dividend, big.NewInt(1)), divisor)
		j = smaller(j, steps(new(big.Int).Sub(limit, highD), lowD))
		highN.Add(highN, new(big.Int).Mul(j, lowN))
		highD.Add(highD, new(big.Int).Mul(j, lowD))
		if new(big.Int).Add(lowD, highD).Cmp(limit) > 0 || k.Sign() == 0 && j.Sign() == 0 {
			return new(big.Rat).SetFrac(lowN, lowD)
		}
	}
}

// sub returns a*b - c*d.
func sub(a, b, c, d *big.Int) *big.Int {
	product := new(big.Int).Mul(a, b)
	return product.Sub(product, new(big.Int).Mul(c, d))
}

func steps(a, b *big.Int) *big.Int {
	if b.Sign() <= 0 || a.Sign() < 0 {
		return new(big.Int)
	}
	return new(big.Int).Quo(a, b)
}

func smaller(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// wholeMicros returns the length of a window in microseconds, rounded up.
func wholeMicros(window time.Duration) int64 {
	return int64((window + time.Microsecond - 1) / time.Microsecond)
}
