package engine

import (
	"runtime"

	"github.com/weir-go/weir/shard"
)

// Refund gives n tokens back to the key: for a request that was admitted and then cost less, or nothing. What was not
// taken is not given: a key never has more than the limit.
//
// It does not say which request the tokens are for. So it gives back what is certain never to let through more than the
// limit of those that are not given back, if the request was in the present window of a fixed window, and in the
// present window or the one before of a sliding window counter; a sliding window log forgets the oldest requests in the
// window. Of a token bucket that is certain at once: later, what has come back by itself and was taken by others is
// given back once more. While a reservation ([Limiter.Reserve]) of the key, or of one of some hundred near it, waits
// for its time, and while a request that was made ahead of the clock ([Limiter.TakeAt], up to [MaxLead]) is ahead of it
// still, no bucket takes anything back, and no window or log what that request took. What is in flight ([Concurrency])
// leaves, beginning with what would be forgotten first. To give back just what one request took, and all that it may,
// take with [Limiter.TakeReceipt].
func (l *Limiter) Refund(k Key, n uint64) {
	l.requireMade()
	if n > 0 {
		var none shard.Receipt
		none.EnterNone(n, k.quota)
		l.table.RefundOf(l.table.Find(k.hash), l.clock.latest, n, &none)
		runtime.KeepAlive(l)
	}
}
