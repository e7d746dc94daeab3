package shard

import "github.com/weir-go/weir/atomicbucket"

// Adopt replaces the plan of a table that is not shared while it is used. clock returns the time. It is called before
// and after the moment at which the plan is replaced, by this call or by any other. Each key keeps the tokens that it
// has taken (R24). The new plan must be of the same algorithm as the old one; it must not be in use, and only one call
// of Adopt may be under way.
//
// Calls that are under way decide by the one plan or the other; when Adopt returns every
// record follows the new one. It takes some nanoseconds a slot.
func (t *Table) Adopt(plan *Plan, clock func() int64) {
	before := t.plan.Load()
	t.raise(t.catchUp(clock())) // records are converted at the watermark
	t.fence(before, plan)       // R7
	plan.live = atomicbucket.Live + atomicbucket.Second - before.live
	plan.number = max(before.number+1, 1) // R15
	if atomicbucket.SameUnits(before.algorithm, plan.algorithm) {
		plan.unit = before.unit
	}
	plan.follow(before, clock)
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
	plan, key := t.current(), sl.key.Load()
	token, known := t.price(sl, s)
	if plan.from == nil {
		sl.state.Free(s) // R20
		return false
	}
	payload, price := t.converted(plan, s, token, known, key, t.Watermark())
	if !t.offers(sl, s, price) { // R27
		return false
	}
	_, ok := sl.state.Convert(s, plan.live, payload)
	return ok
}

// converted returns the payload by a plan of a record that follows the one before, with its key word (R24), from an
// instant on, and its price. token is what its price was, if it is known.
func (t *Table) converted(
	plan *Plan, s atomicbucket.State, token uint64, known bool, key uint64, now int64,
) (payload, price uint64) {
	change := plan.changes[key&tierMask>>tierShift]
	if t.prices != nil {
		owed := plan.from.(*atomicbucket.TokenBucket).Debt(s.Record(), plan.from.Ticks(now))
		change, price = plan.repriced(change, token, owed, known)
	} else if t.buckets { // by quotas that were larger than every tier's limit, too: after the state
		change.Highest = max(change.Highest, plan.product(t.largest.Load(), change.Before))
	}
	if t.buckets {
		change.Latest, change.Promised = t.ahead(t.Find(key), now) // after the state: R15
		change.Latest = max(change.Latest, change.Promised, plan.since(now))
	}
	return plan.algorithm.Convert(plan.from, s, now, change), price
}

// since returns a time by a clock that was read when the plan was the present one: no request that was decided by the
// one before has a clock that was read later (R24). The first call that asks reads the clock.
func (p *Plan) since(now int64) int64 {
	if p.clock == nil {
		return now
	}
	if p.replaced.Load() == 0 {
		p.replaced.CompareAndSwap(0, uint64(max(p.clock(), 1)))
	}
	return max(now, int64(p.replaced.Load()))
}
