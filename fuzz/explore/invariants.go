//go:build explore

package explore

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/shard"
)

func (w *world) checkSlots() error {
	owned, calls := 0, 0
	var live [16]uint64
	labels := live[:0]
	for i := range w.slots {
		s, label := atomicbucket.State(w.words[2*i].Peek()), w.words[2*i+1].Peek()&^shard.TierMask
		if tag := s.Tag(); tag == atomicbucket.Claimed || tag == atomicbucket.Tentative {
			owned++
		}
		if !s.IsLive() {
			continue
		}
		for _, other := range labels {
			if other == label {
				return fmt.Errorf("I3: key %d has two live records", label)
			}
		}
		labels = append(labels, label)
		full := w.shadow.payload(w.shadow.recordPlan(s), w.shadow.owner(label).full)
		if w.shadow.limited == 0 && s.Payload() != full {
			return fmt.Errorf("I2: the record of key %d says %#x, want %#x", label, s.Payload(), full)
		}
	}
	for _, th := range w.threads {
		calls += int(1 - interleave.Bit(th.finished()))
	}
	if owned > calls {
		return fmt.Errorf("I5: %d slots are in CLAIM or TENT, and %d calls are under way", owned, calls)
	}
	return nil
}

// checkProbeBounds checks that every live record is within its probe bound, so that searches find it.
func (w *world) checkProbeBounds() error {
	if key, beyond := w.table.BeyondProbeBound(); beyond {
		return fmt.Errorf("R11: the record of key %d lies beyond the probe bound of its home", key)
	}
	return nil
}

func (w *world) checkCall(th *thread, o outcome) error {
	c := th.call()
	if o.plan != nil && o.state.IsLive() && o.state.Tag() != o.plan.Live() {
		return fmt.Errorf("R9: %v returned a record that follows another plan", c)
	}
	// A refund that finds no record reports a full bucket, so its key must owe nothing, as for a peek without a record.
	if c.verb == peek || c.verb == refund && o.verdict != shard.Admitted {
		observed := sight{o.at, w.shadow.tokens(o.plan, w.shadow.debt(o.plan, o.state, o.at))}
		if w.shadow.limited > 0 {
			observed.owed = o.used
		}
		if !slices.Contains(th.sights, observed) {
			return fmt.Errorf("I9: %v saw a debt of %d tokens at %d, which it never had meanwhile", c, observed.owed, observed.at-start)
		}
	}
	if c.verb == cancel && w.shadow.inFlight && th.charged == 0 {
		key := w.shadow.owner(c.key)
		if slices.Contains(key.times, th.entered) && w.shadow.leaveTime(th.entered) > uint64(o.at) {
			return fmt.Errorf("I2: %v gave nothing back, and its entry is in flight", c)
		}
	}
	if c.verb == charge && o.verdict <= shard.Admitted {
		if o.used != th.amount || th.charged > 1 {
			return fmt.Errorf("I2: %v said that it took %d, and took %d in %d writes", c, o.used, th.amount, th.charged)
		}
		if o.used == 0 && !th.refusable {
			return fmt.Errorf("I9: %v took nothing, and at no moment meanwhile was there no room", c)
		}
		return nil
	}
	if c.verb == take && (o.verdict == shard.Refused || o.verdict == shard.TooMuch) &&
		w.shadow.refusals != shard.Nothing && th.charged == 1 {
		if th.amount == 0 {
			return fmt.Errorf("I2: %v was refused and charged what would have admitted it", c)
		}
		return nil // the charge was made in the same step as the refusal, and shadow.charge has checked it
	}
	if c.verb == upTo && o.verdict == shard.Admitted {
		if o.used != th.amount || th.charged != 1 {
			return fmt.Errorf("I2: %v said that it took %d, and took %d in %d writes", c, o.used, th.amount, th.charged)
		}
		return nil
	}
	if c.verb != take && c.verb != reserve && c.verb != charge && c.verb != upTo {
		return nil
	}
	switch o.verdict {
	case shard.Admitted:
		if th.charged != 1 || th.amount > 0 {
			return fmt.Errorf("I2: %v was admitted and charged %d times", c, th.charged)
		}
		return nil
	case shard.Refused:
		if c.wantsRetry && o.atOnce {
			return fmt.Errorf("I9: %v was refused with a wait of 0", c)
		}
		if !th.refusable {
			return fmt.Errorf("I9: %v was refused, and at no moment meanwhile had its bucket less", c)
		}
	case shard.NoRoom:
		w.shadow.noRoom++
		if free := w.scenario.probeWindow - bits.OnesCount64(th.ownedSlots); w.watchesRoom() && free > 0 {
			return fmt.Errorf("I9: %v found no room, and %d slots were free all the time", c, free)
		}
	case shard.Unrecorded:
		w.shadow.unrecorded++
	}
	if th.charged > 0 {
		return fmt.Errorf("I4: %v was refused and wrote a bucket", c)
	}
	// A call that loses the race to insert a record may already have claimed a slot.
	if th.wrote && !th.disturbed {
		return fmt.Errorf("I4: %v was refused and wrote a slot, though it was alone", c)
	}
	return nil
}

