package resp

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// WEIR.TAKE and similar commands have the arguments key LIMIT rate [BURST n] [COST n]. The options may be in any order.
// Instead of rate and burst, a command may have the name of a limit in the rule file.

type limit struct {
	policy engine.Policy
	cost   uint64
	name   string // name in the rule file; "" if the command has the numbers
}

// key returns the key for a text. Each limit of the rule file has separate keys. Otherwise, a call under a fast limit
// could make tokens taken under a slow limit come back faster.
func (l *limit) key(text []byte) []byte {
	if l.name == "" {
		return text
	}
	return slices.Concat([]byte(l.name), []byte{':'}, text)
}

// isName reports whether a text can be the name of a limit in the rule file. The text of a rate cannot.
func isName(text []byte) bool {
	return len(text) > 0 && (text[0]|' ' >= 'a' && text[0]|' ' <= 'z')
}

// limitByName finds a limit of the rule file by its name. If there is none, it answers with an error.
func (b *batch) limitByName(name []byte) (l limit, ok bool) {
	if l.policy, ok = b.fileLimits[string(name)]; !ok {
		b.fail(fmt.Sprintf("ERR no limit '%s': want one of redis: limits of the rule file, or a rate such as 100/m", clip(name)))
		return l, false
	}
	l.name = string(name)
	return l, true
}

// parseLimit parses the arguments after the key. If an argument is wrong, it answers with an error.
func (b *batch) parseLimit(args [][]byte) (result limit, ok bool) {
	numbers := spec.Limit{}
	cost := uint64(1)
	var seen [3]bool
	for i := 2; i < len(args); i += 2 {
		option := -1
		for index, word := range []string{"LIMIT", "BURST", "COST"} {
			if isWord(args[i], word) {
				option = index
			}
		}
		if option < 0 || seen[option] || i+1 == len(args) {
			b.fail(fmt.Sprintf("ERR syntax error at '%s': want key LIMIT rate [BURST n] [COST n], each option once", clip(args[i])))
			return result, false
		}
		seen[option] = true
		switch option {
		case 0:
			if ok = b.parseRate(args[i+1], &result, &numbers); !ok {
				return result, false
			}
		case 1:
			burst, ok := b.parseInRange("BURST", args[i+1], 1, spec.MaxBurst)
			if !ok {
				return result, false
			}
			numbers.Burst = &burst
		case 2:
			if cost, ok = b.parseInRange("COST", args[i+1], 0, maxTokens); !ok {
				return result, false
			}
		}
	}
	result.cost = cost
	switch {
	case !seen[0]:
		b.fail("ERR syntax error: no LIMIT: want for example LIMIT 100/m")
		return result, false
	case result.name != "" && seen[1]:
		b.fail(fmt.Sprintf("ERR BURST: the limit '%s' has the burst of the rule file", result.name))
		return result, false
	case result.name != "":
		return result, true
	}
	var err error
	if result.policy, err = numbers.Policy(); err != nil {
		b.failPolicy(result.policy, err)
		return result, false
	}
	return result, true
}

func (b *batch) parseRate(text []byte, l *limit, numbers *spec.Limit) (ok bool) {
	if isName(text) {
		*l, ok = b.limitByName(text)
		return ok
	}
	rate, err := engine.ParseRate(clip(text))
	if err != nil {
		b.failPolicy(l.policy, err)
		return false
	}
	numbers.Rate = spec.Of(rate)
	return true
}

func weirTake(_ *conn, b *batch, args [][]byte) {
	if l, ok := b.parseLimit(args); ok {
		b.take(args[1], &l, weirForm)
	}
}

func (b *batch) parseKeyed(args [][]byte) (limiter *engine.Limiter, key engine.Key, cost uint64, ok bool) {
	l, ok := b.parseLimit(args)
	if !ok {
		return nil, key, 0, false
	}
	t, key, ok := b.resolve(&l, args[1])
	return t.Limiter, key, l.cost, ok
}

func weirPeek(_ *conn, b *batch, args [][]byte) {
	if limiter, key, cost, ok := b.parseKeyed(args); ok {
		d := limiter.Peek(key, cost)
		b.decision(&d)
	}
}

// weirRefund gives tokens back, and answers with the new state of the key.
func weirRefund(_ *conn, b *batch, args [][]byte) {
	if limiter, key, cost, ok := b.parseKeyed(args); ok {
		limiter.Refund(key, cost)
		d := limiter.Peek(key, 1)
		b.decision(&d)
	}
}

// weirCharge takes tokens even if the key does not have them, and answers with the new state of the key.
func weirCharge(_ *conn, b *batch, args [][]byte) {
	if limiter, key, cost, ok := b.parseKeyed(args); ok {
		d, lost := limiter.Charge(key, cost)
		b.pairs(6)
		b.decisionPairs(&d)
		b.bulk("lost")
		b.integer(int64(min(lost, maxTokens)))
	}
}

// anyLimit is a limit for reading the debt of a key. For this, any limit would do.
var anyLimit = engine.TokenBucket(engine.PerSecond(1), 1)

// resetKeys answers DEL and WEIR.RESET key... with the number of the named keys that owed something.
func resetKeys(_ *conn, b *batch, args [][]byte) {
	quota, err := b.limiter.Quota(anyLimit)
	if err != nil {
		b.failPolicy(anyLimit, err)
		return
	}
	count := int64(0)
	for _, arg := range args[1:] {
		hadDebt := Table{b.limiter, b.formers}.reset(arg, quota)
		if t, ok := b.tableOf(arg); ok {
			hadDebt = t.reset(arg, engine.Quota{}) || hadDebt
		}
		if hadDebt {
			count++
		}
	}
	b.integer(count)
}

// reset returns a key to its state before its first take. It reports whether the key owed something.
func (t Table) reset(text []byte, quota engine.Quota) (hadDebt bool) {
	key := t.key(text, quota)
	hadDebt = t.Limiter.Peek(key, 0).ResetAfter > 0
	t.Limiter.Reset(key)
	t.Formers.Forget(func(previous *engine.Limiter) (engine.Key, bool) { return previous.KeyBytes(text), true })
	return hadDebt
}
