package limit

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/weir-go/weir/engine"
)

// Numbers are what people write of a limit: on the command line, in a rule, in a tier of one.
type Numbers struct {
	Algorithm engine.Algorithm
	Rate      engine.Rate // whole ([Whole]) where the algorithm's [Form] wants that
	Burst     *uint64     // nil for the tokens of the rate, and where the form has none
	Aligned   bool        // only where the form has it
}

// Policy returns the policy of the numbers. [engine.Policy.Check] tells whether they are in range.
func (n Numbers) Policy() engine.Policy {
	tokens, period := uint64(n.Rate.Tokens()), n.Rate.Period()
	burst := uint64(max(1, math.Ceil(n.Rate.Tokens())))
	if n.Burst != nil {
		burst = *n.Burst
	}
	switch n.Algorithm {
	case engine.AlgorithmTokenBucket:
		return engine.TokenBucket(n.Rate, burst)
	case engine.AlgorithmBatchRefill:
		return engine.BatchRefill(tokens, period, burst)
	case engine.AlgorithmFixedWindow:
		if n.Aligned {
			return engine.FixedWindow(tokens, period).Aligned()
		}
		return engine.FixedWindow(tokens, period)
	case engine.AlgorithmSlidingWindow:
		return engine.SlidingWindow(tokens, period)
	case engine.AlgorithmSlidingLog:
		return engine.SlidingLog(tokens, period)
	case engine.AlgorithmConcurrency, engine.NoAlgorithm:
	}
	return engine.Policy{}
}

// Whole checks that a rate is a whole number of tokens in its period. The error says which longer period makes it one.
func Whole(r engine.Rate) error {
	if r.Tokens() == math.Trunc(r.Tokens()) && r.Tokens() < 1<<64 {
		return nil
	}
	hint := ""
	// The decimal number that was written, not the nearest binary one: 0.7 is seven tenths.
	tokens, ok := new(big.Rat).SetString(strconv.FormatFloat(r.Tokens(), 'g', -1, 64))
	if ok {
		if longer := new(big.Int).Mul(tokens.Denom(), big.NewInt(int64(r.Period()))); longer.IsInt64() {
			n, _ := new(big.Float).SetInt(tokens.Num()).Float64()
			hint = fmt.Sprintf(", such as %v", engine.Per(n, time.Duration(longer.Int64())))
		}
	}
	return fmt.Errorf("write one, in a longer period%s", hint)
}
