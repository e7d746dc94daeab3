package shard

import "github.com/weir-go/weir/atomicbucket"

// Adopt replaces the plan of a table that is not shared, at the time now, while it is used. Records keep the
// share of their limit that is used up: if half of it is, half of the new one is. The new plan must be of the same
// algorithm as the old one; it must not be in use, and only one call of Adopt may be under way.
//
// Calls that are under way decide by the one plan or the other; when Adopt returns every
// record follows the new one. It takes some nanoseconds a slot.
func (t *Table) Adopt(plan *Plan, now int64) {
	before := t.plan.Load()
	t.raise(t.catchUp(now)) // records are converted at the watermark
	t.fence(before, plan)   // R7
	plan.live = atomicbucket.Live + atomicbucket.Second - before.live
	plan.dither = before.dither + goldenRatio
	plan.number = max(before.number+1, 1) // R15
	if atomicbucket.SameUnits(before.algorithm, plan.algorithm) {
		plan.unit = before.unit
	}
	plan.from = before.algorithm
	t.plan.Store(plan)
	t.adoptAll()
	t.pace.Store(plan.skew)
}

// adoptAll makes every slot follow the present plan, or one after it.
func (t *Table) adoptAll() {
	for slots := range t.memory.marked() { // R12
		for i := range slots {
			t.adopt(&slots[i])
		}
	}
}

// goldenRatio is 2^32 times the golden ratio less one. Its multiples, modulo 2^32, are spread evenly: those of any of
// its multiples, too, so that changes to and fro do not all round to the same side.
const goldenRatio = 0x9e37_79b9

// adopt makes a slot follow the present plan: R9.
func (t *Table) adopt(sl *slot) {
	for {
		s := sl.state.Load()
		switch {
		case s.IsLive():
			if s.Tag() == t.current().live || t.convert(sl, s) {
				return
			}
		case s.Tag() == atomicbucket.Tentative:
			// A call that is about to commit it may have read the plan before. It will begin again.
			if sl.state.Abort(s) {
				return
			}
		default:
			return
		}
	}
}

// convert makes a live record follow the present plan, by the plan before. It is called with a state that did not
// follow the plan which was read after it, and reports whether it was this call that converted the record. If another
// replacement has begun since the state was read, the one before has ended and has converted the record, or it was
// changed otherwise (R9). Then the numbers of s may be of neither plan, and the compare-and-swap fails.
func (t *Table) convert(sl *slot, s atomicbucket.State) bool {
	plan := t.current()
	if plan.from == nil {
		sl.state.Free(s) // R20
		return false
	}
	payload := plan.algorithm.Convert(plan.from, s, t.Watermark(), plan.dither)
	_, ok := sl.state.Convert(s, plan.live, payload)
	return ok
}
