package spread

import (
	"math"

	"github.com/weir-go/weir/atomicbucket"
)

// Peek returns what Take would return, and takes nothing.
func (b *Bucket) Peek(n uint64) Outcome {
	for {
		v := b.look()
		held, settled := uint64(0), true
		for k := range b.cells {
			switch c := cell(b.cells[k].word.Load()); c.kind() {
			case ready:
				held += c.tokens()
			case returning:
				settled = false
				b.finish(v, k+1, c)
			}
		}
		if settled && state(b.shared.Load()) == v.state { // S6
			o := v.refusal(held)
			o.Admitted = n == 0 || n <= v.terms.Quota.Tokens && v.shortage(n) <= held*v.terms.Quota.Token
			return o
		}
	}
}

// Owed returns how many tokens were taken and have not come back, rounded up. Tokens in cells do not count as taken.
func (b *Bucket) Owed() uint64 {
	o := b.Peek(1)
	return (o.Owed + o.Terms.Quota.Token - 1) / o.Terms.Quota.Token
}

// Charge takes n tokens even if the bucket does not have them. If the debt would exceed the bound of the terms, it
// takes fewer. It returns how many tokens it took.
func (b *Bucket) Charge(n uint64) (charged uint64, o Outcome) {
	for {
		v := b.look()
		q := v.terms.Quota
		charged = min(n, (v.terms.maxDebt-min(v.owed, v.terms.maxDebt))/q.Token)
		if charged == 0 {
			return 0, v.admission(v.owed, 0)
		}
		full := v.fullAfterTake(charged, math.MaxUint64)
		if b.change(v, v.state.next(full)) {
			return charged, v.admission(full-v.now(), 0)
		}
	}
}

// Refund gives back n tokens that were taken at the time nanos: at most what has not come back with time since then
// (S10). The argument terms has the terms of the take. After a change of the terms, Refund gives nothing back. It also
// gives nothing back for a take that spent tokens of a cell before a change and read the terms after the change.
func (b *Bucket) Refund(n uint64, terms *Terms, nanos int64) {
	for {
		v := b.look()
		if v.terms != terms || nanos < terms.start.Load() {
			return
		}
		cost, passed := n*terms.Quota.Token, v.now()-min(v.now(), terms.Bucket.Ticks(nanos))
		if passed >= cost {
			return
		}
		if b.change(v, v.state.next(v.fullAfterRefund(cost-passed))) {
			return
		}
	}
}

// Reset makes the bucket full. Cells keep the tokens that they hold.
func (b *Bucket) Reset() {
	for {
		v := b.look()
		if b.change(v, v.state.next(v.now())) {
			return
		}
	}
}

// Replace changes the terms. The new terms must be for the same number of cells. The bucket owes as many tokens as
// before, up to the bound of the new terms. When Replace returns, all calls follow the new terms, and no cell holds
// more than the new terms allow. Calls of Replace must not overlap.
func (b *Bucket) Replace(t *Terms) {
	plan := state(b.shared.Load()).plan() + 1
	t.start.Store(b.clock()) // before any call can read them: S7
	b.terms[plan&planMask].Store(t)
	for {
		v := b.look()
		c := atomicbucket.Change{Before: v.terms.Quota.Token, After: t.Quota.Token}
		now := t.Bucket.Ticks(v.nanos)
		owed := t.Bucket.Convert(v.terms.Bucket, bucketState(v.now(), v.owed), v.nanos, c) - now
		t.start.Store(v.nanos) // S10
		if b.change(v, v.state.next(now+min(owed, t.maxDebt)).withPlan(plan)) {
			break
		}
	}
	b.drain() // S7
}

// drain returns the tokens of all cells to the bucket. For each cell, these are the tokens that the cell holds at some
// moment of the call.
func (b *Bucket) drain() {
	for k := range b.cells {
		for done := false; !done; {
			v := b.look()
			switch c := cell(b.cells[k].word.Load()); {
			case c.kind() == returning:
				done = b.finish(v, k+1, c)
			case c.kind() == drawing || c.tokens() == 0:
				done = true
			default:
				done = b.giveBack(v, k+1, c)
			}
		}
	}
}
