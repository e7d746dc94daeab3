package resp

import (
	"time"

	"github.com/weir-go/weir/engine"
)

// owes returns the time until a key owes nothing. It is computed from the key's current rate.
func (b *batch) owes(text []byte) (left time.Duration) {
	left = Table{b.limiter, b.formers}.owes(text)
	if t, ok := b.ofTable(text); ok {
		left = max(left, t.owes(text))
	}
	return left
}

func (t Table) owes(text []byte) (left time.Duration) {
	for _, l := range append([]*engine.Limiter{t.Limiter}, t.Formers.Limiters()...) {
		if tokens, under := l.Owed(l.KeyBytes(text)); tokens > 0 {
			left = max(left, l.Peek(under, 0).ResetAfter)
		}
	}
	return left
}

// exists answers EXISTS key... with the number of the named keys that owe something.
func exists(_ *conn, b *batch, args [][]byte) {
	owing := int64(0)
	for _, arg := range args[1:] {
		if b.owes(arg) > 0 {
			owing++
		}
	}
	b.integer(owing)
}

// noKey is the answer to TTL for a key that does not exist. A key that owes nothing does not exist for TTL.
const noKey = -2

// ttl answers TTL key and PTTL key. The time is rounded up.
func ttl(_ *conn, b *batch, args [][]byte) {
	unit := time.Second
	if isWord(args[0], "PTTL") {
		unit = time.Millisecond
	}
	left := b.owes(args[1])
	if left == 0 {
		b.integer(noKey)
		return
	}
	b.integer(int64((left-1)/unit) + 1)
}
