package engine

import (
	"runtime"

	"github.com/weir-go/weir/shard"
)

// Refund gives n tokens back to the key, for a request that was admitted and then cost less, or nothing. A key never
// has more than the limit.
//
// Refund does not know which request took the tokens, as a receipt does ([Limiter.TakeReceipt]). So only in these
// cases, the other requests certainly stay within the limit:
//
//   - A fixed window, if the refunded request was in the current window.
//   - A sliding window counter, if it was in the current window or the previous one.
//   - A sliding log, always: it forgets the oldest requests in the window.
//   - A token bucket, if Refund follows at once. A later Refund gives back, a second time, tokens that have come back
//     and were taken again.
//
// A bucket gives nothing back while a reservation ([Limiter.Reserve]) of the key, or of one of about a hundred keys
// near it in the table, is not yet due. It also gives nothing back until the clock reaches the time of a request that
// was ahead of the clock ([Limiter.TakeAt]), up to a second. A window or a log does not give back the tokens of such a
// request until then. Of tokens in flight ([Concurrency]), those are released first that would be forgotten first.
func (l *Limiter) Refund(k Key, n uint64) {
	l.requireMade()
	if n > 0 {
		var none shard.Receipt
		none.EnterNone(n, k.quota)
		l.table.RefundOf(l.table.Find(k.hash), l.clock.latest, n, &none)
		runtime.KeepAlive(l)
	}
}
