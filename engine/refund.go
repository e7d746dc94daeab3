package engine

import (
	"runtime"

	"github.com/weir-go/weir/shard"
)

// Refund gives n tokens back to the key, for a request that was admitted and then cost less, or nothing. It gives back
// only tokens that were taken: a key never has more than the limit.
//
// Refund does not know which request took the tokens. To give back exactly the tokens of one request, as far as
// possible, take them with [Limiter.TakeReceipt]. Without a receipt, the requests that are not refunded are certain to
// stay within the limit only in these cases:
//
//   - For a fixed window: if the refunded request was in the current window.
//   - For a sliding window counter: if the refunded request was in the current window or the previous one.
//   - For a sliding window log: always, because it forgets the oldest requests in the window.
//   - For a token bucket: if Refund follows the request at once. A later Refund gives back, a second time, tokens that
//     have already come back with time and that other requests have taken.
//
// For a bucket, Refund gives nothing back while a reservation ([Limiter.Reserve]) of the key, or of one of about a
// hundred keys near it in the table, is not yet due. It also gives nothing back for up to a second after a request that
// was made ahead of the clock ([Limiter.TakeAt]), until the clock reaches the time of that request. For a window or a
// log, Refund does not give back the tokens of a request that was made ahead of the clock until the clock reaches the
// request's time. Tokens in flight ([Concurrency]) are released, and those that would be forgotten first are released
// first.
func (l *Limiter) Refund(k Key, n uint64) {
	l.requireMade()
	if n > 0 {
		var none shard.Receipt
		none.EnterNone(n, k.quota)
		l.table.RefundOf(l.table.Find(k.hash), l.clock.latest, n, &none)
		runtime.KeepAlive(l)
	}
}
