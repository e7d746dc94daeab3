package atomicbucket

import (
	"math"
	"time"
)

// A TokenBucket is the algorithm of a token bucket: how fast tokens come back, and how many fit. It is immutable; the
// state of a key is in the payload of the key's [State]. Make one with [NewTokenBucket].
//
// # Token ticks
//
// Time and tokens are counted in one unit, the tick: a fixed fraction of a token, and the time in which that fraction
// comes back. Costs and the burst are whole numbers of ticks. The tick of an instant t is floor(t * ticks per
// nanosecond), modulo 2^64. This tick is computed from absolute time, so no rounding accumulates from one request to
// the next. The payload is the theoretical arrival time (TAT), modulo 2^54: the tick at which the bucket is full again.
//
//	debt   =   TAT - now, or 0 if that has passed
//	idle   iff debt = 0
//	admit  iff debt + cost <= burst
//	TAT'   =   max(TAT, now + round) + cost
//
// In an exact algorithm a nanosecond is a whole number of ticks, and nothing is rounded (round is 0). Let the rate be
// m/n tokens per nanosecond, as a reduced fraction. Then a tick is 1/n of a token, and m ticks pass in a nanosecond.
// This needs m <= 16, and burst * n within 2^51 ticks. It covers every rate whose tokens are a whole number of
// nanoseconds apart, or of halves, thirds, ... sixteenths of a nanosecond. A burst that comes back within 39 hours
// always fits. For some rates, bursts that take longer fit, too.
//
// Any other algorithm divides the token into 2^frac ticks. Each tick is half a nanosecond to a nanosecond long, or
// longer if the burst would otherwise exceed 2^51 ticks. The current tick is rounded down, and tokens that are taken
// from an idle bucket come back from the next tick on (round is 1). So a request is never admitted early, and at most
// two ticks late. The drawback: if a whole burst comes within one tick, its last token waits for the next tick.
//
// The payload counts ticks on a circle, and a full turn takes 13 days or longer. A TAT can be ahead of now by at most
// the burst and the skew between two clocks. So a TAT more than 2^51 + 2^50 + 1 ticks ahead is read as past. The past
// has 13/16 of the circle, at least 10 days. Within this time the table must forget or use an idle record. After
// it, the record would look as if it owed something.
//
// # Batches
//
// A bucket that is refilled in batches gets several tokens at once, every interval of the clock. It is the same
// algorithm with a clock that advances in steps: a tick is a token, and time stands still between two refills. No part
// of an interval can be lost, because intervals exist only in the clock. [NewTicks] uses a similar clock for buckets
// that take more than 26 days to fill: a step is one tick, of 2 to 16 nanoseconds.
type TokenBucket struct {
	exact uint64 // ticks per nanosecond of an exact algorithm, else 0
	burst uint64 // in ticks
	token uint64 // cost of a token, in ticks
	round uint64 // 0 for an algorithm that never rounds, else 1
	step  uint64 // ticks per count of the clock: the refill of a bucket with batches, else 1
	// prices is true if limits come with the calls, so that records have prices.
	prices bool
	// clock converts an instant to ticks, or to steps. In an exact algorithm it instead converts ticks to nanoseconds.
	clock  divider
	tokens divider // converts ticks to tokens
}

// maxSkew is how far apart, in ticks, two instants may be if one call compares them: a sixteenth of the circle, which
// is half of the largest burst.
const maxSkew = 1 << 50

// maxDebt is how far ahead of now a payload may be: the largest burst, the tick by which the charge of an idle bucket
// may exceed it, and the skew.
const maxDebt = maxBurstTicks + 1 + maxSkew

// Ticks returns the tick of an instant, rounded down. nanos counts from any fixed origin and is not negative.
func (b *TokenBucket) Ticks(nanos int64) uint64 {
	if b.exact != 0 {
		return uint64(nanos) * b.exact
	}
	return b.clock.quo(nanos) * b.step
}

// Span returns the time in which a number of ticks pass. It may be too short by up to a tick or a refill, and is never
// too long.
func (b *TokenBucket) Span(ticks uint64) time.Duration {
	if b.exact != 0 {
		return time.Duration(ticks / b.exact)
	}
	return time.Duration(b.clock.first(max(ticks/b.step, 1) - 1))
}

// MaxSkew returns how far apart two instants may be if one call compares them: a sixteenth of the payload's circle, but
// at most 2^59 ns (18 years). That is at least 19 hours.
func (b *TokenBucket) MaxSkew() time.Duration {
	if b.exact != 0 {
		return time.Duration(maxSkew / b.exact)
	}
	return time.Duration(min(b.clock.first(maxSkew/b.step-2), 1<<59))
}

