package spread

import "github.com/weir-go/weir/atomicbucket"

// settle completes the exchange that made the state s, in the cell of this exchange (S2). If the shared word is no
// longer s, settle returns false.
func (b *Bucket) settle(s state) bool {
	number := s.cell()
	if number == 0 {
		return true
	}
	w := &b.cells[number-1].word
	c := cell(w.Load())
	if c.kind() == ready || c.parity() != s.parity() {
		return true
	}
	if state(b.shared.Load()) != s { // S2: c may be of a later exchange
		return false
	}
	w.CompareAndSwap(uint64(c), uint64(c.settled()))
	return true
}

// draw moves tokens from the bucket to an empty cell, and spends n of them. The bucket must have the tokens. If draw
// returns false, the call must start over.
func (b *Bucket) draw(v view, number int, c cell, tokens, n uint64) bool {
	h := &b.cells[number-1]
	x := c.begun(drawing, tokens)
	if !h.word.CompareAndSwap(uint64(c), uint64(x)) {
		return false
	}
	to := v.state.next(v.fullAfterTake(tokens, v.limit())).madeBy(number, x)
	if !b.change(v, to) {
		return false // the next call to take something out of the bucket here drops it (S3)
	}
	h.note(v.nanos, tokens)
	h.lastState.Store(uint64(to))
	h.readAt.Store(v.nanos)
	return h.word.CompareAndSwap(uint64(x), uint64(x.settled().spent(n)))
}

// giveBack returns the tokens of a ready cell to the bucket (S4). If giveBack returns false, the call must start over.
func (b *Bucket) giveBack(v view, number int, c cell) bool {
	x := c.begun(returning, c.tokens())
	return b.cells[number-1].word.CompareAndSwap(uint64(c), uint64(x)) && b.finish(v, number, x)
}

// finish makes the exchange of a cell that is returning its tokens. The caller must have read the cell after the shared
// word (S4).
func (b *Bucket) finish(v view, number int, x cell) bool {
	if !b.change(v, v.state.next(v.fullAfterRefund(x.tokens()*v.terms.Quota.Token)).madeBy(number, x)) {
		return false
	}
	h := &b.cells[number-1]
	h.count.Store(0)
	h.word.CompareAndSwap(uint64(x), uint64(x.settled()))
	return true
}

func (v view) limit() uint64 { return v.terms.Quota.Tokens * v.terms.Quota.Token }

// fullAfterTake returns the tick at which the bucket is full after a take of the given tokens. The argument limit is
// the largest debt, in ticks, that the bucket may have after the take.
func (v view) fullAfterTake(tokens, limit uint64) uint64 {
	q := v.terms.Quota
	now := v.now()
	full, _ := v.terms.Bucket.Take(bucketState(now, v.owed).Record(), now, atomicbucket.Demand{Cost: tokens * q.Token, Limit: limit, Token: q.Token})
	return full
}

// fullAfterRefund returns the tick at which the bucket is full after its debt was reduced by the given number of ticks.
func (v view) fullAfterRefund(ticks uint64) uint64 { return v.now() + v.owed - min(v.owed, ticks) }
