package shard

import (
	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// A neighbourhood is what is known of the keys of some homes beside their records, for refunds: R15.
type neighbourhood struct {
	// ends counts tenures that end by force, though something may be owed: a call adds endBegins before, and takes
	// endUnderway off after. So the low bits say how many calls are about to end one.
	ends word.Word
	// promised is the latest time that a reservation was told to wait for.
	promised word.Word
}

const (
	endUnderway  = 1
	endBegun     = 1 << 24 // above as many calls as there may be under way
	endBegins    = endBegun + endUnderway
	endsUnderway = endBegun - 1
)

// neighbourhoodHomes is how many homes share a neighbourhood: those of 256 slots, so that it takes no memory to speak
// of.
const neighbourhoodHomes = 64

// neighbourhood returns that of the place.
func (t *Table) neighbourhood(p Place) *neighbourhood {
	return &t.neighbourhoods[t.line(p)/neighbourhoodHomes]
}

// end ends the tenure of a key by a transition of its record, though something may be owed (R15).
func (t *Table) end(p Place, transition func() bool) bool {
	n := t.neighbourhood(p)
	n.ends.Add(endBegins) // before, and not after: else a refund could see the next tenure first
	done := transition()
	n.ends.Add(^uint64(endUnderway - 1)) // after
	return done
}

// Ends is what [Table.Ends] says.
type Ends struct{ word uint64 }

// begun returns how many have begun.
func (e Ends) begun() uint32 { return uint32(e.word / endBegun) }

// Ends returns what a call reads before a take for which it wants a receipt: how many tenures of keys near p have been
// ended by force.
func (t *Table) Ends(p Place) Ends { return Ends{t.neighbourhood(p).ends.Load()} }

// A Receipt identifies a take. The zero Receipt identifies none.
type Receipt struct {
	of   atomicbucket.Receipt
	ends uint32 // that had begun before the take
	plan uint32 // number of the plan that its record followed; 0: nothing is given back
}

// Receipt returns what identifies a take of n tokens in a tier that was admitted, for [Table.Refund]. ends is what
// [Table.Ends] returned before the take.
func (o Outcome) Receipt(n uint64, tier uint8, ends Ends) (r Receipt) {
	r.Enter(&o, n, TierQuota(tier), ends)
	return r
}

// Enter makes r what identifies a take, as [Outcome.Receipt] does, for any quota.
func (r *Receipt) Enter(o *Outcome, n uint64, q Quota, ends Ends) {
	plan := o.Plan
	token := plan.quotas[q.rest%MaxTiers].Token
	if !q.IsTier() {
		token = q.token // it has admitted something
	}
	demand := atomicbucket.Demand{Cost: n * token, Token: token}
	if plan.isBucket { // without an indirect call
		r.of = plan.bucket.Receipt(o.State, o.At, demand)
	} else {
		r.of = plan.algorithm.Receipt(o.State, o.At, demand)
	}
	r.ends, r.plan = ends.begun()+o.ended, plan.number // its own ends were before the take: R15
	if ends.word&endsUnderway != 0 {                   // the take may have been before the end that is under way: R15
		r.plan = 0
	}
}

// Less returns what identifies the take when n of its tokens have been given back, which left the record in a state.
func (r Receipt) Less(n uint64, after atomicbucket.State) Receipt {
	r.of = r.of.Less(n, after)
	return r
}

// void reports whether the record of the key at p may be of another tenure than the take that a receipt identifies, so
// that what it owes may be others'. plan is that which the record follows. The record was read before: R15.
func (t *Table) void(r Receipt, p Place, plan *Plan) bool {
	if !r.of.IsKnown() {
		return false
	}
	// A log's requests stay what they are when the plan is replaced.
	return r.plan == 0 || t.rings == nil && r.plan != plan.number ||
		t.Ends(p).begun() != r.ends
}

// promise enters that a reservation of a key near p has been told to wait until a time.
func (t *Table) promise(p Place, until int64) { raiseTo(&t.neighbourhood(p).promised, until) }

// lead enters that a request is granted at a time, if that is ahead of its clock, before it is (R15).
func (t *Table) lead(now, clock int64) {
	if now > clock {
		raiseTo(&t.leading, now)
	}
}

// raiseTo makes a word at least so late.
func raiseTo(w *word.Word, to int64) {
	for {
		old := w.Load()
		if int64(old) >= to || w.CompareAndSwap(old, uint64(to)) {
			return
		}
	}
}
