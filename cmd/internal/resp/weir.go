package resp

import (
	"fmt"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// The arguments of WEIR.TAKE and its siblings are key LIMIT rate [BURST n] [COST n], the options in any order.

// limits reads them, or answers what is wrong.
func (b *batch) limits(args [][]byte) (p engine.Policy, cost uint64, ok bool) {
	numbers := spec.Limit{}
	cost = 1
	var seen [3]bool
	for i := 2; i < len(args); i += 2 {
		option := -1
		for o, word := range []string{"LIMIT", "BURST", "COST"} {
			if isWord(args[i], word) {
				option = o
			}
		}
		if option < 0 || seen[option] || i+1 == len(args) {
			b.fail(fmt.Sprintf("ERR syntax error at '%s': want key LIMIT rate [BURST n] [COST n], each option once", clip(args[i])))
			return p, 0, false
		}
		seen[option] = true
		switch option {
		case 0:
			rate, err := engine.ParseRate(clip(args[i+1]))
			if err != nil {
				b.refuse(p, err)
				return p, 0, false
			}
			numbers.Rate = spec.Of(rate)
		case 1:
			burst, ok := b.ranged("BURST", args[i+1], 1, spec.MaxBurst)
			if !ok {
				return p, 0, false
			}
			numbers.Burst = &burst
		case 2:
			if cost, ok = b.ranged("COST", args[i+1], 0, maxTokens); !ok {
				return p, 0, false
			}
		}
	}
	if !seen[0] {
		b.fail("ERR syntax error: no LIMIT: want for example LIMIT 100/m")
		return p, 0, false
	}
	p, err := numbers.Policy()
	if err != nil {
		b.refuse(p, err)
		return p, 0, false
	}
	return p, cost, true
}

func weirTake(_ *conn, b *batch, args [][]byte) {
	if p, cost, ok := b.limits(args); ok {
		b.take(args[1], p, cost, weirForm)
	}
}

// keyed reads the arguments and makes the key.
func (b *batch) keyed(args [][]byte) (key engine.Key, cost uint64, ok bool) {
	p, cost, ok := b.limits(args)
	if !ok {
		return key, 0, false
	}
	quota, err := b.limiter.Quota(p)
	if err != nil {
		b.refuse(p, err)
		return key, 0, false
	}
	return b.key(args[1], quota), cost, true
}

func weirPeek(_ *conn, b *batch, args [][]byte) {
	if key, cost, ok := b.keyed(args); ok {
		d := b.limiter.Peek(key, cost)
		b.decision(&d)
	}
}

// weirRefund gives tokens back, and answers how the key stands then.
func weirRefund(_ *conn, b *batch, args [][]byte) {
	if key, cost, ok := b.keyed(args); ok {
		b.limiter.Refund(key, cost)
		d := b.limiter.Peek(key, 1)
		b.decision(&d)
	}
}

// weirCharge takes tokens that need not be there, and answers how the key stands then.
func weirCharge(_ *conn, b *batch, args [][]byte) {
	if key, cost, ok := b.keyed(args); ok {
		d, lost := b.limiter.Charge(key, cost)
		b.pairs(6)
		b.pairsOf(&d)
		b.bulk("lost")
		b.integer(int64(min(lost, maxTokens)))
	}
}

// anyLimit is one by which the debt of every key can be seen.
var anyLimit = engine.TokenBucket(engine.PerSecond(1), 1)

// resetKeys answers DEL and WEIR.RESET key...: how many of the keys owed something.
func resetKeys(_ *conn, b *batch, args [][]byte) {
	quota, err := b.limiter.Quota(anyLimit)
	if err != nil {
		b.refuse(anyLimit, err)
		return
	}
	owed := int64(0)
	for _, arg := range args[1:] {
		key := b.key(arg, quota)
		if b.limiter.Peek(key, 0).ResetAfter > 0 {
			owed++
		}
		b.limiter.Reset(key)
		b.formers.Forget(func(before *engine.Limiter) (engine.Key, bool) { return before.KeyBytes(arg), true })
	}
	b.integer(owed)
}
