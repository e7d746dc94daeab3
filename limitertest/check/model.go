package check

import "time"

// A model has the state of one key under a promise. The instants given to its methods never go back, and costs are
// above 0.
type model interface {
	// wait returns how long it takes until n tokens may be taken, if no other tokens are taken. If a promise allows two
	// roundings, strict selects the longer wait.
	wait(at time.Duration, n uint64, strict bool) time.Duration
	// charge takes n tokens. It returns how many tokens are now admitted beyond the limit, and in which window.
	charge(at time.Duration, n uint64) (excess uint64, in Window)
	// since returns two instants. Requests before the first instant no longer count. The second instant matters if
	// there is room for n tokens. Then there has been room since this instant for these tokens and for all tokens
	// charged since.
	since(at time.Duration, n uint64) (counts, room time.Duration)
}

// A Window is an interval in which tokens were admitted, including both ends. The ends are times of events.
type Window struct {
	From, To time.Duration
	Tokens   uint64 // tokens admitted in the interval
}

func newModel(l Limit, p Promise) model {
	switch p {
	case BatchRefill:
		return &bucket{tokens: 1, per: 1, batch: l, burst: wide{low: l.Burst}}
	case FixedWindow:
		return &window{limit: l.Tokens, per: l.Per, end: never}
	case AlignedWindow:
		return &window{limit: l.Tokens, per: l.Per, end: never, aligned: true}
	case SlidingEstimate:
		return &estimate{limit: l.Tokens, per: l.Per}
	case SlidingExact:
		return &exact{limit: l.Tokens, per: l.Per}
	}
	return &bucket{tokens: l.Tokens, per: uint64(l.Per), burst: product(l.Burst, uint64(l.Per))}
}

// never is an instant before all others.
const never = -Never - 1

// A bucket has a level in units of token x period. The field per is the number of units in a token, and tokens is the
// number of units that leave in each nanosecond. In a bucket of batches, a unit is a token, and a batch leaves at each
// multiple of the period.
type bucket struct {
	tokens, per uint64
	burst       wide
	batch       Limit // the limit of a bucket of batches

	level    wide
	at       time.Duration
	began    time.Duration // when the bucket was last charged at level 0
	admitted uint64        // tokens admitted since began
	charged  bool          // whether the bucket was ever charged

	past     []busy        // busy times before began, oldest first; in their sum, at least burst units have left
	pastLeft wide          // units that have left in past
	known    time.Duration // past has all units that have left since this instant
}

// A busy is a busy time of the bucket, from a charge at level 0 until the level is 0 again. The field left is how many
// units have left.
type busy struct {
	from time.Duration
	left wide
}

// mostPast is how many busy times are stored. If more of them would count, the reported time for which there was room
// may be too short.
const mostPast = 4096

// The method left returns the level of the bucket at an instant.
func (b *bucket) left(at time.Duration) wide {
	if b.batch.Tokens > 0 {
		return b.level.minus(product(b.batch.Tokens, uint64(index(at, b.batch.Per)-index(b.at, b.batch.Per))))
	}
	return b.level.minus(product(b.tokens, apart(b.at, at)))
}

func (b *bucket) wait(at time.Duration, n uint64, _ bool) time.Duration {
	need := product(n, b.per)
	if need.above(b.burst) {
		return Never
	}
	return b.leaves(at, b.left(at).plus(need).minus(b.burst))
}

// leaves returns how long it takes until the given number of units has left. The time counts from the instant in the
// argument at.
func (b *bucket) leaves(at time.Duration, units wide) time.Duration {
	if b.batch.Tokens == 0 || units.zero() {
		return span(units.upBy(b.tokens))
	}
	batches := product(units.upBy(b.batch.Tokens), uint64(b.batch.Per))
	return span(batches.minus(wide{low: apart(floor(at, b.batch.Per), at)}).by(1))
}

func (b *bucket) charge(at time.Duration, n uint64) (uint64, Window) {
	if b.level = b.left(at); b.level.zero() {
		b.rest()
		b.began, b.admitted = at, 0
	}
	b.at, b.charged = at, true
	b.level = b.level.plus(product(n, b.per))
	b.admitted = saturated(b.admitted, n)
	return b.level.minus(b.burst).upBy(b.per), Window{b.began, at, b.admitted}
}

// The method rest ends a busy time and adds it to the field past.
func (b *bucket) rest() {
	if !b.charged {
		b.known = never
		return
	}
	b.past = append(b.past, busy{b.began, product(b.admitted, b.per)})
	b.pastLeft = b.pastLeft.plus(b.past[len(b.past)-1].left)
	for len(b.past) > mostPast || !b.burst.above(b.pastLeft.minus(b.past[0].left)) {
		b.pastLeft, b.known = b.pastLeft.minus(b.past[0].left), b.past[1].from
		b.past = b.past[1:]
	}
}

func (b *bucket) since(at time.Duration, n uint64) (counts, room time.Duration) {
	if !b.charged {
		return never, never
	}
	level := b.left(at)
	if counts = b.began; level.zero() {
		counts = at
	}
	// At an earlier instant, there was room if at most spare units have left since then.
	spare := b.burst.minus(level).minus(product(n, b.per))
	now := busy{b.began, product(b.admitted, b.per).minus(level)}
	for i := len(b.past); ; i-- {
		if now.left.above(spare) {
			return counts, later(now.from, b.leaves(now.from, now.left.minus(spare)))
		}
		if i == 0 {
			return counts, b.known
		}
		spare, now = spare.minus(now.left), b.past[i-1]
	}
}

// begins returns the instant at which the period with the number index begins. If the instant does not fit into a
// Duration, it returns the nearest instant that fits.
func begins(index int64, per time.Duration) time.Duration {
	if index >= 0 {
		return span(product(uint64(index), uint64(per)).by(1))
	}
	if d := span(product(-uint64(index), uint64(per)).by(1)); d < Never {
		return -d
	}
	return never
}

func index(at, per time.Duration) int64 {
	i := int64(at / per)
	if at%per < 0 {
		i--
	}
	return i
}

// floor returns the beginning of the aligned period of an instant. If the beginning does not fit into a Duration, floor
// returns the first instant.
func floor(at, per time.Duration) time.Duration {
	over := at % per
	if over < 0 {
		over += per
	}
	if at < never+over {
		return never
	}
	return at - over
}
