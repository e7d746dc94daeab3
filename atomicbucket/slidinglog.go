package atomicbucket

import (
	"math/bits"
	"time"
)

// A SlidingLog is the algorithm of a sliding window log: the times of the last requests are
// kept, one for each token, and a request is admitted if with it no more than the limit
// lie in the window that ends with it. It is exact.
//
// The times stand in a ring of the limit's length behind the record. The payload is packed
// {time of the newest request, its position in the ring, pending}: the last change is in
// the payload alone, and whoever makes the next one enters it in the ring first. So one
// word still decides: it freezes, evicts or recycles the record with its ring. Pending is
// how many entries the last change was: the newest request's tokens, which all have
// its time; or, after a refund, entries that are to be emptied, which in the order of
// the ring come after the newest.
//
// A tick is a power of two of nanoseconds: one, unless the fields would need more than 54
// bits. Where it is more than one, a request leaves the window up to two ticks late, never
// early, and by less than a hundred-thousandth of the window.
type SlidingLog struct {
	clock  divider
	length uint64 // ticks that a request stays in the window
	tokens uint64
	size   uint64 // entries of a ring
	bits   uint   // of a position, and of a number of entries
	narrow uint64 // how many ticks ahead of now a request may lie
	skew   time.Duration
}

// MaxLog is the highest limit of a sliding window log.
const MaxLog = 4096

// NewSlidingLog returns the algorithm of limit tokens in any window, with rings for limits up to
// most, which is not below the limit. Both are 1 to [MaxLog] and the window a
// microsecond to [MaxWindow], and the fields for such a limit and so short a window must fit
// into 54 bits. Anything else is an error that names the value and the range.
func NewSlidingLog(limit, most uint64, window time.Duration) (SlidingLog, error) {
	if err := checkWindow(limit, most, window, MaxLog); err != nil {
		return SlidingLog{}, err
	}
	fits := func(limit uint64) (period uint64, ok bool) {
		return finest(logTurn(limit)/circleSkews, window)
	}
	period, ok := fits(most)
	if !ok {
		return SlidingLog{}, tooLarge(most, window, fits)
	}
	skew := logTurn(most) / circleSkews
	l := SlidingLog{
		clock: newDivider(period), length: ceilDiv(uint64(window), period), tokens: limit,
		size: most, bits: uint(bits.Len64(most)), narrow: skew, skew: skewOf(skew, period),
	}
	if period > 1 {
		l.length++ // the request's tick began before it
	}
	return l, nil
}

// logTurn returns how many ticks go round in the bits that the other fields leave of the
// payload.
func logTurn(limit uint64) uint64 { return 1 << (PayloadBits - 1 - 2*bits.Len64(limit)) }

// With returns the algorithm of other numbers for the same rings, and whether they are possible:
// a limit up to Size and a window from Shortest to Longest. Records mean the same under both.
func (l *SlidingLog) With(limit uint64, window time.Duration) (SlidingLog, bool) {
	period := l.clock.first(1)
	to := *l
	to.tokens, to.length = limit, ceilDiv(uint64(window), period)
	if period > 1 {
		to.length++
	}
	return to, limit >= 1 && limit <= l.size && window >= l.Shortest() && window <= l.Longest()
}

// Shortest returns the shortest window for which the ticks of the algorithm are fine enough.
func (l *SlidingLog) Shortest() time.Duration {
	if period := time.Duration(l.clock.first(1)); period > 1 {
		return max(period*200_000, time.Microsecond)
	}
	return time.Microsecond
}

// Longest returns the longest window that the records of the algorithm can tell from others.
func (l *SlidingLog) Longest() time.Duration { return min(2*l.skew, MaxWindow) }

// Size returns how many entries a ring has.
func (l *SlidingLog) Size() uint64 { return l.size }

// Ticks returns the tick of an instant, rounded down.
func (l *SlidingLog) Ticks(nanos int64) uint64 { return l.clock.quo(nanos) }

// MaxSkew is how far apart two instants that meet in one call may be.
func (l *SlidingLog) MaxSkew() time.Duration { return l.skew }

// Quota returns what the algorithm grants.
func (l *SlidingLog) Quota() Quota { return Quota{1, l.tokens} }

