package shard

import (
	"math"
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// The plan of a shared table stands in its memory by value, as numbers of which every process builds its own (R21), and
// any process may replace it ([Table.Replace]). Whoever meets a replacement that is not complete completes it (R22).

const (
	planAreas = 2 // the present plan, and the one before or the next
	areaWords = 128

	// MaxNumbers is how many numbers a plan may have.
	MaxNumbers = areaWords - 1
)

// areas are where the numbers of plans stand: that of plan n in area n modulo their count, behind how many they are.
type areas [planAreas][areaWords]word.Word

// changes are the words by which the plan is replaced.
type changes struct {
	// change is the number of the latest plan that is announced, shifted by changeShift, and changing as long as some
	// records may follow the one before.
	change word.Word
	// setting says whose process writes the numbers of the next plan; 0 for none.
	setting word.Word
}

const (
	changing    = 1
	changeShift = 1
)

// sharedPlans is where a process finds the plans of a shared table.
type sharedPlans struct {
	areas *areas
	build func(numbers []uint64) (*Plan, error)
	now   func() int64 // that calls are decided by, or nil: not known
}

// current returns the present plan: of a moment within the call, and so after what was read before it (R9, R21).
func (t *Table) current() *Plan {
	plan := t.plan.Load()
	if t.owner == nil || t.planned.Load() == plan.planned {
		return plan
	}
	return t.follows()
}

// Known returns the plan that was the present one when this process last looked. It touches no memory that is shared.
func (t *Table) Known() *Plan { return t.plan.Load() }

// follows is current when another process has replaced the plan: this one builds its own of it.
func (t *Table) follows() *Plan {
	for {
		mine, n := t.plan.Load(), t.planned.Load()
		if mine.planned == n {
			return mine
		}
		plan, before := t.built(n, mine), t.built(n-1, mine)
		if t.planned.Load() != n {
			continue // what was read may be another plan's: R21
		}
		if plan == nil { // R20
			same := *mine
			plan = &same
		}
		plan.planned, plan.number = n, uint32(n)
		plan.live = atomicbucket.Live + atomicbucket.Tag((n-1)%2)
		plan.from = nil
		if before != nil {
			plan.follow(before, t.now)
		}
		if atomicbucket.SameUnits(mine.algorithm, plan.algorithm) {
			plan.unit = mine.unit
		}
		if t.plan.CompareAndSwap(mine, plan) {
			return plan
		}
	}
}

// built returns the plan of a number, or nil if what stands in its place is none that can take over the records of
// another plan of the table (R20).
func (t *Table) built(n uint64, other *Plan) *Plan {
	plan, err := t.build(t.areas.read(n))
	if err != nil {
		return nil
	}
	if _, err := plan.algorithm.Following(other.algorithm); err != nil {
		return nil
	}
	plan.trust = min(plan.skew, uint64(MaxTrust)) // R23
	return plan
}

// Numbers returns those of the present plan of the table in memory. They may be anything (R20).
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

// read returns the numbers of a plan.
func (a *areas) read(n uint64) []uint64 {
	area := &a[n%planAreas]
	numbers := make([]uint64, min(area[0].Load(), MaxNumbers)) // R20
	for i := range numbers {
		numbers[i] = area[i+1].Load()
	}
	return numbers
}

// write writes the numbers of a plan. No other process does so, and none reads them before they are announced.
func (a *areas) write(n uint64, numbers []uint64) {
	area := &a[n%planAreas]
	area[0].Store(uint64(len(numbers)))
	for i, number := range numbers {
		area[i+1].Store(number)
	}
}

// Replace replaces the plan of a shared table by the one for which numbers stand, at most [MaxNumbers] of them, while
// all processes use it. [Shared.Build] must have accepted them, and the plan be one that can take over the records of
// the present one. Only one call of this process may be under way. It does nothing and returns false while another
// process that is alive is about to replace the plan.
//
// Otherwise it is [Table.Adopt] at the time that clock returns, which it calls several times: records are converted at
// the last, which it reads when the numbers have been announced. When it returns every record follows the new plan, or
// one that has replaced it since, and so does every process.
func (t *Table) Replace(numbers []uint64, clock func() int64) bool {
	return t.ReplaceKnowing(math.MaxUint64, numbers, clock)
}

// ReplaceKnowing is Replace, and does nothing and returns false, too, if [Table.Largest] is more than the caller knows.
func (t *Table) ReplaceKnowing(largest uint64, numbers []uint64, clock func() int64) bool {
	defer runtime.KeepAlive(t)
	t.raise(clock()) // by leaps: step 5 makes none
	if !t.sets() {
		return false
	}
	n := t.settled(clock).planned
	if largest < math.MaxUint64 && t.largest.Load() > largest {
		t.setting.Store(0)
		return false
	}
	t.areas.write(n+1, numbers)
	announced := t.change.CompareAndSwap(n<<changeShift, (n+1)<<changeShift|changing)
	t.setting.Store(0)
	t.settled(clock)
	return announced
}

// sets makes this process the one that may replace the plan, until it sets setting to 0, and reports whether it has.
func (t *Table) sets() bool {
	setter := t.setting.Load()
	if setter != 0 && setter != t.claimant && !t.owner.Dead(setter) || !t.setting.CompareAndSwap(setter, t.claimant) {
		return false
	}
	return true
}

// Remember makes a number one that [Table.Largest] returns, unless that is larger. In a shared table it does nothing
// and returns false while another process that is alive is about to replace the plan. When it returns true, a
// replacement that did not know the number is complete. Only one call of Remember, Replace and Adopt may be under way
// in this process.
func (t *Table) Remember(n uint64, clock func() int64) bool {
	defer runtime.KeepAlive(t)
	if t.owner == nil {
		t.largest.Store(max(t.largest.Load(), n))
		return true
	}
	if !t.sets() {
		return false
	}
	t.settled(clock)
	t.largest.Store(max(t.largest.Load(), n))
	t.setting.Store(0)
	return true
}

// Largest returns the largest number that was given to Remember, in a shared table by any process.
func (t *Table) Largest() uint64 {
	defer runtime.KeepAlive(t)
	return t.largest.Load()
}

// Complete completes a replacement of the plan of a shared table that is under way, whoever began it (R22), at the time
// that clock returns. Afterwards none that was announced before takes the place of [Table.Plan].
func (t *Table) Complete(clock func() int64) {
	defer runtime.KeepAlive(t)
	t.settled(clock)
}

// settled returns the present plan when all records follow it. A replacement that is under way it completes, whoever
// began it (R22), at the time that clock returns: each of its steps may be made by any number of calls, and is made
// once.
func (t *Table) settled(clock func() int64) *Plan {
	for {
		change, n := t.change.Load(), t.planned.Load()
		switch change {
		case n << changeShift:
			if plan := t.current(); plan.planned == n {
				return plan
			}
		case (n+1)<<changeShift | changing: // announced
			if t.approach(uint64(t.reached(clock())), n) {
				t.planned.CompareAndSwap(n, n+1)
			}
		case n<<changeShift | changing: // some records may follow the plan before
			t.adoptAll()
			t.change.CompareAndSwap(change, n<<changeShift)
		default: // it went on between the two reads, and change with it; or nobody wrote this: R20
			t.change.CompareAndSwap(change, n<<changeShift|changing)
		}
	}
}

// approach moves the watermark by one step towards the time at which plan n is to be replaced, and by a nanosecond at
// least, so that no leap by plan n alone is still to come (R22). It is undecided and returns false when it has swept
// first, and when the watermark or planned changed meanwhile.
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

// commonSkew returns the smaller skew of plan n and of the next one, if n is the present one and the next is announced.
func (t *Table) commonSkew(n uint64) uint64 {
	plan := t.current()
	if next := t.built(n+1, plan); next != nil { // R20
		return min(plan.skew, next.skew)
	}
	return plan.skew
}
