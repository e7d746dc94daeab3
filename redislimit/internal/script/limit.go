package script

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/big"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
)

// longest is the longest window, which is the engine's.
const longest = 365 * 24 * time.Hour

// A Limit is a policy in the numbers that the scripts take. It does not change and may be used by many
// goroutines at once.
type Limit struct {
	*algorithm
	tokens    uint64
	rate      *big.Rat // of a token bucket, in tokens a microsecond; else nil
	num, den  int64    // the rate as the script has it
	window    int64    // in microseconds
	aligned   bool
	arguments []string // what the script is told
	hash      string
}

// NewLimit returns the limit of a policy: a token bucket, a fixed window (aligned or not), a sliding window or a
// sliding log. A batch refill is an error. So are numbers out of the ranges that [engine.Policy] states for them, and
// a bucket that takes more than 10 years to fill. A window is rounded up to whole microseconds.
func NewLimit(p engine.Policy) (*Limit, error) {
	limit, err := newLimit(p)
	if err != nil {
		return nil, fmt.Errorf("redislimit: %v: %w", p, err)
	}
	return limit, nil
}

func newLimit(p engine.Policy) (*Limit, error) {
	algorithm, known := algorithms[p.Algorithm()]
	switch {
	case known:
	case p.Algorithm() == engine.NoAlgorithm:
		return nil, errors.New("the zero Policy limits nothing: want engine.TokenBucket(rate, burst) or one of its siblings")
	case p.Algorithm() == engine.AlgorithmBatchRefill:
		return nil, errors.New("batches are not kept in a store: want a token bucket or a window")
	default:
		return nil, fmt.Errorf("the algorithm %q is not kept in a store", p.Algorithm())
	}
	if p.IsAligned() && p.Algorithm() != engine.AlgorithmFixedWindow {
		return nil, errors.New("only a fixed window can be aligned")
	}
	limit := &Limit{algorithm: algorithm, tokens: p.Limit(), aligned: p.IsAligned()}
	if limit.tokens < 1 || limit.tokens > limit.most {
		return nil, fmt.Errorf("limit of %d tokens: want 1 to %d", limit.tokens, limit.most)
	}
	if p.Algorithm() == engine.AlgorithmTokenBucket {
		rate, err := perMicrosecond(p.Rate())
		if err != nil {
			return nil, err
		}
		if limit.num, limit.den, err = fraction(rate, limit.tokens); err != nil {
			return nil, err
		}
		limit.rate = rate
	} else {
		window := p.Window()
		if window < time.Microsecond || window > longest {
			return nil, fmt.Errorf("window of %v: want 1µs to %v", window, longest)
		}
		limit.window = whole(window)
	}
	limit.write()
	return limit, nil
}

// write makes the arguments for the script, and their hash.
func (l *Limit) write() {
	l.arguments = l.numbers(l)
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%d %s", l.number, strings.Join(l.arguments, " "))
	l.hash = fmt.Sprintf("%08x", hash.Sum32())
}

// Slowed returns the limit that leases run on: its rate (of a token bucket) or its limit (of a
// window) is less by 1/1024, rounded so that it is never more. A limit of 1 stays 1.
func (l *Limit) Slowed() *Limit {
	slowed := *l
	if l.rate != nil {
		slowed.rate = new(big.Rat).Mul(l.rate, big.NewRat(1023, 1024))
		whole := new(big.Int).Quo(slowed.rate.Num(), slowed.rate.Denom())
		below := floor(slowed.rate, mostUnits(l.tokens, whole.Int64()))
		slowed.num, slowed.den = below.Num().Int64(), below.Denom().Int64()
	} else {
		slowed.tokens = max(1, l.tokens*1023/1024)
	}
	slowed.write()
	return &slowed
}

// Tokens returns the most that a key can have.
func (l *Limit) Tokens() uint64 { return l.tokens }

// Hash returns 8 hexadecimal digits of the algorithm and its numbers. States of limits whose hashes
// differ do not understand one another, so it has to be part of a key's name.
func (l *Limit) Hash() string { return l.hash }
