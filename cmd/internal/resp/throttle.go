package resp

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// These are the ranges of numbers in commands. The limiter may refuse a number within its range, because a bucket would
// take too long to fill.
const (
	maxBurst  = spec.MaxBurst - 1 // the limit is max_burst + 1
	maxCount  = 1e15
	maxPeriod = uint64(spec.MaxWindow / time.Second)
	maxTokens = math.MaxInt64
	minPeriod = time.Second // for GCRA
)

// throttle answers CL.THROTTLE and RL.THROTTLE, with the arguments key max_burst count period [quantity], or key name
// [quantity].
func throttle(_ *conn, b *batch, args [][]byte) {
	if len(args) < 5 && isName(args[2]) {
		if l, ok := b.limitByName(args[2]); ok {
			b.throttle(args[1], &l, args[3:])
		}
		return
	}
	if len(args) < 5 {
		b.fail("ERR wrong number of arguments for '" + strings.ToLower(string(args[0])) + "' command")
		return
	}
	burst, ok := b.parseInRange("max_burst", args[2], 0, maxBurst)
	if !ok {
		return
	}
	count, ok := b.parseInRange("count", args[3], 1, maxCount)
	if !ok {
		return
	}
	period, ok := b.parseInRange("period", args[4], 1, maxPeriod)
	if !ok {
		return
	}
	b.throttle(args[1], &limit{policy: bucket(count, time.Duration(period)*time.Second, burst)}, args[5:])
}

// throttle takes the quantity at the end of a command. If there is none, it takes one token.
func (b *batch) throttle(text []byte, l *limit, quantity [][]byte) {
	ok := true
	l.cost = 1
	if len(quantity) > 0 {
		if n, isInteger := parseInteger(quantity[0]); isInteger && n < 0 && b.allowNegative {
			b.refund(text, l, uint64(-n)) // right for -2^63, too
			return
		}
		if l.cost, ok = b.parseInRange("quantity", quantity[0], 0, maxTokens); !ok {
			return
		}
	}
	b.take(text, l, cellForm)
}

func (b *batch) refund(text []byte, l *limit, tokens uint64) {
	b.decide() // before the key is charged with its debt in previous limiters
	if t, key, ok := b.resolve(l, text); ok {
		t.Limiter.Refund(key, tokens)
		b.peek(t.Limiter, key, l.policy, cellForm)
	}
}

func bucket(count uint64, period time.Duration, burst uint64) engine.Policy {
	capacity := burst + 1
	return spec.PolicyOf(engine.AlgorithmTokenBucket, spec.Numbers{Rate: spec.Of(engine.Per(float64(count), period)), Burst: &capacity}, false)
}

// gcra answers GCRA key max_burst tokens_per_period period [TOKENS n]. In an older form of the command, TOKENS is
// NUM_REQUESTS.
func gcra(_ *conn, b *batch, args [][]byte) {
	burst, ok := b.parseInRange("max_burst", args[2], 0, maxBurst)
	if !ok {
		return
	}
	count, ok := b.parseInRange("tokens_per_period", args[3], 1, maxCount)
	if !ok {
		return
	}
	period, ok := parseSeconds(args[4])
	if !ok || period < minPeriod || period > spec.MaxWindow {
		b.fail(fmt.Sprintf("ERR period '%s' is not a number or out of range: want 1.0 to %d seconds", clip(args[4]), maxPeriod))
		return
	}
	tokens := uint64(1)
	switch {
	case len(args) == 5:
	case len(args) == 7 && (isWord(args[5], "TOKENS") || isWord(args[5], "NUM_REQUESTS")):
		if tokens, ok = b.parseInRange("TOKENS", args[6], 0, maxTokens); !ok {
			return
		}
	default:
		b.fail("ERR syntax error: want GCRA key max_burst tokens_per_period period [TOKENS n]")
		return
	}
	b.take(args[1], &limit{policy: bucket(count, period, burst), cost: tokens}, gcraForm)
}

// parseInRange parses a whole number in a range. If the text is not such a number, parseInRange answers with an error.
func (b *batch) parseInRange(name string, text []byte, low, high uint64) (uint64, bool) {
	n, ok := parseInteger(text)
	if !ok || n < 0 || uint64(n) < low || uint64(n) > high {
		b.fail(fmt.Sprintf("ERR value is not an integer or out of range: %s '%s': want %d to %d", name, clip(text), low, high))
		return 0, false
	}
	return uint64(n), true
}

func (b *batch) failPolicy(p engine.Policy, err error) {
	if fillTime := p.Window(); fillTime > b.longest {
		b.fail(fmt.Sprintf("ERR a limit of %d tokens that takes %v to fill: want at most %v; for this limit write longest: %v in redis: of the "+
			"rule file", p.Limit(), fillTime, b.longest, (fillTime + time.Hour - 1).Truncate(time.Hour)))
		return
	}
	b.fail("ERR " + strings.TrimPrefix(err.Error(), "engine: "))
}

func isWord(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}
