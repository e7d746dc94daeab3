package shard

import (
	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// A neighbourhood has the words for refunds that the keys of a group of homes share (R15).
type neighbourhood struct {
	// ends counts the forced ends of tenures whose keys may still owe something. A call adds endBegins before it ends a
	// tenure, and subtracts endUnderway after that. So the low bits count the ends under way, and the high bits count
	// all ends that have begun.
	ends word.Word
	// promised is the latest time at which a reservation is due.
	promised word.Word
}

const (
	endUnderway  = 1
	endBegun     = 1 << 24 // more than the number of calls that can be under way
	endBegins    = endBegun + endUnderway
	endsUnderway = endBegun - 1
)

// neighbourhoodHomes is how many homes share a neighbourhood: those of 256 slots, so that neighbourhoods take little
// memory.
const neighbourhoodHomes = 64

func (t *Table) neighbourhood(p Place) *neighbourhood {
	return &t.neighbourhoods[t.line(p)/neighbourhoodHomes]
}

// forceEnd ends the tenure of a key by a transition of its record, although the key may still owe something (R15).
func (t *Table) forceEnd(p Place, transition func() bool) bool {
	n := t.neighbourhood(p)
	n.ends.Add(endBegins) // before, and not after: else a refund could see the next tenure first
	done := transition()
	n.ends.Add(^uint64(endUnderway - 1)) // after
	return done
}

// Ends is the result of [Table.Ends].
type Ends struct{ word uint64 }

func (e Ends) countBegun() uint32 { return uint32(e.word / endBegun) }

// Ends returns how many tenures of keys near p have been ended by force. A call reads it before a take for which it
// wants a receipt.
func (t *Table) Ends(p Place) Ends { return Ends{t.neighbourhood(p).ends.Load()} }

// A Receipt identifies a take. The zero Receipt identifies none. A take only copies data into its receipt and leaves
// the rest to the refund, because most receipts are never used.
type Receipt struct {
	plan   *Plan              // the plan that the record followed; nil: no take
	after  atomicbucket.State // the record after the take, without what was given back since: see State.Less
	at     int64
	n      uint64 // tokens that have not been given back
	quota  Quota
	ends   uint32 // forced ends that had begun before the take, or the useNumber of its entry (R26)
	number uint32 // the number of the plan at the take; 0: the receipt is void
}

// Receipt returns the receipt of an admitted take of n tokens in a tier, for [Table.Refund]. The caller has read ends
// by [Table.Ends] before the take.
func (o Outcome) Receipt(n uint64, tier uint8, ends Ends) (r Receipt) {
	r.Enter(&o, n, TierQuota(tier), ends)
	return r
}

// Enter sets r to the receipt of an admitted take. It does what [Outcome.Receipt] does, for any quota.
func (r *Receipt) Enter(o *Outcome, n uint64, q Quota, ends Ends) {
	r.plan, r.after, r.at, r.n, r.quota = o.Plan, o.State, o.At, n, q
	r.ends, r.number = ends.countBegun()+o.ended, o.Plan.number // the ends by the call itself came before its take: R15
	if ends.word&endsUnderway != 0 {                            // the end under way may come after the take: R15
		r.number = 0
	}
}

// EnterNone sets r to a receipt for n tokens that identifies no take.
func (r *Receipt) EnterNone(n uint64, q Quota) { r.plan, r.n, r.quota = nil, n, q }

// IsKnown reports whether the receipt identifies a take.
func (r *Receipt) IsKnown() bool { return r.plan != nil }

// Tokens returns how many tokens of the take have not been given back.
func (r *Receipt) Tokens() uint64 { return r.n }

// Quota returns the quota that the take was under.
func (r *Receipt) Quota() Quota { return r.quota }

func (r *Receipt) token() uint64 {
	if r.quota.IsTier() {
		return r.plan.quotas[r.quota.packed%MaxTiers].Token
	}
	return r.quota.token // such a quota has admitted the take, so it has a price
}

// sameVersion reports whether the receipt identifies a take, and s has the version that the record had after it.
func (r *Receipt) sameVersion(s atomicbucket.State) bool {
	return r.plan != nil && r.after.Version() == s.Version()
}

// algorithmReceipt converts the receipt to the form that the take's algorithm uses.
func (r *Receipt) algorithmReceipt() atomicbucket.Receipt {
	switch {
	case r.plan == nil:
		return atomicbucket.Receipt{}
	case r.plan.isBucket: // without an indirect call
		return r.plan.bucket.Receipt(r.after, r.at, r.n*r.token())
	}
	return r.plan.algorithm.Receipt(r.after, r.at, r.n*r.token())
}

// Less removes n tokens, which have been given back, from the receipt. The parameter after is the record after that
// refund.
func (r *Receipt) Less(n uint64, after atomicbucket.State) {
	r.n -= n
	switch {
	case r.plan == nil: // of no take
	case r.plan.isBucket:
		r.after = r.after.Less(n*r.token(), after)
	default:
		r.after = r.after.Less(0, after)
	}
}

// isVoid reports whether the record of the key at p may belong to another tenure than the receipt's take. The debt of
// such a record may come from other takes. The parameter plan is the plan that the record follows. The caller has read
// the record before (R15).
func (t *Table) isVoid(r *Receipt, p Place, plan *Plan) bool {
	if r.plan == nil {
		return false
	}
	// A replacement of the plan does not change a log's requests.
	return r.number == 0 || (t.rings == nil || t.buckets) && r.number != plan.number ||
		t.Ends(p).countBegun() != r.ends
}

// recordPromise records that a reservation of a key near p is due at the time until.
func (t *Table) recordPromise(p Place, until int64) { raiseWord(&t.neighbourhood(p).promised, until) }

// recordLead records that a request is granted at the time now, if that is ahead of its clock. It is called before the
// grant (R15).
func (t *Table) recordLead(now, clock int64) {
	if now > clock {
		raiseWord(&t.leading, now)
	}
}

// raiseWord raises a word to a time, unless the word already has that time or a later one.
func raiseWord(w *word.Word, to int64) {
	for {
		old := w.Load()
		if int64(old) >= to || w.CompareAndSwap(old, uint64(to)) {
			return
		}
	}
}
