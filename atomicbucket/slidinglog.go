package atomicbucket

import (
	"math/bits"
	"time"
)

// A SlidingLog is the algorithm of a sliding window log, which is exact. It keeps one time for each token that was
// taken: the time of the request. It admits a request if the tokens taken in the window that ends with the request,
// including its own, are at most the limit.
//
// The times are in a ring with an entry for each token of the limit. The payload is packed {time of the newest request,
// its position in the ring, a number of tokens, whether the last change was a refund}. After a take, the number is how
// many tokens the newest request took, all with the time of that request. After a refund, it is how many of the newest
// tokens still count.
//
// At first, only the payload has the last change. The call that makes the next change first writes the last change to
// the ring. So the state word still decides alone: one compare-and-swap evicts or reuses the record together with its
// ring.
//
// A tick is a nanosecond, if the fields then fit into 54 bits, or else a larger power of two of nanoseconds. With such
// a larger tick, a request leaves the window up to two ticks late, but never early. Two ticks are at most a
// hundred-thousandth of the window.
type SlidingLog struct {
	clock     divider
	window    time.Duration
	length    uint64        // ticks that a request stays in the window
	retention uint64        // ticks that a record stays after its newest request, at least length: see Staying
	room      time.Duration // see Staying
	tokens    uint64
	size      uint64 // entries of a ring
	bits      uint   // width of a position, and of a number of entries
	maxAhead  uint64 // how many ticks ahead of now a request may be
	skew      time.Duration
}

// MaxLog is the highest limit of a sliding window log.
const MaxLog = 4096

// NewSlidingLog returns the algorithm that allows limit tokens in any window. Its rings have room for limits up to
// maxLimit. The ranges are 1 <= limit <= maxLimit <= [MaxLog], and a microsecond to [MaxWindow] for the window. The
// fields of the payload for maxLimit and this window must fit into 54 bits. For other numbers, the error names the
// value and the range.
func NewSlidingLog(limit, maxLimit uint64, window time.Duration) (SlidingLog, error) {
	if err := checkWindow(limit, maxLimit, window, MaxLog); err != nil {
		return SlidingLog{}, err
	}
	fits := func(limit uint64) (period uint64, ok bool) {
		return finest(logTurn(limit)/circleSkews, window, window)
	}
	period, ok := fits(maxLimit)
	if !ok {
		return SlidingLog{}, tooLarge(maxLimit, window, fits)
	}
	skew := logTurn(maxLimit) / circleSkews
	l := SlidingLog{
		clock: newDivider(period), window: window, length: ceilDiv(uint64(window), period), tokens: limit,
		size: maxLimit, bits: uint(bits.Len64(maxLimit)), maxAhead: skew, skew: skewOf(skew, period),
	}
	if period > 1 {
		l.length++ // the request's tick began before the request
	}
	l.retention = l.length
	return l, nil
}

// logTurn returns the number of ticks that the payload can hold before it wraps around, if the other fields take the
// other bits.
func logTurn(limit uint64) uint64 { return 1 << (PayloadBits - 1 - 2*bits.Len64(limit)) }

func (l *SlidingLog) shortest() time.Duration {
	if period := time.Duration(l.clock.first(1)); period > 1 {
		return period * 200_000
	}
	return time.Microsecond
}

func (l *SlidingLog) longest() time.Duration { return min(2*l.skew, MaxWindow) }

// Staying returns a copy of the algorithm. If room is longer than the window, records stay for the duration room after
// their newest request. This matters if windows become shorter and then longer again. Otherwise tokens would be
// forgotten while windows are short, and would not count after the second change.
func (l *SlidingLog) Staying(room time.Duration) *SlidingLog {
	to := *l
	to.room, to.retention = room, max(to.length, l.ticksOf(min(room, l.longest())))
	return &to
}

// ticksOf returns for how many ticks a request is in a window of the given length.
func (l *SlidingLog) ticksOf(window time.Duration) uint64 {
	period := l.clock.first(1)
	if ticks := ceilDiv(uint64(window), period); period == 1 {
		return ticks
	} else {
		return ticks + 1 // the request's tick began before the request
	}
}

// RingSize returns how many words a ring has: one for each token of the largest limit for which there is room.
func (l *SlidingLog) RingSize() uint64 { return l.size }

