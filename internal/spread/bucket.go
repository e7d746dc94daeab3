package spread

import (
	"time"

	"github.com/weir-go/weir/internal/word"
)

// A Bucket is one token bucket that is spread over cells. Make it with [New]. Its methods are lock-free and safe for
// concurrent use, but calls of Replace must not overlap. The number of a cell may be any number: it counts modulo
// [Bucket.Cells].
type Bucket struct {
	cells     []holder
	mask      int
	clock     func() int64
	terms     [1 << planBits]word.Pointer[Terms]
	_         [128]byte // separates the fields above, which every call reads, from the cache lines that calls write
	shared    word.Word // a state
	changedAt word.Word // the approximate time of the last change of shared (S9)
	_         [128]byte
}

// A holder has a cell and notes about the cell. Processors fetch cache lines in pairs, so no two cells share a pair of
// lines. A refusal reads the word of every cell. The notes are on the other line of the pair, because only calls on the
// cell's own processor write them.
type holder struct {
	word      word.Word // a cell
	_         [64 - 8]byte
	count     word.Word  // a hint: the tokens taken from the bucket for the cell, and since when (S8)
	lastState word.Word  // the shared word when it was last read: only for information in answers
	readAt    word.Int64 // the time of that read
	_         [64 - 24]byte
}

// New returns a full bucket. The terms define the number of cells. The clock counts nanoseconds from any fixed origin,
// is never negative, and must be safe for concurrent use.
func New(t *Terms, clock func() int64) *Bucket {
	b := &Bucket{clock: clock, mask: int(t.cells) - 1, cells: make([]holder, t.cells)}
	b.terms[0].Store(t)
	nanos := clock()
	b.changedAt.Store(uint64(nanos))
	b.shared.Store(t.Bucket.Ticks(nanos) & timeMask)
	return b
}

// Cells returns the number of cells.
func (b *Bucket) Cells() int { return b.mask + 1 }

// Terms returns the current terms.
func (b *Bucket) Terms() *Terms { return b.terms[state(b.shared.Load()).plan()].Load() }

// An Outcome is the answer to a request, with the numbers on which it is based.
type Outcome struct {
	Admitted bool
	Terms    *Terms
	Owed     uint64 // what the bucket owes minus the tokens known to be in cells, in ticks
	Nanos    int64  // the time of the answer
}

// Left returns how many tokens are left, and the time until the bucket is full.
func (o *Outcome) Left() (tokens uint64, reset time.Duration) {
	q := &o.Terms.Quota
	return o.Terms.Bucket.Left(o.Nanos, o.Owed, q.Tokens*q.Token, q.Token)
}

// Retry returns the time until n tokens are available, if no other tokens are taken. The number n must be within the
// limit.
func (o *Outcome) Retry(n uint64) time.Duration {
	q := &o.Terms.Quota
	need := o.Owed + n*q.Token
	return o.Terms.Bucket.Wait(o.Nanos, need-min(need, q.Tokens*q.Token))
}

// A view has what a call knows about the shared word. A view has only four fields, because the compiler does not keep
// larger structs in registers.
type view struct {
	state state
	terms *Terms
	nanos int64
	owed  uint64
}

func (v view) now() uint64 { return v.terms.Bucket.Ticks(v.nanos) }

// look settles the exchange that the shared word names. It returns the word and the time. If the bucket was idle for a
// long time, look wakes it (S9).
func (b *Bucket) look() (v view) {
	for {
		v.state = state(b.shared.Load())
		if !b.settle(v.state) {
			continue
		}
		v.terms = b.terms[v.state.plan()].Load() // S7
		v.nanos = b.clock()
		changedAt := int64(b.changedAt.Load())
		if v.nanos-changedAt <= v.terms.quarter {
			v.owed = v.state.debt(v.now())
			return v
		}
		if b.shared.CompareAndSwap(uint64(v.state), uint64(v.state.next(v.now()))) { // S9
			b.changedAt.CompareAndSwap(uint64(changedAt), uint64(v.nanos))
		}
	}
}

// change sets the shared word to a state, if the word is still the word that the view saw.
func (b *Bucket) change(v view, to state) bool {
	if changedAt := int64(b.changedAt.Load()); v.nanos-changedAt > v.terms.quarter/4 {
		b.changedAt.CompareAndSwap(uint64(changedAt), uint64(v.nanos)) // S9
	}
	return b.shared.CompareAndSwap(uint64(v.state), uint64(to))
}
