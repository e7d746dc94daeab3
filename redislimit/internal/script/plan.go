package script

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
)

// The largest limits, which are those of the engine.
const (
	mostTokens  = 1 << 32
	mostCounted = 1<<24 - 1 // in a sliding window
	mostLogged  = 4096
	longest     = 365 * 24 * time.Hour
)

type kind uint8

const (
	tokenBucket kind = iota
	fixedWindow
	slidingWindow
	slidingLog
)

// A Plan is a policy in the numbers that the scripts take. It does not change and may be used by many
// goroutines at once.
type Plan struct {
	kind     kind
	limit    uint64
	rate     *big.Rat // of a token bucket, in tokens a microsecond
	num, den int64    // the rate as the script has it
	window   int64    // in microseconds
	aligned  bool
	numbers  []string // what the script is told
	hash     string
}

// NewPlan returns the plan of a policy: a token bucket, a fixed window (aligned or not), a sliding
// window or a sliding log. A batch refill is an error, and so are numbers out of the ranges
// that [engine.Policy] states for them, and a bucket that takes more than 10 years to fill. A
// window is rounded up to whole microseconds.
func NewPlan(p engine.Policy) (*Plan, error) {
	plan, err := newPlan(p)
	if err != nil {
		return nil, fmt.Errorf("redislimit: %v: %w", p, err)
	}
	return plan, nil
}

func newPlan(p engine.Policy) (*Plan, error) {
	plan, most := &Plan{limit: p.Limit(), aligned: p.IsAligned()}, uint64(mostTokens)
	switch p.Algorithm() {
	case engine.AlgorithmTokenBucket:
		plan.kind = tokenBucket
	case engine.AlgorithmFixedWindow:
		plan.kind = fixedWindow
	case engine.AlgorithmSlidingWindow:
		plan.kind, most = slidingWindow, mostCounted
	case engine.AlgorithmSlidingLog:
		plan.kind, most = slidingLog, mostLogged
	case engine.AlgorithmBatchRefill:
		return nil, errors.New("batches are not kept in a store: want a token bucket or a window")
	default:
		return nil, errors.New("the zero Policy limits nothing: want engine.TokenBucket(rate, burst) or one of its siblings")
	}
	if plan.aligned && plan.kind != fixedWindow {
		return nil, errors.New("only a fixed window can be aligned")
	}
	if plan.limit < 1 || plan.limit > most {
		return nil, fmt.Errorf("limit of %d tokens: want 1 to %d", plan.limit, most)
	}
	if plan.kind == tokenBucket {
		rate, err := perMicrosecond(p.Rate())
		if err != nil {
			return nil, err
		}
		if plan.num, plan.den, err = fraction(rate, plan.limit); err != nil {
			return nil, err
		}
		plan.rate = rate
	} else {
		window := p.Window()
		if window < time.Microsecond || window > longest {
			return nil, fmt.Errorf("window of %v: want 1µs to %v", window, longest)
		}
		plan.window = whole(window)
	}
	plan.write()
	return plan, nil
}

// write makes the numbers for the script, and their hash.
func (p *Plan) write() {
	limit, window := strconv.FormatUint(p.limit, 10), strconv.FormatInt(p.window, 10)
	switch p.kind {
	case tokenBucket:
		p.numbers = []string{strconv.FormatInt(p.num, 10), strconv.FormatInt(p.den, 10), limit}
	case fixedWindow:
		aligned := "0"
		if p.aligned {
			aligned = "1"
		}
		p.numbers = []string{limit, window, aligned}
	default:
		p.numbers = []string{limit, window}
	}
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%d %s", p.kind, strings.Join(p.numbers, " "))
	p.hash = fmt.Sprintf("%08x", hash.Sum32())
}

// Slowed returns the plan that leases run on: its rate (of a token bucket) or its limit (of a
// window) is less by 1/1024, rounded so that it is never more. A limit of 1 stays 1.
func (p *Plan) Slowed() *Plan {
	slowed := *p
	if p.kind == tokenBucket {
		slowed.rate = new(big.Rat).Mul(p.rate, big.NewRat(1023, 1024))
		whole := new(big.Int).Quo(slowed.rate.Num(), slowed.rate.Denom())
		below := floor(slowed.rate, mostUnits(p.limit, whole.Int64()))
		slowed.num, slowed.den = below.Num().Int64(), below.Denom().Int64()
	} else {
		slowed.limit = max(1, p.limit*1023/1024)
	}
	slowed.write()
	return &slowed
}

// Limit returns the most that a key can have.
func (p *Plan) Limit() uint64 { return p.limit }

// Hash returns 8 hexadecimal digits of the algorithm and its numbers. States of plans whose hashes
// differ do not understand one another, so it has to be part of a key's name.
func (p *Plan) Hash() string { return p.hash }
