package resp

import (
	"time"

	"github.com/weir-go/weir/engine"
)

// resetAfter returns the time until a key owes nothing. It is computed from the key's current rate.
func (b *batch) resetAfter(text []byte) (reset time.Duration) {
	reset = Table{b.limiter, b.formers}.resetAfter(text)
	if t, ok := b.tableOf(text); ok {
		reset = max(reset, t.resetAfter(text))
	}
	return reset
}

func (t Table) resetAfter(text []byte) (reset time.Duration) {
	for _, l := range append([]*engine.Limiter{t.Limiter}, t.Formers.Limiters()...) {
		if tokens, key := l.Owed(l.KeyBytes(text)); tokens > 0 {
			reset = max(reset, l.Peek(key, 0).ResetAfter)
		}
	}
	return reset
}

// exists answers EXISTS key... with the number of the named keys that owe something.
func exists(_ *conn, b *batch, args [][]byte) {
	count := int64(0)
	for _, arg := range args[1:] {
		if b.resetAfter(arg) > 0 {
			count++
		}
	}
	b.integer(count)
}

// noKey is the answer to TTL for a key that does not exist. For TTL, a key exists while it owes something.
const noKey = -2

// ttl answers TTL key and PTTL key. The time is rounded up.
func ttl(_ *conn, b *batch, args [][]byte) {
	unit := time.Second
	if isWord(args[0], "PTTL") {
		unit = time.Millisecond
	}
	reset := b.resetAfter(args[1])
	if reset == 0 {
		b.integer(noKey)
		return
	}
	b.integer(int64((reset-1)/unit) + 1)
}
