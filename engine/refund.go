package engine

import (
	"runtime"

	"github.com/weir-go/weir/shard"
)

// Refund gives n tokens back to the key, for a request that was admitted and then cost less, or nothing. Tokens that
// were not taken are not given back: a key never has more than the limit.
//
// Refund does not know which request took the tokens. To give back exactly what one request took, and as much as
// possible, take with [Limiter.TakeReceipt]. Without a receipt, the requests that are not refunded are certain to stay
// within the limit in these cases:
//
//   - For a fixed window, if the request was in the current window.
//   - For a sliding window counter, if the request was in the current window or the previous one.
//   - For a sliding window log, always. It forgets the oldest requests in the window.
//   - For a token bucket, if Refund follows the request at once. Later, tokens that have already come back by time, and
//     that other requests have taken, are given back a second time.
//
// A bucket takes nothing back while a reservation ([Limiter.Reserve]) of the key, or of one of about a hundred keys
// near it in the table, is not yet due. A bucket also takes nothing back while the clock has not reached the time of a
// request that was made ahead of the clock ([Limiter.TakeAt], up to a second). Until then, a window or a log does not
// take back what such a request took. Tokens in flight ([Concurrency]) are released, beginning with the ones that would
// be forgotten first.
func (l *Limiter) Refund(k Key, n uint64) {
	l.requireMade()
	if n > 0 {
		var none shard.Receipt
		none.EnterNone(n, k.quota)
		l.table.RefundOf(l.table.Find(k.hash), l.clock.latest, n, &none)
		runtime.KeepAlive(l)
	}
}