// Ticks implements [Algorithm].
func (l *SlidingLog) Ticks(nanos int64) uint64 { return l.clock.quo(nanos) }

// MaxSkew implements [Algorithm].
func (l *SlidingLog) MaxSkew() time.Duration { return l.skew }

// Quota implements [Algorithm].
func (l *SlidingLog) Quota() Quota { return Quota{1, l.tokens} }

// unpack sets g to the record at the tick now.
func (l *SlidingLog) unpack(g *log, r Record, now uint64) {
	s, width := uint64(r.State), l.bits
	maxTick := uint64(payloadMask) >> (2*width + 1)
	newest := now - (now-s>>(2*width+1))&maxTick
	if ahead := maxTick + 1 - (now - newest); ahead <= l.maxAhead {
		newest = now + ahead // now is before the newest request
	}
	g.rule, g.state, g.ring, g.newest = l, r.State, r.Ring, newest
	g.head = s >> (width + 1) & (1<<width - 1)
	if last := s >> 1 & (1<<width - 1); s&1 == 0 {
		g.pending, g.count = last, l.size
	} else {
		g.pending, g.count = 0, last
	}
}

// pack returns a payload. The parameter last is a result of lastRequest or lastRefund.
func (l *SlidingLog) pack(newest, head, last uint64) (payload uint64) {
	return newest<<(2*l.bits+1) | head<<(l.bits+1) | last
}

// lastRequest and lastRefund return the part of a payload that describes the last change: a request for a number of
// tokens, or a refund after which a number of tokens still count.
func lastRequest(tokens uint64) (last uint64) { return tokens << 1 }
func lastRefund(tokens uint64) (last uint64)  { return tokens<<1 | 1 }

// ticksLeft returns how many ticks remain until a request leaves the window, 0 if it has left.
func (l *SlidingLog) ticksLeft(request, now uint64) uint64 {
	return uint64(max(int64(request+l.length-now), 0))
}

// UntilIdle returns how many ticks remain until the record may be forgotten. It counts from the newest request, even if
// that request was given back. If all requests were given back, it returns 0.
func (l *SlidingLog) UntilIdle(s State, now uint64) uint64 {
	var g log
	l.unpack(&g, s.Record(), now)
	if g.count == 0 {
		return 0
	}
	return uint64(max(int64(g.newest+l.retention-now), 0))
}

// Idle reports whether the record may be forgotten: all requests have left the window, or were given back, and no
// later, longer window will count them ([SlidingLog.Staying]).
func (l *SlidingLog) Idle(s State, now uint64) bool { return l.UntilIdle(s, now) == 0 }

// IdleFor returns for how many ticks the record could have been forgotten already. It counts from the newest request,
// even if that request was given back.
func (l *SlidingLog) IdleFor(s State, now uint64) uint64 {
	var g log
	l.unpack(&g, s.Record(), now)
	return now - min(g.newest+l.retention, now)
}

// Full returns the payload of a log without requests.
func (l *SlidingLog) Full(now uint64) (payload uint64) {
	return l.pack(now-l.retention, 0, lastRequest(0))
}

// Take returns the payload after a request at the tick now, and whether the window then has at most as many tokens as
// the limit.
func (l *SlidingLog) Take(r Record, now uint64, d Demand) (payload uint64, ok bool) {
	var g log
	l.unpack(&g, r, now)
	ok = g.ticksLeft(d.Limit-d.Cost, now) == 0
	if g.head += d.Cost; g.head >= l.size {
		g.head -= l.size
	}
	if int64(now-g.newest) > 0 { // for a log without requests, the time may be before the origin
		g.newest = now
	}
	return l.pack(g.newest, g.head, lastRequest(d.Cost)), ok
}

// Flush writes the last request or refund to the ring, before the next change replaces it in the state.
func (l *SlidingLog) Flush(r Record, now uint64, word *Word) bool {
	var g log
	l.unpack(&g, r, now)
	return g.flush(word)
}

// Receipt returns the receipt of a take, which identifies the tick of the request.
func (l *SlidingLog) Receipt(after State, nanos int64, _ uint64) Receipt {
	var g log
	l.unpack(&g, after.Record(), l.Ticks(nanos))
	return Receipt{g.newest, 0, nanos, recordInfo{uint8(after.Version()), true}}
}

