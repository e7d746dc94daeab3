package engine

import (
	"runtime"

	"github.com/weir-go/weir/shard"
)

// Refund gives n tokens back to the key: for a request that was admitted and then cost less, or nothing. What was not
// taken is not given: a key never has more than the limit.
//
// Refund does not know which request the tokens are for. To give back just what one request took, and all that it may,
// take with [Limiter.TakeReceipt]. Without a receipt, requests that are not given back are certain to stay within the
// limit in these cases:
//
//   - For a fixed window, if the request was in the present window.
//   - For a sliding window counter, if the request was in the present window or the previous one.
//   - For a sliding window log, which forgets the oldest requests in the window.
//   - For a token bucket, if Refund follows the request at once. Later, tokens that have come back by themselves and
//     were taken by others are given back a second time.
//
// No bucket takes anything back while a reservation ([Limiter.Reserve]) of the key, or of one of some hundred near it,
// waits for its time. The same holds while a request that was made ahead of the clock ([Limiter.TakeAt], up to a
// second) is still ahead of it. A window or a log then does not take back what that request took. What is in flight
// ([Concurrency]) leaves, beginning with what would be forgotten first.
func (l *Limiter) Refund(k Key, n uint64) {
	l.requireMade()
	if n > 0 {
		var none shard.Receipt
		none.EnterNone(n, k.quota)
		l.table.RefundOf(l.table.Find(k.hash), l.clock.latest, n, &none)
		runtime.KeepAlive(l)
	}
}
