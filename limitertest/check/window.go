package check

import (
	"math"
	"slices"
	"time"
)

// A window counts tokens until the window ends. It begins with a request. An aligned window begins at a multiple of its
// length instead.
type window struct {
	limit     uint64
	period    time.Duration
	isAligned bool

	start, end time.Duration // end is earliest before the first charge
	count      uint64
	past       []entry // earlier windows, ordered by their ends; together they have at least limit tokens
	pastSum    uint128
}

func (w *window) wait(at time.Duration, n uint64, _ bool) time.Duration {
	switch {
	case n > w.limit:
		return Never
	case at >= w.end || w.count <= w.limit && n <= w.limit-w.count:
		return 0
	}
	return w.end - at
}

func (w *window) charge(at time.Duration, n uint64) (uint64, Window) {
	if at >= w.end {
		w.endWindow()
		if w.start, w.count = at, 0; w.isAligned {
			w.start = floor(at, w.period)
		}
		w.end = addTime(w.start, w.period)
	}
	w.count = addSaturated(w.count, n)
	return w.count - min(w.count, w.limit), Window{w.start, at, w.count}
}

// endWindow ends the window and adds it to the field past.
func (w *window) endWindow() {
	if w.count == 0 {
		return
	}
	w.past = append(w.past, entry{w.end, w.count})
	for w.pastSum = w.pastSum.plus(uint128{low: w.count}); enough(w.pastSum, w.past[0].n, w.limit); w.past = w.past[1:] {
		w.pastSum = w.pastSum.minus(uint128{low: w.past[0].n})
	}
}

// enough reports whether a sum is at least the limit even without its oldest part.
func enough(sum uint128, oldest, limit uint64) bool {
	return !uint128{low: limit}.isAbove(sum.minus(uint128{low: oldest}))
}

func (w *window) since(at time.Duration, n uint64) (countsFrom, roomSince time.Duration) {
	spare, last := w.limit-n, entry{w.end, w.count}
	switch {
	case w.isAligned:
		countsFrom = floor(at, w.period)
	case at >= w.end:
		countsFrom = at
	default:
		countsFrom = w.start
	}
	if at < w.end {
		spare, last = spare-w.count, entry{}
	}
	for i := len(w.past); ; i-- {
		if last.n > spare {
			return countsFrom, last.at
		}
		if i == 0 {
			return countsFrom, earliest
		}
		spare, last = spare-last.n, w.past[i-1]
	}
}

// An estimate counts tokens in aligned windows. The tokens of the previous window count in proportion: by the share of
// the previous window that is within the last period.
type estimate struct {
	limit  uint64
	period time.Duration

	index             int64
	previous, current uint64
	start             time.Duration // start of the current window
	past              []windowCount // windows with tokens, latest last; together they have at least limit tokens
	pastSum           uint128
}

type windowCount struct {
	index int64
	n     uint64
}

// estimateAt returns the estimate at an instant. It also returns how much of the previous window counts at this
// instant, in nanoseconds.
func (e *estimate) estimateAt(at time.Duration) (now estimate, share uint64) {
	now = *e
	now.index, now.start = periodIndex(at, e.period), floor(at, e.period)
	switch uint64(now.index - e.index) {
	case 0:
	case 1:
		now.previous, now.current = e.current, 0
	default:
		now.previous, now.current = 0, 0
	}
	return now, uint64(e.period) - nanosBetween(now.start, at)
}

// countAt returns how many tokens count as taken at an instant. The flag strict rounds the share up.
func (e *estimate) countAt(at time.Duration, strict bool) uint64 {
	now, share := e.estimateAt(at)
	previous := product(now.previous, share)
	if strict {
		return addSaturated(now.current, previous.divCeil(uint64(e.period)))
	}
	return addSaturated(now.current, previous.divFloor(uint64(e.period)))
}

func (e *estimate) wait(at time.Duration, n uint64, strict bool) time.Duration {
	if n > e.limit {
		return Never
	}
	now, share := e.estimateAt(at)
	if now.current <= e.limit-n {
		if roomShare := e.maxShare(now.previous, e.limit-n-now.current, strict); roomShare > 0 {
			return duration(share - min(share, roomShare))
		}
	}
	// There is no room before the current window ends. Then it becomes the previous window, and its share falls.
	return duration(addSaturated(share, uint64(e.period)-min(e.maxShare(now.current, e.limit-n, strict), uint64(e.period))))
}

// maxShare returns the largest share of a window, in nanoseconds, at which the window's tokens count as at most spare.
func (e *estimate) maxShare(tokens, spare uint64, strict bool) uint64 {
	if tokens == 0 {
		return math.MaxUint64
	}
	numerator := product(spare, uint64(e.period))
	if !strict { // the share is rounded down
		numerator = numerator.plus(uint128{low: uint64(e.period) - 1})
	}
	return numerator.divFloor(tokens)
}