// Refund removes tokens of the request that a receipt identifies, as far as they are still in the window. Without a
// receipt it removes the oldest tokens in the window: if it removed newer ones, a window could have more tokens than
// the limit. The window ends at the refund's own time, even if the newest request is ahead of that time. The requests
// in that window still count for calls at the clock's time.
//
// First the state changes. This removes the oldest tokens, and all tokens that no window will count
// ([SlidingLog.Staying]). It also changes the version, because the state of a refunded log could otherwise equal an
// earlier state. If there is a receipt, or if the log keeps tokens that have left the window, Refund then exchanges the
// removed ticks for those that should have been removed.
//
// Refund gives nothing back if the ring is full of tokens that a longer window may count. Older tokens may then have
// been overwritten, and the ring would not show that these count.
func (l *SlidingLog) Refund(r Record, ret Return, word *Word) (after State, ok bool) {
	var g log
	now, receipt := ret.Now, ret.Of
	l.unpack(&g, r, now)
	used := g.used(now)
	amount := min(ret.Demand.Cost, used)
	if receipt.known {
		amount = min(amount, g.usedAt(receipt.tick, now))
	} else if ret.Latest > now { // requests ahead of the clock may have used room that does not exist yet
		amount = min(amount, used-min(used, g.countSince(now+1)))
	}
	retained := used
	if l.retention > l.length {
		retained = max(used, g.countSince(now-l.retention+1))
	}
	if amount == 0 || l.retention > l.length && retained == l.size { // older requests may have been overwritten
		return word.Move(r.State, r.State.Payload())
	}
	if !g.flush(word) { // R10
		return 0, false
	}
	swaps := make([][2]uint64, 0, 8) // pairs of a removed tick and the tick that should be removed
	for i := range amount {
		if receipt.known || retained > used {
			carry, _ := g.tick(retained - amount + i)
			tick, _ := g.tick(used - amount + i)
			if receipt.known {
				tick = receipt.tick
			}
			swaps = append(swaps, [2]uint64{carry, tick})
		}
	}
	if after, ok = word.Convert(r.State, r.State.Tag(), l.pack(g.newest, g.head, lastRefund(retained-amount))); !ok {
		return 0, false
	}
	l.unpack(&g, Record{after, r.Ring}, now)
	for _, swap := range swaps {
		g.exchange(g.count, swap[0], swap[1], word)
	}
	g.drop(word) // not necessary: the next change would do it
	return after, true
}

// Shortfall implements [Algorithm].
func (l *SlidingLog) Shortfall(r Record, now uint64, d Demand) uint64 {
	if d.Cost == 0 {
		return 0
	}
	var g log
	l.unpack(&g, r, now)
	return g.ticksLeft(d.Limit-d.Cost, now)
}

// Debt returns how many tokens are in the window.
func (l *SlidingLog) Debt(r Record, now uint64) uint64 {
	var g log
	l.unpack(&g, r, now)
	return g.used(now)
}

// Tokens implements [Algorithm].
func (l *SlidingLog) Tokens(debt uint64) uint64 { return debt }

// Wait implements [Algorithm].
func (l *SlidingLog) Wait(nanos int64, ticks uint64) time.Duration {
	if ticks == 0 {
		return 0
	}
	return l.clock.wait(nanos, ticks)
}

// Status implements [Algorithm].
func (l *SlidingLog) Status(r Record, nanos int64, d Demand) Status {
	now := l.Ticks(nanos)
	var g log
	l.unpack(&g, r, now)
	for {
		used := g.used(now)
		status := Status{Remaining: d.Limit - min(used, d.Limit)}
		// Since the entries were counted, a concurrent exchange may have made some of them older, so that they have
		// left the window by now. Then the oldest entry has left, too, so the entries are counted again.
		if d.Cost > status.Remaining {
			status.RetryAfter = l.Wait(nanos, g.ticksLeft(d.Limit-d.Cost, now))
		}
		if used == 0 {
			return status
		}
		if left := g.ticksLeft(used-1, now); left > 0 {
			status.ResetAfter = l.Wait(nanos, left)
			return status
		}
	}
}
