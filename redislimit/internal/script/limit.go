package script

import (
	"errors"
	"fmt"
	"hash/fnv"
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
	num, den  int64 // of a token bucket: num/den tokens a microsecond
	window    int64 // in microseconds
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
		return nil, fmt.Errorf("%v: %w", p, err)
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

// Tokens returns the most that a key can have.
func (l *Limit) Tokens() uint64 { return l.tokens }

// PerCall returns how many keys one call may carry, [MaxKeys] at most. A sliding log moves a member of a sorted set for
// each token, so that a call of it is for mostMoved tokens at most, or for one key: while a script runs the server
// answers no other client.
func (l *Limit) PerCall() int {
	if l.algorithm == algorithms[engine.AlgorithmSlidingLog] {
		return int(min(MaxKeys, max(1, mostMoved/l.tokens)))
	}
	return MaxKeys
}

// mostMoved is how many tokens the logs of one call may have together, which a server adds within some milliseconds.
const mostMoved = 4096

// Hash returns 8 hexadecimal digits of the algorithm and its numbers. States of limits whose hashes
// differ do not understand one another, so it has to be part of a key's name.
func (l *Limit) Hash() string { return l.hash }