func (e *estimate) charge(at time.Duration, n uint64) (uint64, Window) {
	count := addSaturated(e.countAt(at, false), n)
	*e, _ = e.estimateAt(at)
	e.current = addSaturated(e.current, n)
	e.remember(n)
	from := e.start
	if e.previous > 0 {
		from = subTime(e.start, e.period)
	}
	return count - min(count, e.limit), Window{from, at, addSaturated(e.previous, e.current)}
}

// remember adds n tokens to the current window of past.
func (e *estimate) remember(n uint64) {
	if last := len(e.past) - 1; last < 0 || e.past[last].index != e.index {
		e.past = append(e.past, windowCount{e.index, 0})
	}
	last := &e.past[len(e.past)-1]
	n = addSaturated(last.n, n) - last.n
	last.n += n
	for e.pastSum = e.pastSum.plus(uint128{low: n}); enough(e.pastSum, e.past[0].n, e.limit); e.past = e.past[1:] {
		e.pastSum = e.pastSum.minus(uint128{low: e.past[0].n})
	}
}

func (e *estimate) since(at time.Duration, n uint64) (countsFrom, roomSince time.Duration) {
	countsFrom, roomSince = subTime(floor(at, e.period), e.period), at
	laterTokens, spare := uint64(0), e.limit-n // tokens charged in later windows, and the most that may count
	index, past := periodIndex(at, e.period), e.past
	for {
		if last := len(past) - 1; last >= 0 && past[last].index == index {
			laterTokens, past = laterTokens+past[last].n, past[:last]
		}
		if len(past) == 0 {
			return countsFrom, earliest
		}
		previous := past[len(past)-1]
		if index > previous.index+1 { // no tokens count between the two windows
			index = previous.index + 1
			roomSince = min(roomSince, periodStart(index+1, e.period))
		}
		start := periodStart(index, e.period)
		count := func(at time.Duration) uint64 {
			return addSaturated(laterTokens, product(previous.n, uint64(e.period)-nanosBetween(start, at)).divCeil(uint64(e.period)))
		}
		if count(start) > spare {
			withoutRoom, withRoom := start, roomSince
			for nanosBetween(withoutRoom, withRoom) > 1 { // within a window, the room only grows
				if middle := withoutRoom + time.Duration(nanosBetween(withoutRoom, withRoom)/2); count(middle) <= spare {
					withRoom = middle
				} else {
					withoutRoom = middle
				}
			}
			return countsFrom, withRoom
		}
		index, roomSince = previous.index, start
	}
}

// An exact stores the charges of the last window. It also stores earlier charges, until these have at least limit
// tokens.
type exact struct {
	limit  uint64
	period time.Duration

	log   []entry // the oldest first
	first int     // index in log of the first charge in the window of the latest charge
	count uint64  // tokens from first on
	sum   uint128 // tokens of all charges in log
}

type entry struct {
	at time.Duration
	n  uint64
}

// roomAt returns when enough older tokens have left the window to make room for n more tokens. If there was room at the
// latest charge, it returns earliest.
func (x *exact) roomAt(n uint64) time.Duration {
	if x.count <= x.limit-n {
		return earliest
	}
	count := x.count
	for _, c := range x.log[x.first:] {
		if count -= c.n; count <= x.limit-n {
			return addTime(c.at, x.period)
		}
	}
	return earliest
}

func (x *exact) wait(at time.Duration, n uint64, _ bool) time.Duration {
	if n > x.limit {
		return Never
	}
	if roomAt := x.roomAt(n); roomAt > at {
		return duration(nanosBetween(at, roomAt))
	}
	return 0
}

// charge adds a charge to the log. A count that does not fit becomes the largest number, which is an excess anyway.
func (x *exact) charge(at time.Duration, n uint64) (uint64, Window) {
	for ; x.first < len(x.log) && nanosBetween(x.log[x.first].at, at) >= uint64(x.period); x.first++ {
		x.count -= x.log[x.first].n
	}
	n = addSaturated(x.count, n) - x.count
	x.log = append(x.log, entry{at, n})
	x.count, x.sum = x.count+n, x.sum.plus(uint128{low: n})
	for x.first > 0 && enough(x.sum, x.log[0].n, x.limit) {
		x.sum = x.sum.minus(uint128{low: x.log[0].n})
		x.log, x.first = x.log[1:], x.first-1
	}
	return x.count - min(x.count, x.limit), Window{x.log[x.first].at, at, x.count}
}

func (x *exact) since(at time.Duration, n uint64) (countsFrom, roomSince time.Duration) {
	countsFrom, spare := addTime(subTime(at, x.period), 1), x.limit-n
	for _, c := range slices.Backward(x.log) {
		if c.n > spare {
			return countsFrom, addTime(c.at, x.period)
		}
		spare -= c.n
	}
	return countsFrom, earliest
}

// subTime returns at - d, or the first instant if the difference does not fit.
func subTime(at, d time.Duration) time.Duration {
	if at < earliest+d {
		return earliest
	}
	return at - d
}

func addSaturated(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<64 - 1
}
