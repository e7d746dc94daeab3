package shard

import "github.com/weir-go/weir/atomicbucket"

// Adopt replaces the plan of a table that is not shared, while the table is in use. The tokens that a key has taken
// still count (R24). Concurrent calls decide by one plan or the other. When Adopt returns, every record follows the new
// plan. Adopt takes some nanoseconds per slot.
//
// The function clock returns the time. It is called before and after the plan is replaced, by this call or by
// concurrent calls. The new plan must have the algorithm of the old plan, and must not be in use. Calls of Adopt must
// not overlap.
func (t *Table) Adopt(plan *Plan, clock func() int64) {
	before := t.plan.Load()
	t.raise(t.catchUp(clock())) // records are converted at the watermark
	t.fence(before, plan)       // R7
	plan.live = atomicbucket.Live + atomicbucket.Second - before.live
	plan.number = max(before.number+1, 1) // R15
	if atomicbucket.SameUnits(before.algorithm, plan.algorithm) {
		plan.unit = before.unit
	}
	plan.takeOver(before, clock)
	t.plan.Store(plan)
	t.adoptAll()
	if plan.hasNewGrid {
		raiseWord(&t.realigned, t.Watermark())
	}
	t.pace.Store(plan.skew)
}

func (t *Table) adoptAll() {
	for slots := range t.memory.markedPages() { // R12
		for i := range slots {
			t.adopt(&slots[i])
		}
	}
}

// adopt makes a slot follow the current plan (R9).
func (t *Table) adopt(sl *slot) {
	for {
		s := sl.state.Load()
		switch {
		case s.IsLive():
			if s.Tag() == t.current().live || t.convert(sl, s) {
				return
			}
		case s.Tag() == atomicbucket.Tentative:
			// The call that is about to commit this record may have read the previous plan. It will start over.
			if sl.state.Abort(s) {
				return
			}
		default:
			return
		}
	}
}

// convert makes a live record follow the current plan, and reports whether it did. The caller has read the state s, and
// then a plan that s does not follow. If the plan was replaced again since, s may follow neither plan. Then s is
// outdated (R9), so the compare-and-swap fails.
func (t *Table) convert(sl *slot, s atomicbucket.State) bool {
	plan, key := t.current(), sl.key.Load()
	token, hasPrice := t.price(sl, s)
	if plan.from == nil {
		sl.state.Free(s) // R20
		return false
	}
	payload, price := t.convertedRecord(plan, s, token, hasPrice, key, t.Watermark())
	if !t.offerPrice(sl, s, price) { // R27
		return false
	}
	_, ok := sl.state.Convert(s, plan.live, payload)
	return ok
}

// convertedRecord computes how a record of the previous plan continues under the given plan, from the time now on. It
// returns the record's payload and price. The parameter key is the record's key word (R24). The parameter token is the
// record's previous price, if hasPrice is true.
func (t *Table) convertedRecord(
	plan *Plan, s atomicbucket.State, token uint64, hasPrice bool, key uint64, now int64,
) (payload, price uint64) {
	change := plan.changes[key&tierMask>>tierShift]
	if t.prices != nil {
		owed := plan.from.(*atomicbucket.TokenBucket).Debt(s.Record(), plan.from.Ticks(now))
		change, price = plan.changeOf(change, token, owed, hasPrice)
	} else if t.buckets { // quotas may have been larger than every tier's limit; this is read after the state
		change.Highest = max(change.Highest, plan.product(t.largest.Load(), change.Before))
	} else if t.largest.Load() > 0 { // the limit of a quota may be 1; this is read after the state
		change.Lowest = min(change.Lowest, 1)
	}
	change.Latest, change.Promised = t.latestTimes(t.Find(key), now) // after the state: R15
	change.Latest = max(change.Latest, change.Promised, plan.takeoverTime(now))
	return plan.algorithm.Convert(plan.from, s, now, change), price
}

// takeoverTime returns a time of the clock that was read while the plan p was current, or now if that is later. So no
// request that the previous plan decided has read a later time (R24). The first call reads the clock.
func (p *Plan) takeoverTime(now int64) int64 {
	if p.clock == nil {
		return now
	}
	if p.takeover.Load() == 0 {
		p.takeover.CompareAndSwap(0, uint64(max(p.clock(), 1)))
	}
	return max(now, int64(p.takeover.Load()))
}
