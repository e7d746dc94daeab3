package engine

import (
	"runtime"

	"github.com/weir-go/weir/shard"
)

// Refund gives n tokens back to the key, for a request that was admitted and then cost less, or nothing. A key never
// has more than the limit.
//
// Unlike the receipt of a [Limiter.TakeReceipt], Refund does not know which request took the tokens. Other requests
// certainly stay within the limit only in these cases:
//
//   - A fixed window, if the refunded request was in the current window.
//   - A sliding window counter, if it was in the current window or the previous one.
//   - A sliding log, always: it forgets the oldest requests in the window.
//   - A token bucket, if Refund follows at once. A later Refund gives back, a second time, tokens that have come back
//     and were taken again.
//
// Some tokens do not come back at once. While a reservation of the key is not yet due, a bucket gives nothing back. The
// same is true for reservations of about a hundred keys near it in the table. If a request of [Limiter.TakeAt] was
// ahead of the clock by up to a second, a bucket gives nothing back until the clock reaches that time. Until then, a
// window or a log does not give back the tokens of that request. With [Concurrency], a refund first releases the tokens
// that would be forgotten first.
func (l *Limiter) Refund(k Key, n uint64) {
	l.requireMade()
	if n > 0 {
		var receipt shard.Receipt
		receipt.EnterNone(n, k.quota)
		l.table.RefundOf(l.table.Find(k.hash), l.clock.latest, n, &receipt)
		runtime.KeepAlive(l)
	}
}
