package shard

import (
	"math"
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// A shared table stores its plan as numbers, from which each process builds its own Plan (R21). Any process may replace
// the plan, and any call completes a replacement (R22).

const (
	planAreas = 2 // for the current plan, and the previous or the next one
	areaWords = 128

	// MaxNumbers is how many numbers a plan may have.
	MaxNumbers = areaWords - 1
)

// areas has the numbers of plans: those of plan n in the area n modulo planAreas. An area has first the count of the
// numbers, then the numbers.
type areas [planAreas][areaWords]word.Word

type changes struct {
	// change is the number of the latest announced plan, shifted by changeShift. Its bit changing is set while some
	// records may follow the previous plan.
	change word.Word
	// setting is the number of the process that is writing the numbers of the next plan; 0 for none.
	setting word.Word
}

const (
	changing    = 1
	changeShift = 1
)

// sharedPlans has what a process needs to build the plans of a shared table.
type sharedPlans struct {
	areas *areas
	build func(numbers []uint64) (*Plan, error)
	now   func() int64 // the clock of the calls, or nil if it is not known
}

// current returns the plan that was current at some moment during the call. So the plan counts as read after any word
// that the caller read before (R9, R21).
func (t *Table) current() *Plan {
	plan := t.plan.Load()
	if t.owner == nil || t.planned.Load() == plan.planned {
		return plan
	}
	return t.rebuildPlan()
}

// Known returns the plan that was current at this process's last check. It reads no shared memory.
func (t *Table) Known() *Plan { return t.plan.Load() }

// rebuildPlan does the work of current after another process has replaced the plan. It builds this process's own Plan.
func (t *Table) rebuildPlan() *Plan {
	for {
		current, n := t.plan.Load(), t.planned.Load()
		if current.planned == n {
			return current
		}
		plan, before := t.buildPlan(n, current), t.buildPlan(n-1, current)
		if t.planned.Load() != n {
			continue // the numbers may be those of another plan: R21
		}
		if plan == nil { // R20
			unchanged := *current
			plan = &unchanged
		}
		plan.planned, plan.number = n, uint32(n)
		plan.live = atomicbucket.Live + atomicbucket.Tag((n-1)%2)
		plan.from = nil
		if before != nil {
			plan.takeOver(before, t.now)
		}
		if atomicbucket.SameUnits(current.algorithm, plan.algorithm) {
			plan.unit = current.unit
		}
		if t.plan.CompareAndSwap(current, plan) {
			return plan
		}
	}
}

// buildPlan returns the plan with the number n. It returns nil if the numbers give no plan, or if the plan cannot take
// over the records of the plan previous (R20).
func (t *Table) buildPlan(n uint64, previous *Plan) *Plan {
	plan, err := t.build(t.areas.read(n))
	if err != nil {
		return nil
	}
	if _, err := plan.algorithm.Following(previous.algorithm); err != nil {
		return nil
	}
	plan.trust = min(plan.skew, uint64(MaxTrust)) // R23
	return plan
}

// Numbers returns the numbers of the current plan of the table in memory. They may have any values (R20).
func (cfg Config) Numbers(memory []byte) ([]uint64, error) {
	l, first, err := cfg.sharedMemory(memory)
	if err != nil {
		return nil, err
	}
	for planned := &l.commonOf(first).planned; ; {
		n := planned.Load()
		if numbers := l.areasOf(first).read(n); planned.Load() == n { // R21
			return numbers, nil
		}
	}
}

func (a *areas) read(n uint64) []uint64 {
	area := &a[n%planAreas]
	numbers := make([]uint64, min(area[0].Load(), MaxNumbers)) // R20
	for i := range numbers {
		numbers[i] = area[i+1].Load()
	}
	return numbers
}

// write writes the numbers of a plan. No other process writes numbers at the same time, and no process reads these
// numbers before they are announced.
func (a *areas) write(n uint64, numbers []uint64) {
	area := &a[n%planAreas]
	area[0].Store(uint64(len(numbers)))
	for i, number := range numbers {
		area[i+1].Store(number)
	}
}

// Replace replaces the plan of a shared table while all processes use it, as [Table.Adopt] does for other tables. The
// numbers of the new plan, at most [MaxNumbers], must have been accepted by [Shared.Build], and the new plan must be
// able to take over the records of the current plan. Calls of Replace in one process must not overlap. If another live
// process is about to replace the plan, Replace does nothing and returns false.
//
// Replace calls the function clock several times. The last of these calls comes after the numbers have been announced,
// and records are converted at the time that it returns. When Replace returns, every record and every process follows
// the new plan, or a plan that has replaced it since.
func (t *Table) Replace(numbers []uint64, clock func() int64) bool {
	return t.ReplaceKnowing(math.MaxUint64, numbers, clock)
}

// ReplaceKnowing does what Replace does, unless [Table.Largest] returns a number above the parameter largest. In that
// case it does nothing and returns false.
func (t *Table) ReplaceKnowing(largest uint64, numbers []uint64, clock func() int64) bool {
	defer runtime.KeepAlive(t)
	t.raise(clock()) // by leaps: step 5 makes none
	if !t.claimSetting() {
		return false
	}
	n := t.completeReplacement(clock).planned
	if largest < math.MaxUint64 && t.largest.Load() > largest {
		t.setting.Store(0)
		return false
	}
	t.areas.write(n+1, numbers)
	announced := t.change.CompareAndSwap(n<<changeShift, (n+1)<<changeShift|changing)
	t.setting.Store(0)
	t.completeReplacement(clock)
	return announced
}

// claimSetting enters this process in the word setting, so that it alone may replace the plan until it clears the word.
// It reports whether it has done so.
func (t *Table) claimSetting() bool {
	setter := t.setting.Load()
	if setter != 0 && setter != t.claimant && !t.owner.Dead(setter) || !t.setting.CompareAndSwap(setter, t.claimant) {
		return false
	}
	return true
}

// Remember raises the number that [Table.Largest] returns to at least n. When Remember returns true, every replacement
// that did not know this number is complete. While another live process is about to replace the plan of a shared table,
// Remember does nothing and returns false. In one process, calls of Remember, Replace and Adopt must not overlap.
func (t *Table) Remember(n uint64, clock func() int64) bool {
	defer runtime.KeepAlive(t)
	if t.owner == nil {
		t.largest.Store(max(t.largest.Load(), n))
		return true
	}
	if !t.claimSetting() {
		return false
	}
	t.completeReplacement(clock)
	t.largest.Store(max(t.largest.Load(), n))
	t.setting.Store(0)
	return true
}

// Largest returns the largest number that was given to Remember, by any process if the table is shared.
func (t *Table) Largest() uint64 {
	defer runtime.KeepAlive(t)
	return t.largest.Load()
}

// Complete completes a replacement of a shared table's plan that is under way, whichever process began it (R22), at the
// time that the function clock returns. After the call, the plan that [Table.Plan] returns can no longer be replaced by
// a plan that was announced before the call.
func (t *Table) Complete(clock func() int64) {
	defer runtime.KeepAlive(t)
	t.completeReplacement(clock)
}

// completeReplacement first completes a replacement that is under way, at the time that the function clock returns
// (R22). It returns the current plan when all records follow that plan. Any number of calls may try the same step of
// R22, but each step takes effect once.
func (t *Table) completeReplacement(clock func() int64) *Plan {
	for {
		change, n := t.change.Load(), t.planned.Load()
		switch change {
		case n << changeShift:
			if plan := t.current(); plan.planned == n {
				return plan
			}
		case (n+1)<<changeShift | changing: // announced
			if t.approach(uint64(t.reachedTime(clock())), n) {
				t.planned.CompareAndSwap(n, n+1)
			}
		case n<<changeShift | changing: // some records may follow the previous plan
			t.adoptAll()
			if t.current().hasNewGrid { // R29
				if watermark := t.Watermark(); t.change.Load() == change {
					raiseWord(&t.realigned, watermark)
				}
			}
			t.change.CompareAndSwap(change, n<<changeShift)
		default: // the replacement advanced between the two reads, so change did, too; or no process wrote this: R20
			t.change.CompareAndSwap(change, n<<changeShift|changing)
		}
	}
}

// approach moves the watermark by one step, at least a nanosecond, towards the time at which plan n is replaced. After
// that, a leap that another call has calculated by plan n alone cannot succeed (R22). If approach returns false, it
// must be repeated: it has swept instead, or the watermark or the word planned changed in the meantime.
func (t *Table) approach(now, n uint64) bool {
	watermark, step := t.watermark.Load(), uint64(1)
	if now > watermark {
		skew := t.commonSkew(n)
		if swept := t.swept.Load(); watermark > swept && watermark-swept > skew {
			t.sweepAll(int64(watermark), int64(watermark), nil)
			return false
		}
		step = min(now-watermark, leapStep*skew)
		if t.planned.Load() != n { // after the watermark, and after the numbers
			return false
		}
	}
	return t.watermark.CompareAndSwap(watermark, watermark+step)
}

// commonSkew returns the smaller of the skews of plan n and the next plan. The result is right only if plan n is
// current and the next plan is announced.
func (t *Table) commonSkew(n uint64) uint64 {
	plan := t.current()
	if next := t.buildPlan(n+1, plan); next != nil { // R20
		return min(plan.skew, next.skew)
	}
	return plan.skew
}