// CheckEnd checks the world when every thread has finished.
func (w *world) CheckEnd() error {
	died := w.scenario.mortal && w.threads[0].dead
	if err := w.checkDead(); err != nil {
		return err
	}
	stats := w.table.Stats()
	counted := counts{
		evictions:  stats.Evictions - w.stats.Evictions + w.origin.counts.evictions,
		forgiven:   stats.Forgiven - w.stats.Forgiven + w.origin.counts.forgiven,
		noRoom:     stats.NoRoom - w.stats.NoRoom + w.origin.counts.noRoom,
		unrecorded: stats.Unrecorded - w.stats.Unrecorded + w.origin.counts.unrecorded,
		forgotten:  stats.Forgotten - w.stats.Forgotten + w.origin.counts.forgotten,
	}
	if counted != w.shadow.counts && !died { // a process may die before it counts
		return fmt.Errorf("I7: counted %+v, want %+v", counted, w.shadow.counts)
	}
	// Every search at the end must find the record of its key.
	for i := range w.slots {
		if s := atomicbucket.State(w.words[2*i].Peek()); s.IsLive() && s.Tag() != w.table.Plan().Live() {
			return fmt.Errorf("R9: slot %d is %v at the end, and follows a plan that is not the present one", i, s)
		}
	}
	for i := range w.shadow.keys {
		key := &w.shadow.keys[i]
		if w.shadow.limited > 0 {
			end := w.table.Watermark()
			for _, program := range w.scenario.threads {
				for _, c := range program {
					end = max(end, c.now())
				}
			}
			peekTimes := []int64{end}
			if w.cancels { // also peek at the times at which a request leaves the window
				for _, at := range key.times {
					leaves := int64(w.shadow.leaveTime(at))
					peekTimes = append(peekTimes, max(end, leaves-1), max(end, leaves))
				}
			}
			for _, at := range peekTimes {
				o := peeks(key.key).at(at-start).perform(w.table, w.plans, nil, nil)
				if used := w.shadow.reportedUse(key, uint64(at)); o.used != used {
					return fmt.Errorf("I2: key %d has used up %d at %d, want %d", key.key, o.used, at-start, used)
				}
			}
			continue
		}
		o, _ := w.table.Peek(w.table.Find(key.key), w.table.Watermark(), 0, 0)
		owed := w.shadow.owes(key.key, w.shadow.algorithm.Ticks(o.At))
		if found := w.shadow.debt(o.Plan, o.State, o.At); found != owed {
			return fmt.Errorf("I2: key %d owes %d ticks at the end, want %d (full at %d)", key.key, found, owed, key.full)
		}
	}
	if w.cancels {
		return w.shadow.checkGrants()
	}
	if died { // the tokens that the dead process asked for may or may not be taken
		return nil
	}
	return w.checkExact()
}

// checkExact checks scenarios in which clocks stand still and nothing is forgotten. All requested tokens of a key must
// then be admitted, up to the burst. checkExact compares only debts, because checkSlots has compared the debts with
// admissions.
func (w *world) checkExact() error {
	requested, refused := make([]uint64, len(w.shadow.keys)), w.shadow.noRoom
	for i, key := range w.origin.keys {
		if key.full > start {
			requested[i] = w.shadow.algorithm.Tokens(key.full - start)
		}
	}
	for _, program := range w.scenario.threads {
		for _, c := range program {
			if c.late != 0 || c.verb == reset || c.verb == refund || c.verb == adopt || c.verb == reserve ||
				c.verb == charge || c.verb == upTo || w.shadow.refusals != shard.Nothing || c.verb == take && (c.n != 1 || c.limit > 0) {
				return nil
			}
			if c.verb == take {
				requested[w.position(c.key)]++
			}
		}
	}
	if w.shadow.evictions+w.shadow.unrecorded > 0 || w.shadow.round > 0 || w.shadow.limited > 0 {
		return nil
	}
	for i, key := range w.shadow.keys {
		want := min(requested[i], w.shadow.algorithm.Quota().Tokens)
		got := w.shadow.algorithm.Tokens(w.shadow.owes(key.key, w.shadow.algorithm.Ticks(start)))
		if got > want || got+refused < want {
			return fmt.Errorf("I1: key %d was admitted %d times, want %d", key.key, got, want)
		}
	}
	return nil
}

func (w *world) position(key uint64) int {
	return slices.IndexFunc(w.shadow.keys, func(o owner) bool { return o.key == key })
}
