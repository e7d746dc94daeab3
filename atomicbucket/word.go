package atomicbucket

import "github.com/weir-go/weir/internal/word"

// A Word is a state word in memory. Its methods are the transitions of the state
// diagram in the package comment. Each transition that others may race for takes
// the state it starts from and reports whether it was this call that
// took it; on false nothing was written. The zero Word is a slot that was
// never used.
type Word struct{ w word.Word }

// Load returns the state.
func (w *Word) Load() State { return State(w.w.Load()) }

// Claim takes the slot for a new tenure: version+1, CLAIM, and in the payload who claims. The caller has a reason why
// from may be taken: it was never used, is free, is idle, or is being evicted.
func (w *Word) Claim(from State, claimant uint64) (State, bool) {
	to := NewState(Claimed, from.Version()+1, claimant)
	return to, w.w.CompareAndSwap(uint64(from), uint64(to))
}

// Publish makes the claimed slot visible to other takers of its key. The key
// word has been written before. Only the claimer may call it, and no other goroutine
// writes a slot in CLAIM, so it is a plain store.
func (w *Word) Publish(from State) State {
	to := from.with(Tentative, 0)
	w.w.Store(uint64(to))
	return to
}

// Abandon frees a claimed slot whose claimer is dead: no goroutine will publish a record there.
func (w *Word) Abandon(from State) bool {
	return w.w.CompareAndSwap(uint64(from), uint64(from.with(Free, 0)))
}

// Commit decides that the tentative record is the key's only one, with
// payload as its bucket after the caller's take. Because the take is in the
// commit, exactly one goroutine is admitted by it, whichever claimed the slot.
// live is Live or Second.
func (w *Word) Commit(from State, live Tag, payload uint64) (State, bool) {
	to := from.with(live, payload)
	return to, w.w.CompareAndSwap(uint64(from), uint64(to))
}

// Abort decides that the tentative record is not the key's only one, or that the call that
// is about to commit it shall begin again. Nothing was charged to it. The name covers an abort
// by its claimer, a kill by another taker of the key, and an abort by a sweep or a change of plan: the
// transition is the same.
func (w *Word) Abort(from State) bool {
	return w.w.CompareAndSwap(uint64(from), uint64(from.with(Free, 0)))
}

// Move changes the bucket of a live record within its tenure.
func (w *Word) Move(from State, payload uint64) (State, bool) {
	to := from.moved(payload)
	return to, w.w.CompareAndSwap(uint64(from), uint64(to))
}

// Convert changes which of two plans a live record follows, and its bucket with it; or the bucket alone, in a refund.
// It changes the version, because the record may come back to what it was to the bit: when a plan is changed and
// changed back, or when something is taken and given back.
func (w *Word) Convert(from State, live Tag, payload uint64) (State, bool) {
	to := NewState(live, from.Version()+1, payload)
	return to, w.w.CompareAndSwap(uint64(from), uint64(to))
}

// Free ends the tenure of a live record without starting another.
func (w *Word) Free(from State) bool {
	return w.w.CompareAndSwap(uint64(from), uint64(from.with(Free, 0)))
}
