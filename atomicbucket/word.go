package atomicbucket

import "github.com/weir-go/weir/internal/word"

// A Word is a state word in memory. Its methods are the transitions of the state diagram in the package comment. Calls
// may compete for most transitions. The method of such a transition takes the state from which it starts, and reports
// whether this call made the transition. If not, the call wrote nothing. The zero Word is a slot that was never used.
type Word struct{ w word.Word }

// Load returns the state.
func (w *Word) Load() State { return State(w.w.Load()) }

// Claim takes the slot for a new tenure, with the next version and the claimant's number as payload. The caller must
// know that the slot may be claimed: it was never used, is free, is idle, or is being evicted.
func (w *Word) Claim(from State, claimant uint64) (State, bool) {
	to := NewState(Claimed, from.Version()+1, claimant)
	return to, w.w.CompareAndSwap(uint64(from), uint64(to))
}

// Publish makes the claimed slot visible to other calls for its key. The key word must have been written before. Only
// the claimer may call it. A plain store is enough, because no other goroutine writes a slot in CLAIM.
func (w *Word) Publish(from State) State {
	to := from.with(Tentative, 0)
	w.w.Store(uint64(to))
	return to
}

// Abandon frees a claimed slot whose claimer is dead, because no goroutine will publish a record in this slot.
func (w *Word) Abandon(from State) bool {
	return w.w.CompareAndSwap(uint64(from), uint64(from.with(Free, 0)))
}

// Commit decides that the tentative record is the key's only one. The parameter payload is the bucket after the
// caller's take, so the commit admits exactly one call, whichever call claimed the slot. The new tag (live) is Live
// or Second.
func (w *Word) Commit(from State, live Tag, payload uint64) (State, bool) {
	to := from.with(live, payload)
	return to, w.w.CompareAndSwap(uint64(from), uint64(to))
}

// Abort frees the slot of a tentative record. Either the record is not the key's only one, or the call that is about to
// commit it must start over. Nothing was charged to the record. The claimer, another call for the key, a sweep or a
// change of plan may make this transition.
func (w *Word) Abort(from State) bool {
	return w.w.CompareAndSwap(uint64(from), uint64(from.with(Free, 0)))
}

// Move changes the bucket of a live record within its tenure.
func (w *Word) Move(from State, payload uint64) (State, bool) {
	to := from.moved(payload)
	return to, w.w.CompareAndSwap(uint64(from), uint64(to))
}

// Convert changes the bucket of a live record and, except for a refund, which of two plans the record follows. It also
// changes the version. Otherwise the record could return to exactly an earlier state, if a plan is changed and changed
// back, or if tokens are taken and given back.
func (w *Word) Convert(from State, live Tag, payload uint64) (State, bool) {
	to := NewState(live, from.Version()+1, payload)
	return to, w.w.CompareAndSwap(uint64(from), uint64(to))
}

// Free ends the tenure of a live record without starting another.
func (w *Word) Free(from State) bool {
	return w.w.CompareAndSwap(uint64(from), uint64(from.with(Free, 0)))
}
