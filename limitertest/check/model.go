package check

import "time"

// A model has the state of one key under a promise. The instants given to its methods never go back, and costs are
// above 0.
type model interface {
	// wait returns how long it takes until n tokens may be taken, if no other tokens are taken. If a promise allows two
	// roundings, strict selects the longer wait.
	wait(at time.Duration, n uint64, strict bool) time.Duration
	// charge takes n tokens. It returns how many tokens are now admitted beyond the limit, and in which window.
	charge(at time.Duration, n uint64) (excess uint64, window Window)
	// since returns two instants. Requests before countsFrom no longer count. The instant roomSince matters only if
	// there is room for n tokens. Then there has been room since this instant for these tokens and for all tokens
	// charged since.
	since(at time.Duration, n uint64) (countsFrom, roomSince time.Duration)
}

// A Window is an interval in which tokens were admitted, including both ends. The ends are times of events.
type Window struct {
	From, To time.Duration
	Tokens   uint64 // tokens admitted in the interval
}

func newModel(l Limit, p Promise) model {
	switch p {
	case BatchRefill:
		return &bucket{unitsPerNano: 1, unitsPerToken: 1, batch: l, burst: uint128{low: l.Burst}}
	case FixedWindow:
		return &window{limit: l.Tokens, period: l.Per, end: earliest}
	case AlignedWindow:
		return &window{limit: l.Tokens, period: l.Per, end: earliest, isAligned: true}
	case SlidingEstimate:
		return &estimate{limit: l.Tokens, period: l.Per}
	case SlidingExact:
		return &exact{limit: l.Tokens, period: l.Per}
	}
	return &bucket{unitsPerNano: l.Tokens, unitsPerToken: uint64(l.Per), burst: product(l.Burst, uint64(l.Per))}
}

// earliest is an instant before all others.
const earliest = -Never - 1

// A bucket has a level in units of token x period. In a bucket of batches, a unit is a token, and a batch leaves at
// each multiple of the period.
type bucket struct {
	unitsPerNano, unitsPerToken uint64
	burst                       uint128
	batch                       Limit // the limit of a bucket of batches

	level     uint128
	at        time.Duration
	began     time.Duration // when the bucket was last charged at level 0
	admitted  uint64        // tokens admitted since began
	isCharged bool          // whether the bucket was ever charged

	past      []busyTime    // busy times before began, oldest first; in their sum, at least burst units have left
	pastUnits uint128       // units that have left in past
	pastSince time.Duration // past has all units that have left since this instant
}

// A busyTime is an interval in which the bucket was not empty: from a charge at level 0 until the level is 0 again.
type busyTime struct {
	from  time.Duration
	units uint128 // how many units have left in this time
}

// maxPast is how many busy times are stored. If more of them would count, the reported time for which there was room
// may be too short.
const maxPast = 4096

// levelAt returns the level of the bucket at an instant.
func (b *bucket) levelAt(at time.Duration) uint128 {
	if b.batch.Tokens > 0 {
		return b.level.minus(product(b.batch.Tokens, uint64(periodIndex(at, b.batch.Per)-periodIndex(b.at, b.batch.Per))))
	}
	return b.level.minus(product(b.unitsPerNano, nanosBetween(b.at, at)))
}

func (b *bucket) wait(at time.Duration, n uint64, _ bool) time.Duration {
	need := product(n, b.unitsPerToken)
	if need.isAbove(b.burst) {
		return Never
	}
	return b.drainTime(at, b.levelAt(at).plus(need).minus(b.burst))
}

// drainTime returns how long it takes, from the instant at, until the given number of units has left.
func (b *bucket) drainTime(at time.Duration, units uint128) time.Duration {
	if b.batch.Tokens == 0 || units.isZero() {
		return duration(units.divCeil(b.unitsPerNano))
	}
	batches := product(units.divCeil(b.batch.Tokens), uint64(b.batch.Per))
	return duration(batches.minus(uint128{low: nanosBetween(floor(at, b.batch.Per), at)}).divFloor(1))
}

func (b *bucket) charge(at time.Duration, n uint64) (uint64, Window) {
	if b.level = b.levelAt(at); b.level.isZero() {
		b.endBusyTime()
		b.began, b.admitted = at, 0
	}
	b.at, b.isCharged = at, true
	b.level = b.level.plus(product(n, b.unitsPerToken))
	b.admitted = addSaturated(b.admitted, n)
	return b.level.minus(b.burst).divCeil(b.unitsPerToken), Window{b.began, at, b.admitted}
}

// endBusyTime ends a busy time and adds it to the field past.
func (b *bucket) endBusyTime() {
	if !b.isCharged {
		b.pastSince = earliest
		return
	}
	b.past = append(b.past, busyTime{b.began, product(b.admitted, b.unitsPerToken)})
	b.pastUnits = b.pastUnits.plus(b.past[len(b.past)-1].units)
	for len(b.past) > maxPast || !b.burst.isAbove(b.pastUnits.minus(b.past[0].units)) {
		b.pastUnits, b.pastSince = b.pastUnits.minus(b.past[0].units), b.past[1].from
		b.past = b.past[1:]
	}
}

func (b *bucket) since(at time.Duration, n uint64) (countsFrom, roomSince time.Duration) {
	if !b.isCharged {
		return earliest, earliest
	}
	level := b.levelAt(at)
	if countsFrom = b.began; level.isZero() {
		countsFrom = at
	}
	// At an earlier instant, there was room if at most spare units have left since then.
	spare := b.burst.minus(level).minus(product(n, b.unitsPerToken))
	current := busyTime{b.began, product(b.admitted, b.unitsPerToken).minus(level)}
	for i := len(b.past); ; i-- {
		if current.units.isAbove(spare) {
			return countsFrom, addTime(current.from, b.drainTime(current.from, current.units.minus(spare)))
		}
		if i == 0 {
			return countsFrom, b.pastSince
		}
		spare, current = spare.minus(current.units), b.past[i-1]
	}
}

// periodStart returns the instant at which the period with the number index begins. If the instant does not fit into a
// Duration, it returns the nearest instant that fits.
func periodStart(index int64, period time.Duration) time.Duration {
	if index >= 0 {
		return duration(product(uint64(index), uint64(period)).divFloor(1))
	}
	if d := duration(product(-uint64(index), uint64(period)).divFloor(1)); d < Never {
		return -d
	}
	return earliest
}

func periodIndex(at, period time.Duration) int64 {
	i := int64(at / period)
	if at%period < 0 {
		i--
	}
	return i
}

// floor returns the beginning of the aligned period of an instant. If the beginning does not fit into a Duration, floor
// returns the first instant.
func floor(at, period time.Duration) time.Duration {
	offset := at % period
	if offset < 0 {
		offset += period
	}
	if at < earliest+offset {
		return earliest
	}
	return at - offset
}