// Step returns how many ticks pass at once: the refill of a bucket with batches, else 1.
func (b *TokenBucket) Step() uint64 { return max(b.step, 1) }

// Exact reports whether the algorithm never rounds.
func (b *TokenBucket) Exact() bool { return b.exact != 0 }

// Cost returns n tokens in ticks.
func (b *TokenBucket) Cost(n uint64) uint64 { return n * b.token }

// Quota implements [Algorithm].
func (b *TokenBucket) Quota() Quota { return Quota{b.token, b.burst / b.token} }

// RingSize returns how many words hold the prices of a record ([NewTicks]): 0 if a record is one word.
func (b *TokenBucket) RingSize() uint64 {
	if b.prices {
		return priceSize
	}
	return 0
}

// debt returns the ticks from the tick now until the bucket is full, and zero for a full bucket. The mask removes the
// tag and the version of the state, and the bits of the tick for which a payload has no room.
func debt(s State, now uint64) uint64 {
	d := (uint64(s) - now) & payloadMask
	if d > maxDebt {
		return 0
	}
	return d
}

// Take returns the payload after a take from a live record at the tick now, and whether the bucket had enough tokens.
func (b *TokenBucket) Take(r Record, now uint64, d Demand) (payload uint64, ok bool) {
	owed := debt(r.State, now)
	return now + max(owed, b.round) + d.Cost, owed+d.Cost <= d.Limit
}

// Flush has nothing to do: a record is one word.
func (b *TokenBucket) Flush(Record, uint64, *Word) bool { return true }

// Full returns the payload of a full bucket.
func (b *TokenBucket) Full(now uint64) (payload uint64) { return now }

// Receipt returns the receipt of a take, which identifies the tick at which the bucket is full again after the take.
func (b *TokenBucket) Receipt(after State, nanos int64, cost uint64) Receipt {
	return Receipt{after.Payload(), cost, nanos, recordInfo{uint8(after.Version()), true}}
}

// Refund gives back a take, or a part of it. It reduces the debt only by the ticks that the record certainly owes
// because of that part. Let B be the debt, and B' the debt that the record would have without the part. The difference
// B - B' starts as the cost of the part. It shrinks by the time that passes while B' is zero and B is not. B' is at
// least the debt that the rest of the take alone would leave. How much comes back depends on what happened since the
// take:
//
//   - If the take is longer ago than any debt lasts, nothing comes back.
//   - If the payload is the same as after the take, the whole cost comes back. Then nothing was taken since, or all of
//     it was given back completely.
//   - If there were other takes, B' was above zero until the tick at which the bucket would have been full without the
//     take. The cost of the part comes back, or the cost of the whole take minus the time since that tick, if that is
//     less.
//   - If there were also other refunds, that tick is not known. The cost of the part comes back, or the cost of the
//     whole take minus the time since the take, if that is less. This case can be distinguished, because only a refund
//     of the second case leaves the version unchanged.
//
// All of this is calculated at the latest of three times: the refund's own time, the time of the latest take, and the
// time at which the last reservation is due. At an earlier time the bucket owes more because of the take, but a later
// take has already used the tokens that come back until the later take. If the latest time is later than the refund's
// own time, and it is not known which take is given back, nothing comes back.
func (b *TokenBucket) Refund(r Record, ret Return, word *Word) (after State, ok bool) {
	owed, cost, receipt := debt(r.State, ret.Now), ret.Demand.Cost, ret.Of
	amount, elapsed := min(debt(r.State, ret.Latest), cost), uint64(0)
	if receipt.known {
		elapsed = ret.Latest - b.Ticks(receipt.nanos)
	}
	switch {
	case int64(elapsed) > maxDebt:
		amount = 0
	case receipt.known && receipt.sameVersion(r.State) && receipt.tick&payloadMask == r.State.Payload():
		return word.Move(r.State, ret.Now+owed-amount)
	case !receipt.known && ret.Latest > ret.Now:
		amount = 0
	case receipt.known && receipt.sameVersion(r.State):
		amount = min(amount, debt(State(receipt.tick), ret.Latest))
	case receipt.known:
		amount = min(amount, receipt.cost-min(receipt.cost, elapsed))
	}
	return word.Convert(r.State, r.State.Tag(), ret.Now+owed-amount)
}

