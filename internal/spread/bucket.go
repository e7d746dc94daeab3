package spread

import (
	"time"

	"github.com/weir-go/weir/internal/word"
)

// A Bucket is one token bucket that is spread over cells. Make it with [New]. Its methods may be called from any
// goroutine, and are lock-free, but for Replace, which one goroutine calls at a time. A cell is named by its number
// modulo [Bucket.Cells].
type Bucket struct {
	cells  []held
	mask   int
	clock  func() int64
	terms  [1 << planBits]word.Pointer[Terms]
	_      [128]byte // what every call reads is not on the lines that calls write
	shared word.Word // a state
	at     word.Word // about when the state was changed (S9)
	_      [128]byte
}

// A held is a cell. Processors fetch lines in pairs: no two cells are on the same pair. A refusal reads the word of
// every cell, so what only calls on its own processor write is on the other line.
type held struct {
	word word.Word // a cell
	_    [64 - 8]byte
	used word.Word // what was taken from the bucket for it, and since when: a hint (S8)
	seen word.Word // the shared word as it was met last, and when: for what is only told to people
	met  word.Int64
	_    [64 - 24]byte
}

// New returns a full bucket. cells is a power of two up to [MaxCells], the number for which the terms were made. The
// clock counts nanoseconds from any fixed origin, is never negative, and may be called from any goroutine.
func New(t *Terms, clock func() int64) *Bucket {
	b := &Bucket{clock: clock, mask: int(t.cells) - 1, cells: make([]held, t.cells)}
	b.terms[0].Store(t)
	nanos := clock()
	b.at.Store(uint64(nanos))
	b.shared.Store(t.Bucket.Ticks(nanos) & timeMask)
	return b
}

// Cells returns the number of cells.
func (b *Bucket) Cells() int { return b.mask + 1 }

// Terms returns the present terms.
func (b *Bucket) Terms() *Terms { return b.terms[state(b.shared.Load()).plan()].Load() }

// An Outcome is the answer to a request, with what it rests on.
type Outcome struct {
	Admitted bool
	Terms    *Terms
	Owed     uint64 // what the bucket owes, less what is known to be held, in ticks
	Nanos    int64  // the time of the answer
}

// Left returns how many tokens there are, and the time until the bucket is full.
func (o *Outcome) Left() (tokens uint64, reset time.Duration) {
	q := &o.Terms.Quota
	return o.Terms.Bucket.Left(o.Nanos, o.Owed, q.Tokens*q.Token, q.Token)
}

// Retry returns the time until there are n tokens, which are within the limit, if nothing else is taken.
func (o *Outcome) Retry(n uint64) time.Duration {
	q := &o.Terms.Quota
	need := o.Owed + n*q.Token
	return o.Terms.Bucket.Wait(o.Nanos, need-min(need, q.Tokens*q.Token))
}

// A view is what a call knows of the shared word. It has four fields: the compiler keeps no more in registers.
type view struct {
	state state
	terms *Terms
	nanos int64
	owed  uint64
}

// now returns the tick of the view.
func (v view) now() uint64 { return v.terms.Bucket.Ticks(v.nanos) }

// look returns the shared word, whose exchange is settled, and the time. It wakes a bucket that has rested (S9).
func (b *Bucket) look() (v view) {
	for {
		v.state = state(b.shared.Load())
		if !b.settle(v.state) {
			continue
		}
		v.terms = b.terms[v.state.plan()].Load() // S7
		v.nanos = b.clock()
		at := int64(b.at.Load())
		if v.nanos-at <= v.terms.quarter {
			v.owed = v.state.debt(v.now())
			return v
		}
		if b.shared.CompareAndSwap(uint64(v.state), uint64(v.state.next(v.now()))) { // S9
			b.at.CompareAndSwap(uint64(at), uint64(v.nanos))
		}
	}
}

// change makes the shared word one of a bucket that owes so much, if it is still what the view saw.
func (b *Bucket) change(v view, to state) bool {
	if at := int64(b.at.Load()); v.nanos-at > v.terms.quarter/4 {
		b.at.CompareAndSwap(uint64(at), uint64(v.nanos)) // S9
	}
	return b.shared.CompareAndSwap(uint64(v.state), uint64(to))
}
