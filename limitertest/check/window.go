package check

import (
	"math"
	"slices"
	"time"
)

// A window counts tokens until the window ends. It begins with a request. An aligned window begins at a multiple of its
// length instead.
type window struct {
	limit   uint64
	per     time.Duration
	aligned bool

	start, end time.Duration // end is never before the first charge
	count      uint64
	past       []charged // earlier windows, ordered by their ends; together they have at least limit tokens
	pastSum    wide
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
		w.over()
		if w.start, w.count = at, 0; w.aligned {
			w.start = floor(at, w.per)
		}
		w.end = later(w.start, w.per)
	}
	w.count = saturated(w.count, n)
	return w.count - min(w.count, w.limit), Window{w.start, at, w.count}
}

// The method over ends the window and adds it to the field past.
func (w *window) over() {
	if w.count == 0 {
		return
	}
	w.past = append(w.past, charged{w.end, w.count})
	for w.pastSum = w.pastSum.plus(wide{low: w.count}); enough(w.pastSum, w.past[0].n, w.limit); w.past = w.past[1:] {
		w.pastSum = w.pastSum.minus(wide{low: w.past[0].n})
	}
}

// enough reports whether a sum is at least the limit even without its oldest part.
func enough(sum wide, oldest, limit uint64) bool {
	return !wide{low: limit}.above(sum.minus(wide{low: oldest}))
}

func (w *window) since(at time.Duration, n uint64) (counts, room time.Duration) {
	spare, last := w.limit-n, charged{w.end, w.count}
	switch {
	case w.aligned:
		counts = floor(at, w.per)
	case at >= w.end:
		counts = at
	default:
		counts = w.start
	}
	if at < w.end {
		spare, last = spare-w.count, charged{}
	}
	for i := len(w.past); ; i-- {
		if last.n > spare {
			return counts, last.at
		}
		if i == 0 {
			return counts, never
		}
		spare, last = spare-last.n, w.past[i-1]
	}
}

// An estimate counts tokens in aligned windows. The tokens of the previous window count in proportion: by the share of
// the previous window that is within the last per.
type estimate struct {
	limit uint64
	per   time.Duration

	index             int64
	previous, current uint64
	start             time.Duration // start of the current window
	past              []counted     // windows with tokens, latest last; together they have at least limit tokens
	pastSum           wide
}

type counted struct {
	index int64
	n     uint64
}

// The method in returns the estimate at an instant. It also returns how much of the previous window counts at this
// instant, in nanoseconds.
func (e *estimate) in(at time.Duration) (is estimate, share uint64) {
	is = *e
	is.index, is.start = index(at, e.per), floor(at, e.per)
	switch uint64(is.index - e.index) {
	case 0:
	case 1:
		is.previous, is.current = e.current, 0
	default:
		is.previous, is.current = 0, 0
	}
	return is, uint64(e.per) - apart(is.start, at)
}

// taken returns how many tokens count as taken at an instant. The flag strict rounds the share up.
func (e *estimate) taken(at time.Duration, strict bool) uint64 {
	is, share := e.in(at)
	before := product(is.previous, share)
	if strict {
		return saturated(is.current, before.upBy(uint64(e.per)))
	}
	return saturated(is.current, before.by(uint64(e.per)))
}

func (e *estimate) wait(at time.Duration, n uint64, strict bool) time.Duration {
	if n > e.limit {
		return Never
	}
	is, share := e.in(at)
	if is.current <= e.limit-n {
		if least := e.counts(is.previous, e.limit-n-is.current, strict); least > 0 {
			return span(share - min(share, least))
		}
	}
	// There is no room before the current window ends. Then it becomes the previous window, and its share falls.
	return span(saturated(share, uint64(e.per)-min(e.counts(is.current, e.limit-n, strict), uint64(e.per))))
}

// counts returns the largest share of a window, in nanoseconds, at which the window's tokens count as at most the
// number spare.
func (e *estimate) counts(tokens, spare uint64, strict bool) uint64 {
	if tokens == 0 {
		return math.MaxUint64
	}
	most := product(spare, uint64(e.per))
	if !strict { // the share is rounded down
		most = most.plus(wide{low: uint64(e.per) - 1})
	}
	return most.by(tokens)
}

