package check

import "time"

// A window counts until it ends. It begins with a request, or at a multiple of its length if it is aligned.
type window struct {
	limit   uint64
	per     time.Duration
	aligned bool

	start, end time.Duration // end is never before the first charge
	count      uint64
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
		if w.start, w.count = at, 0; w.aligned {
			w.start = floor(at, w.per)
		}
		w.end = later(w.start, w.per)
	}
	w.count = saturated(w.count, n)
	return w.count - min(w.count, w.limit), Window{w.start, at, w.count}
}

func (w *window) since(at time.Duration, _ uint64) (counts, room time.Duration) {
	if w.aligned {
		return floor(at, w.per), floor(at, w.per)
	}
	if at >= w.end {
		return at, w.end
	}
	return w.start, w.start
}

// An estimate counts in aligned windows. The window before the present one counts for the share of it that the last
// window covers.
type estimate struct {
	limit uint64
	per   time.Duration

	index             int64
	previous, current uint64
	start             time.Duration // of the present window
}

// in returns the counts at an instant, and how much of the window before counts.
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

// taken returns what is taken at an instant, with the share rounded up if strict.
func (e *estimate) taken(at time.Duration, strict bool) uint64 {
	is, share := e.in(at)
	before := product(is.previous, share)
	if strict {
		return saturated(is.current, before.upBy(uint64(e.per)))
	}
	return saturated(is.current, before.by(uint64(e.per)))
}

func (e *estimate) room(at time.Duration, n uint64, strict bool) bool {
	taken := e.taken(at, strict)
	return taken <= e.limit && n <= e.limit-taken
}

// wait searches: what is taken does not grow by waiting, and when two windows are over nothing is left of it.
func (e *estimate) wait(at time.Duration, n uint64, strict bool) time.Duration {
	if n > e.limit {
		return Never
	}
	if e.room(at, n, strict) {
		return 0
	}
	no, yes := at, later(floor(at, e.per), min(e.per, Never/2)*2)
	for apart(no, yes) > 1 {
		if middle := no + time.Duration(apart(no, yes)/2); e.room(middle, n, strict) {
			yes = middle
		} else {
			no = middle
		}
	}
	return span(apart(at, yes))
}

func (e *estimate) charge(at time.Duration, n uint64) (uint64, Window) {
	taken := saturated(e.taken(at, false), n)
	*e, _ = e.in(at)
	e.current = saturated(e.current, n)
	from := e.start
	if e.previous > 0 {
		from = before(e.start, e.per)
	}
	return taken - min(taken, e.limit), Window{from, at, saturated(e.previous, e.current)}
}

func (e *estimate) since(at time.Duration, n uint64) (counts, room time.Duration) {
	counts = before(floor(at, e.per), e.per)
	if e.previous == 0 && e.current == 0 {
		return counts, never
	}
	no, yes := max(counts, e.start, never+1)-1, at
	for apart(no, yes) > 1 { // from the window of the latest charge on, there is more and more room
		if middle := no + time.Duration(apart(no, yes)/2); e.room(middle, n, true) {
			yes = middle
		} else {
			no = middle
		}
	}
	return counts, yes
}

// An exact keeps what was charged in the last window.
type exact struct {
	limit uint64
	per   time.Duration

	log   []charged // the oldest first
	count uint64
}

type charged struct {
	at time.Duration
	n  uint64
}

// leaves returns the instant at which enough has left for n tokens, counted from the latest charge, and the first
// instant if there was room then.
func (x *exact) leaves(n uint64) time.Duration {
	if x.count <= x.limit-n {
		return never
	}
	count := x.count
	for _, c := range x.log {
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

// charge takes no more than the largest count holds: what is beyond is an excess in any case.
func (x *exact) charge(at time.Duration, n uint64) (uint64, Window) {
	i := 0
	for ; i < len(x.log) && apart(x.log[i].at, at) >= uint64(x.per); i++ {
		x.count -= x.log[i].n
	}
	n = saturated(x.count, n) - x.count
	x.log = append(x.log[i:], charged{at, n})
	x.count += n
	return x.count - min(x.count, x.limit), Window{x.log[0].at, at, x.count}
}

func (x *exact) since(at time.Duration, n uint64) (counts, room time.Duration) {
	return later(before(at, x.per), 1), x.leaves(n)
}

// before returns at - d, or the first instant.
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
