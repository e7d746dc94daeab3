package reference

import (
	"slices"
	"time"
)

// A Mark identifies a take. For a log, it has the instant of the take. For a window, it has the window's end or number.
// For a bucket, it has the time at which the bucket is full after the take, and the number of refunds before the take.
type Mark struct {
	at, place int64
	cost      uint64
	changes   uint64
}

// Mark returns the end of the window.
func (w *FixedWindow) Mark() Mark { return Mark{place: w.end} }

// GiveBack gives tokens back if the take was in the current window.
func (w *FixedWindow) GiveBack(nanos int64, mark Mark, n uint64) {
	if mark.place == w.end {
		w.Refund(nanos, n)
	}
}

// Mark returns the number of the window.
func (w *SlidingWindow) Mark() Mark { return Mark{place: w.index} }

// GiveBack gives tokens back to the window of the take, if this window is the current or the previous window.
func (w *SlidingWindow) GiveBack(nanos int64, mark Mark, n uint64) {
	*w = w.stateAt(nanos)
	switch mark.place {
	case w.index:
		w.current -= min(n, w.current)
	case w.index - 1:
		w.previous -= min(n, w.previous)
	}
}

// Mark returns the time of the newest take.
func (l *SlidingLog) Mark() Mark { return Mark{at: l.newest} }

// GiveBack removes tokens whose entries have the instant of the take.
func (l *SlidingLog) GiveBack(nanos int64, mark Mark, n uint64) {
	if l.isFull(nanos) {
		return
	}
	for i, e := range l.entriesInWindow(nanos) {
		if e.at == mark.at {
			part := min(n, e.n)
			l.entriesInWindow(nanos)[i].n -= part
			n -= part
		}
	}
	l.entries = slices.DeleteFunc(l.entries, func(e entry) bool { return e.n == 0 })
}

// Mark returns the number of the period in which tokens entered last.
func (c *Concurrency) Mark() Mark { return Mark{place: c.period} }

// GiveBack removes tokens that entered in the period of the take.
func (c *Concurrency) GiveBack(_ int64, mark Mark, n uint64) { c.Leave(mark.place, n) }

// An Owed is one key's token bucket in which a token is a whole number of ticks. It records the tick at which the
// bucket is full. It also records how often tokens of a take were given back after other calls had changed the bucket.
// A tick is a nanosecond or, in a bucket that is refilled in batches, a token.
type Owed struct {
	ticks        func(nanos int64) int64 // since 1970
	token, burst uint64                  // ticks
	full         int64                   // tick
	changes      uint64
	last         Mark
}

// NewOwed returns a full bucket. The argument token is the number of nanoseconds in which a token comes back.
func NewOwed(token, burst uint64) *Owed {
	return &Owed{ticks: func(nanos int64) int64 { return nanos }, token: token, burst: token * burst}
}

// NewOwedBatches returns a full bucket of batches. At every multiple of the interval, the bucket gets a number of
// tokens (refill) at once.
func NewOwedBatches(refill uint64, interval time.Duration, burst uint64) *Owed {
	return &Owed{ticks: func(nanos int64) int64 { return nanos / int64(interval) * int64(refill) }, token: 1, burst: burst}
}

// owed returns the tick of an instant, and the number of ticks from then until the bucket is full.
func (o *Owed) owed(nanos int64) (now int64, owed uint64) {
	now = o.ticks(nanos)
	return now, uint64(max(o.full-now, 0))
}

// Take takes n tokens if the bucket has them.
func (o *Owed) Take(nanos int64, n uint64) bool {
	now, owed := o.owed(nanos)
	if n > o.burst/o.token || owed+n*o.token > o.burst {
		return false
	}
	o.full = now + int64(owed+n*o.token)
	o.last = Mark{now, o.full, n * o.token, o.changes}
	return true
}

// Charge takes up to n whole tokens. It takes no token that would make the bucket owe more tokens than the number
// bound.
func (o *Owed) Charge(nanos int64, n, bound uint64) uint64 {
	now, owed := o.owed(nanos)
	maxDebt := bound * o.token
	charged := min(n, (maxDebt-min(owed, maxDebt))/o.token)
	if charged > 0 {
		o.full = now + int64(owed+charged*o.token)
	}
	return charged
}

// Remaining returns how many whole tokens are in the bucket.
func (o *Owed) Remaining(nanos int64) uint64 {
	_, owed := o.owed(nanos)
	return (o.burst - min(owed, o.burst)) / o.token
}

// Mark returns the mark of the last take. The mark has the tick and the cost of the take, the tick at which the bucket
// is full after the take, and the value of the field changes at the take.
func (o *Owed) Mark() Mark { return o.last }

// GiveBack gives back what the bucket still owes because of the take:
//
//   - If nothing was taken or given back since, the take becomes n tokens smaller.
//   - If tokens were only taken since, GiveBack gives back at most what the bucket would owe now without these later
//     takes.
//   - If tokens were also given back since, it gives back at most the cost of the take minus the time since the take.
func (o *Owed) GiveBack(nanos int64, mark Mark, n uint64) {
	now, owed := o.owed(nanos)
	refund := min(owed, n*o.token)
	switch {
	case o.changes == mark.changes && o.full == mark.place:
		o.full -= int64(n * o.token)
		return
	case o.changes == mark.changes:
		refund = min(refund, uint64(max(mark.place-now, 0)))
	default:
		refund = min(refund, mark.cost-min(mark.cost, uint64(now-mark.at)))
	}
	o.full, o.changes = now+int64(owed-refund), o.changes+1
}