func (e *estimate) charge(at time.Duration, n uint64) (uint64, Window) {
	taken := saturated(e.taken(at, false), n)
	*e, _ = e.in(at)
	e.current = saturated(e.current, n)
	e.remember(n)
	from := e.start
	if e.previous > 0 {
		from = before(e.start, e.per)
	}
	return taken - min(taken, e.limit), Window{from, at, saturated(e.previous, e.current)}
}

// remember adds n tokens to the current window of past.
func (e *estimate) remember(n uint64) {
	if last := len(e.past) - 1; last < 0 || e.past[last].index != e.index {
		e.past = append(e.past, counted{e.index, 0})
	}
	last := &e.past[len(e.past)-1]
	n = saturated(last.n, n) - last.n
	last.n += n
	for e.pastSum = e.pastSum.plus(wide{low: n}); enough(e.pastSum, e.past[0].n, e.limit); e.past = e.past[1:] {
		e.pastSum = e.pastSum.minus(wide{low: e.past[0].n})
	}
}

func (e *estimate) since(at time.Duration, n uint64) (counts, room time.Duration) {
	counts, room = before(floor(at, e.per), e.per), at
	later, spare := uint64(0), e.limit-n // tokens charged in later windows, and the most that may count
	present, past := index(at, e.per), e.past
	for {
		if last := len(past) - 1; last >= 0 && past[last].index == present {
			later, past = later+past[last].n, past[:last]
		}
		if len(past) == 0 {
			return counts, never
		}
		previous := past[len(past)-1]
		if present > previous.index+1 { // no tokens count between the two windows
			present = previous.index + 1
			room = min(room, begins(present+1, e.per))
		}
		start := begins(present, e.per)
		taken := func(at time.Duration) uint64 {
			return saturated(later, product(previous.n, uint64(e.per)-apart(start, at)).upBy(uint64(e.per)))
		}
		if taken(start) > spare {
			no, yes := start, room
			for apart(no, yes) > 1 { // within a window, the room only grows
				if middle := no + time.Duration(apart(no, yes)/2); taken(middle) <= spare {
					yes = middle
				} else {
					no = middle
				}
			}
			return counts, yes
		}
		present, room = previous.index, start
	}
}

// An exact stores the charges of the last window. It also stores earlier charges, until these have at least limit
// tokens.
type exact struct {
	limit uint64
	per   time.Duration

	log   []charged // the oldest first
	first int       // index in log of the first charge in the window of the latest charge
	count uint64    // tokens from first on
	sum   wide      // tokens of all charges in log
}

type charged struct {
	at time.Duration
	n  uint64
}

// leaves returns when enough older tokens have left the window to make room for n more tokens. If there was room at the
// latest charge, it returns never, the instant before all others.
func (x *exact) leaves(n uint64) time.Duration {
	if x.count <= x.limit-n {
		return never
	}
	count := x.count
	for _, c := range x.log[x.first:] {
		if count -= c.n; count <= x.limit-n {
			return later(c.at, x.per)
		}
	}
	return never
}

func (x *exact) wait(at time.Duration, n uint64, _ bool) time.Duration {
	if n > x.limit {
		return Never
	}
	if leaves := x.leaves(n); leaves > at {
		return span(apart(at, leaves))
	}
	return 0
}

// charge adds a charge to the log. A count that does not fit becomes the largest number, which is an excess anyway.
func (x *exact) charge(at time.Duration, n uint64) (uint64, Window) {
	for ; x.first < len(x.log) && apart(x.log[x.first].at, at) >= uint64(x.per); x.first++ {
		x.count -= x.log[x.first].n
	}
	n = saturated(x.count, n) - x.count
	x.log = append(x.log, charged{at, n})
	x.count, x.sum = x.count+n, x.sum.plus(wide{low: n})
	for x.first > 0 && enough(x.sum, x.log[0].n, x.limit) {
		x.sum = x.sum.minus(wide{low: x.log[0].n})
		x.log, x.first = x.log[1:], x.first-1
	}
	return x.count - min(x.count, x.limit), Window{x.log[x.first].at, at, x.count}
}

func (x *exact) since(at time.Duration, n uint64) (counts, room time.Duration) {
	counts, spare := later(before(at, x.per), 1), x.limit-n
	for _, c := range slices.Backward(x.log) {
		if c.n > spare {
			return counts, later(c.at, x.per)
		}
		spare -= c.n
	}
	return counts, never
}

// The function before returns at - d, or the first instant if the difference does not fit.
func before(at, d time.Duration) time.Duration {
	if at < never+d {
		return never
	}
	return at - d
}

func saturated(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<64 - 1
}
