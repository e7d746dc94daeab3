package atomicbucket

import (
	"math"
	"math/bits"
	"time"
)

// A TokenBucket is the rule of a token bucket: how fast tokens come back and
// how many fit. It is immutable and holds no key's state; that is the payload
// of the key's [State]. Make one with [NewTokenBucket].
//
// # Token ticks
//
// Time and tokens are counted in one unit, the tick: a fixed fraction of a token,
// and the time in which that much of a token comes back. Costs and the burst are
// whole numbers of ticks. The instant t is the tick floor(t * ticks per
// nanosecond), modulo 2^64, computed from absolute time, so nothing is divided and
// no rounding accumulates from one request to the next. The payload is the theoretical arrival
// time (TAT), the tick at which the bucket is full again, modulo 2^54:
//
//	debt   =   TAT - now, or 0 if that has passed
//	idle   iff debt = 0
//	admit  iff debt + cost <= burst
//	TAT'   =   max(TAT, now + round) + cost
//
// An exact rule counts a nanosecond as a whole number of ticks. With the rate
// reduced to a tokens every b nanoseconds a tick is 1/b of a token, a nanosecond is
// a ticks, and nothing is ever rounded: round is 0. It needs a <= 16 and burst * b
// within 2^51 ticks. That is every rate whose tokens are a whole number of
// nanoseconds apart, or of halves, thirds, ... sixteenths of one, and bursts up to
// what comes back in 39 hours at the least.
//
// Any other rule cuts the token into 2^frac ticks, each half a nanosecond to a
// nanosecond long, or longer where the burst would else exceed 2^51 ticks. Now is
// rounded down and an idle bucket is charged from the next tick (round is 1), so a
// request is never admitted early, and at most two ticks late. The price: of a burst
// that comes within one tick the last token waits for the next.
//
// The circle of the payload is 13 days long, or longer. On it the future is narrow:
// a TAT cannot honestly be further ahead of now than the burst and the skew between
// two clocks, so everything beyond 2^51 + 2^50 + 1 ticks is read as past. That leaves
// 13/16 of the circle, 10 days, in which an idle record must be forgotten or used
// before it would look indebted again. The owner of the record sees to that.
type TokenBucket struct {
	exact uint64 // ticks in a nanosecond of an exact rule, else 0
	burst uint64 // in ticks
	token uint64 // ticks in a token
	round uint64 // 0 for an exact rule, else 1
	mul   uint64 // ticks in a nanosecond, as mul / 2^(63+shift), if not exact
	shift uint8
}

// maxSkew is how far apart, in ticks, two instants that meet in one call may be
// without a difference being misread: a sixteenth of the circle, half of the largest
// burst.
const maxSkew = 1 << 50

// maxDebt is the narrow future: the largest burst, the tick by which charging an idle
// bucket may exceed it, and the skew.
const maxDebt = maxBurstTicks + 1 + maxSkew

// Ticks returns the tick of an instant, rounded down. nanos counts from any fixed
// origin and is not negative.
func (b *TokenBucket) Ticks(nanos int64) uint64 {
	if b.exact != 0 {
		return uint64(nanos) * b.exact
	}
	hi, _ := bits.Mul64(uint64(nanos)<<1, b.mul)
	return hi >> (b.shift & 63)
}

// MaxSkew is how far apart two instants that meet in one call may be without a
// difference being misread: 19 hours or more, and 18 years (2^59 ns) at most. It is a
// sixteenth of the payload's circle, unless that is longer than the timeline.
func (b *TokenBucket) MaxSkew() time.Duration {
	if b.exact != 0 {
		return time.Duration(maxSkew / b.exact)
	}
	return time.Duration(min(b.nanos(maxSkew), 1<<59))
}

// Exact reports whether the rule never rounds.
func (b *TokenBucket) Exact() bool { return b.exact != 0 }

// Cost returns n tokens in ticks. n must not exceed [TokenBucket.Burst].
func (b *TokenBucket) Cost(n uint64) uint64 { return n * b.token }

// Burst returns how many tokens a full bucket holds.
func (b *TokenBucket) Burst() uint64 { return b.burst / b.token }

// debt returns the ticks from now until the bucket is full, zero for a full
// one. Tag and version of s, and the bits of now above the payload, fall out of
// the mask.
func debt(s State, now uint64) uint64 {
	d := (uint64(s) - now) & payloadMask
	if d > maxDebt {
		return 0
	}
	return d
}

// Take returns the payload after taking cost from a live record at the tick
// now, and whether the bucket had that much.
func (b *TokenBucket) Take(s State, now, cost uint64) (payload uint64, ok bool) {
	d := debt(s, now)
	return now + max(d, b.round) + cost, d+cost <= b.burst
}

// Fresh returns the payload after taking cost from a full bucket at the tick
// now. A full bucket holds any cost up to the burst, so it cannot refuse.
func (b *TokenBucket) Fresh(now, cost uint64) (payload uint64) { return now + b.round + cost }

// Idle reports whether the bucket is full at the tick now. Having no record
// and having an idle one are the same thing.
func (b *TokenBucket) Idle(s State, now uint64) bool { return debt(s, now) == 0 }

// Debt returns how many ticks the bucket is from full, zero for an idle one.
func (b *TokenBucket) Debt(s State, now uint64) uint64 { return debt(s, now) }

// Remaining returns the whole tokens in the bucket at the tick now.
func (b *TokenBucket) Remaining(s State, now uint64) uint64 {
	// Rounding can put the debt one tick above the burst.
	return (b.burst - min(debt(s, now), b.burst)) / b.token
}

// Lack returns how many ticks must pass before a take of cost is admitted, if
// nothing else is taken: zero if it would be now.
func (b *TokenBucket) Lack(s State, now, cost uint64) uint64 {
	need := debt(s, now) + cost
	return need - min(need, b.burst)
}

// Tokens returns ticks in whole tokens, rounded up.
func (b *TokenBucket) Tokens(ticks uint64) uint64 {
	return (ticks + b.token - 1) / b.token
}

// Wait returns the time from the instant nanos until so many ticks have passed: the
// exact inverse of [TokenBucket.Ticks]. Waiting that long is enough and one nanosecond
// less is not. A wait longer than the longest Duration, about 292 years, and for a rule
// that rounds also one that ends 2^63 ns or more after the origin, is reported as
// that. It costs a division.
func (b *TokenBucket) Wait(nanos int64, ticks uint64) time.Duration {
	if b.exact != 0 {
		return time.Duration(ticks/b.exact + min(ticks%b.exact, 1))
	}
	tick, carry := bits.Add64(b.Ticks(nanos), ticks, 0)
	if carry != 0 {
		return math.MaxInt64
	}
	at := b.nanos(tick)
	if at > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(max(int64(at)-nanos, 0))
}

// nanos returns the first instant of a tick of a rule that is not exact: the
// quotient of tick * 2^(63+shift) by mul, rounded up. 2^63 ns is less than
// 2^(64-shift) ticks, so a tick that loses bits here lies beyond that.
func (b *TokenBucket) nanos(tick uint64) uint64 {
	hi, lo := tick>>1, tick<<63
	if b.shift > 0 {
		hi, lo = tick<<(b.shift-1), 0
		if hi>>(b.shift-1) != tick {
			return math.MaxUint64
		}
	}
	if hi >= b.mul {
		return math.MaxUint64
	}
	at, rem := bits.Div64(hi, lo, b.mul)
	return at + min(rem, 1)
}