// RefundBehind does what Refund does for a take that is followed only by other takes. The parameter after is the
// record's state directly after the take. None of the other takes may be at a later tick than now, and no reservation
// may be waiting.
func (b *TokenBucket) RefundBehind(s, after State, now, cost uint64, word *Word) (State, bool) {
	owed := debt(s, now)
	return word.Convert(s, s.Tag(), now+owed-min(owed, cost, debt(after, now)))
}

// Idle reports whether the bucket is full at the tick now. An idle record is equivalent to no record.
func (b *TokenBucket) Idle(s State, now uint64) bool { return debt(s, now) == 0 }

// IdleFor returns for how many ticks a full bucket has been full.
func (b *TokenBucket) IdleFor(s State, now uint64) uint64 { return (now - uint64(s)) & payloadMask }

// Debt returns how many ticks remain until the bucket is full, and zero for an idle bucket.
func (b *TokenBucket) Debt(r Record, now uint64) uint64 { return debt(r.State, now) }

// UntilIdle returns how many ticks remain until the bucket is idle: its debt.
func (b *TokenBucket) UntilIdle(s State, now uint64) uint64 { return debt(s, now) }

// Shortfall implements [Algorithm].
func (b *TokenBucket) Shortfall(r Record, now uint64, d Demand) uint64 {
	if d.Cost == 0 {
		return 0
	}
	need := debt(r.State, now) + d.Cost
	return need - min(need, d.Limit)
}

// Ahead returns the demand of a caller that takes at the instant nanos and then waits. It is the demand d, with the
// limit raised by the ticks that come back within the wait. The raised limit is at most 2^51 ticks, because no bucket
// owes more.
func (b *TokenBucket) Ahead(nanos int64, wait time.Duration, d Demand) Demand {
	if b.exact != 0 {
		wait = min(wait, time.Duration(maxBurstTicks/b.exact)) // a longer wait would overflow
	}
	end := nanos + min(int64(wait), math.MaxInt64-nanos)
	d.Limit = min(d.Limit+b.Ticks(end)-b.Ticks(nanos), maxBurstTicks)
	return d
}

// Overdrawn returns the time from an instant until the debt is at most the limit. That is how long a caller that has
// taken in advance must wait.
func (b *TokenBucket) Overdrawn(s State, nanos int64, limit uint64) time.Duration {
	owed := debt(s, b.Ticks(nanos))
	return b.Wait(nanos, owed-min(owed, limit))
}

// Status implements [Algorithm].
func (b *TokenBucket) Status(r Record, nanos int64, d Demand) (status Status) {
	now := b.Ticks(nanos)
	status.Remaining, status.ResetAfter = b.Left(nanos, debt(r.State, now), d.Limit, d.Token)
	if lack := b.Shortfall(r, now, d); lack > 0 {
		status.RetryAfter = b.Wait(nanos, lack)
	}
	return status
}

// Left returns how many tokens of a bucket are left at an instant, and the time until it is full. The debt, the limit
// and the cost of a token are given in ticks.
func (b *TokenBucket) Left(nanos int64, owed, limit, token uint64) (tokens uint64, reset time.Duration) {
	// Rounding, a reservation or a lower tier can put the debt above the limit.
	left := limit - min(owed, limit)
	if token == b.token {
		tokens = b.tokens.quo(int64(left))
	} else {
		tokens = left / token
	}
	if b.exact != 0 { // as in Wait, but with one call less: every debt fits the divider, and 0 gives 0
		return tokens, time.Duration(b.clock.quo(int64(owed + b.exact - 1)))
	}
	return tokens, b.Wait(nanos, owed)
}

// Tokens returns ticks in whole tokens, rounded up.
func (b *TokenBucket) Tokens(ticks uint64) uint64 {
	return (ticks + b.token - 1) / b.token
}

// Wait returns the time from the instant nanos until a number of ticks have passed. It is the exact inverse of
// [TokenBucket.Ticks]: one nanosecond less is not enough. Wait returns the longest Duration, about 292 years, for a
// longer wait. An algorithm that rounds also returns it for a wait that ends 2^63 ns or more after the origin.
func (b *TokenBucket) Wait(nanos int64, ticks uint64) time.Duration {
	if ticks == 0 {
		return 0
	}
	if b.exact != 0 {
		if ticks > math.MaxInt64-maxExact { // more ticks than the divider accepts
			return time.Duration(min(ceilDiv(ticks, b.exact), math.MaxInt64))
		}
		return time.Duration(b.clock.quo(int64(ticks + b.exact - 1)))
	}
	if b.step > 1 {
		ticks = ceilDiv(ticks, b.step)
	}
	return b.clock.wait(nanos, ticks)
}