// A Log is a payload of a sliding log, unpacked.
type Log struct {
	Newest  uint64 // tick of the newest request, in full; also if that was refunded
	Head    uint64 // its position
	Pending uint64 // entries that are not in the ring yet
	Emptied bool   // they are to be emptied
}

// Unpack returns the payload as seen at the tick now.
func (l *SlidingLog) Unpack(s State, now uint64) Log {
	width := l.bits
	circle := uint64(payloadMask) >> (2*width + 1)
	newest := now - (now-uint64(s)>>(2*width+1))&circle
	if ahead := circle + 1 - (now - newest); ahead <= l.narrow {
		newest = now + ahead // now is late
	}
	return Log{newest, uint64(s) >> (width + 1) & (1<<width - 1), uint64(s) >> 1 & (1<<width - 1), s&1 == 1}
}

// Pack returns the payload.
func (l *SlidingLog) Pack(g Log) (payload uint64) {
	emptied := uint64(0)
	if g.Emptied {
		emptied = 1
	}
	return (g.Newest<<(2*l.bits)|g.Head<<l.bits|g.Pending)<<1 | emptied
}

// UntilIdle returns how many ticks it is until the newest request leaves the window.
func (l *SlidingLog) UntilIdle(s State, now uint64) uint64 {
	return l.Left(l.Unpack(s, now).Newest, now)
}

// Left returns how many ticks it is until a request leaves the window, 0 if it has left.
func (l *SlidingLog) Left(request, now uint64) uint64 {
	return uint64(max(int64(request+l.length-now), 0))
}

// Idle reports whether all requests have left the window.
func (l *SlidingLog) Idle(s State, now uint64) bool { return l.UntilIdle(s, now) == 0 }

// IdleFor returns for how many ticks no request has been in the window.
func (l *SlidingLog) IdleFor(s State, now uint64) uint64 {
	return now - min(l.Unpack(s, now).Newest+l.length, now)
}

// Full returns the payload of a log without requests.
func (l *SlidingLog) Full(now uint64) (payload uint64) { return l.Pack(Log{Newest: now - l.length}) }

// Push returns the payload after a request of n tokens.
func (l *SlidingLog) Push(s State, now, n uint64) (payload uint64) {
	g := l.Unpack(s, now)
	if g.Head += n; g.Head >= l.size {
		g.Head -= l.size
	}
	if int64(now-g.Newest) > 0 { // a log without requests may lie before the origin
		g.Newest = now
	}
	return l.Pack(Log{Newest: g.Newest, Head: g.Head, Pending: n})
}

// Take returns the payload after the first request of a log without requests; of another
// the payload alone does not say whether it is admitted.
func (l *SlidingLog) Take(s State, now uint64, d Demand) (payload uint64, ok bool) {
	return l.Push(s, now, d.Cost), l.Idle(s, now)
}

// Refund returns the payload as it is: the payload alone does not say what it would be.
func (l *SlidingLog) Refund(s State, _, _ uint64) (payload uint64) { return s.Payload() }

// Shortfall returns how many ticks must pass before d is admitted whatever is in the log.
func (l *SlidingLog) Shortfall(s State, now uint64, d Demand) uint64 {
	if d.Cost == 0 {
		return 0
	}
	return l.UntilIdle(s, now)
}

// Debt returns how many tokens the last request had.
func (l *SlidingLog) Debt(s State, now uint64) uint64 {
	g := l.Unpack(s, now)
	if g.Emptied || l.Left(g.Newest, now) == 0 {
		return 0
	}
	return g.Pending
}

// Tokens returns a debt in tokens.
func (l *SlidingLog) Tokens(debt uint64) uint64 { return debt }

// Wait returns the time from an instant until so many ticks have passed.
func (l *SlidingLog) Wait(nanos int64, ticks uint64) time.Duration {
	if ticks == 0 {
		return 0
	}
	return l.clock.wait(nanos, ticks)
}

// Status returns what there is to say about a log of one request.
func (l *SlidingLog) Status(s State, nanos int64, d Demand) Status {
	now := l.Ticks(nanos)
	rest := l.Wait(nanos, l.UntilIdle(s, now))
	r := Status{Remaining: d.Limit - min(l.Debt(s, now), d.Limit), ResetAfter: rest}
	if d.Cost > r.Remaining {
		r.RetryAfter = rest
	}
	return r
}
