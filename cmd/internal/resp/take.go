package resp

import "github.com/weir-go/weir/engine"

type form uint8

const (
	cellForm form = iota // five integers
	gcraForm             // three integers and two doubles
	weirForm             // names and values
)

// takes has the takes that will be decided together. All of them take the same number of tokens.
type takes struct {
	count     int
	tokens    uint64
	keys      [maxTakes]engine.Key
	forms     [maxTakes]form
	decisions [maxTakes]engine.Decision
}

// take adds a take to those that will be decided together. If the limit has a separate table, take decides it at once.
func (b *batch) take(text []byte, l *limit, f form) {
	tokens := l.cost
	t, key, ok := b.resolve(l, text)
	switch {
	case !ok:
		return
	case tokens == 0 && f != weirForm:
		b.peek(t.Limiter, key, l.policy, f)
		return
	case t.Limiter != b.limiter:
		b.decide()
		d := t.Limiter.TakeKey(key, tokens)
		b.answer(&d, f)
		return
	}
	if b.takes.count == maxTakes || b.takes.count > 0 && b.tokens != tokens {
		b.decide()
	}
	b.tokens = tokens
	b.keys[b.takes.count], b.forms[b.takes.count] = key, f
	b.takes.count++
}

func (b *batch) decide() {
	n := b.takes.count
	if n == 0 {
		return
	}
	b.takes.count = 0
	// TakeBatch returns an error only if there is no room for the decisions. Here, there is always room.
	_ = b.limiter.TakeBatch(b.keys[:n], b.tokens, b.decisions[:n])
	for i := range n {
		b.answer(&b.decisions[i], b.forms[i])
	}
}

// peek answers a take of 0 tokens. redis-cell reports a key as limited if the key owes more than its limit. This can
// happen after the limit was higher. To find this out, peek also peeks at one token under a limit that is one token
// higher.
func (b *batch) peek(limiter *engine.Limiter, key engine.Key, limit engine.Policy, f form) {
	b.decide()
	d := limiter.Peek(key, 0)
	if d.Remaining == 0 && d.ResetAfter > 0 && limiter == b.limiter {
		// If there is no higher limit, the first peek is the result.
		if higherQuota, err := limiter.Quota(engine.TokenBucket(limit.Rate(), limit.Limit()+1)); err == nil {
			higher := limiter.Peek(key.With(higherQuota), 1)
			d.Allowed, d.RetryAfter = higher.Allowed, higher.RetryAfter
		}
	}
	b.answer(&d, f)
}

func (b *batch) answer(d *engine.Decision, f form) {
	b.counts.decision(d.Allowed)
	switch f {
	case cellForm:
		b.cell(d)
	case gcraForm:
		b.gcra(d)
	case weirForm:
		b.decision(d)
	}
}

// cell answers in the form of redis-cell: limited, limit, remaining, retry after and reset after. The times are whole
// seconds, rounded up.
func (b *batch) cell(d *engine.Decision) {
	b.array(5)
	b.commonNumbers(d)
	retry := int64(-1)
	if !d.Allowed && d.RetryAfter != engine.Never {
		retry = ceilSeconds(d.RetryAfter)
	}
	b.integer(retry)
	b.integer(ceilSeconds(d.ResetAfter))
}

// gcra answers in the form of Redis' GCRA command. The times are seconds with fractions.
func (b *batch) gcra(d *engine.Decision) {
	b.array(5)
	b.commonNumbers(d)
	retry := d.RetryAfter
	if d.Allowed || retry == engine.Never {
		retry = -1
	}
	b.seconds(retry)
	b.seconds(d.ResetAfter)
}

// commonNumbers writes the numbers that the answers of cell and gcra have in common.
func (b *batch) commonNumbers(d *engine.Decision) {
	limited := int64(1)
	if d.Allowed {
		limited = 0
	}
	b.integer(limited)
	b.integer(int64(d.Limit)) // at most 2^53
	b.integer(int64(d.Remaining))
}

// decision answers with a map of names and values. If the request can never pass, retry_after is -1.
func (b *batch) decision(d *engine.Decision) {
	b.pairs(5)
	b.decisionPairs(d)
}

func (b *batch) decisionPairs(d *engine.Decision) {
	b.bulk("allowed")
	b.boolean(d.Allowed)
	b.bulk("limit")
	b.integer(int64(d.Limit))
	b.bulk("remaining")
	b.integer(int64(d.Remaining))
	b.bulk("retry_after")
	if d.RetryAfter == engine.Never {
		b.seconds(-1)
	} else {
		b.seconds(d.RetryAfter)
	}
	b.bulk("reset_after")
	b.seconds(d.ResetAfter)
}
