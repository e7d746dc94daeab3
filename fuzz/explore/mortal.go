//go:build explore

package explore

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
	"github.com/weir-go/weir/shard"
)

// In a mortal scenario every thread is a process with the shared table. The first process may die before any step, and
// the other processes can detect this. At the end, another process attaches and sweeps. Then nothing of the dead
// process may be left (R17, R18, R22).

// observerNumber is the number of the process that makes the earlier calls and the last sweep.
const observerNumber = 63

// A process is a thread in its role as an owner of claims.
type process struct {
	w      *world
	thread int
}

func (p process) Claimant() uint64 { return uint64(p.thread) + 1 }

// Dead reports whether the process claimant is dead, and records the result in the history of the calling thread.
// Number 0 belongs to the code that fixed the probe bounds, and is never dead.
func (p process) Dead(claimant uint64) bool {
	i := int(claimant) - 1
	dead := i >= 0 && i < len(p.w.threads) && p.w.threads[i].dead
	if p.thread < len(p.w.threads) {
		th := p.w.threads[p.thread]
		th.History = interleave.Mix(th.History, interleave.Bit(dead))
	}
	return dead
}

// share makes the tables of the world and of each thread in the same memory.
func (w *world) share(cfg shard.Config) (*shard.Table, error) {
	bytes, err := cfg.SharedBytes()
	if err != nil {
		return nil, err
	}
	words := make([]uint64, bytes/8+512)
	skip := -uintptr(unsafe.Pointer(&words[0])) % 4096 / 8
	memory := unsafe.Slice((*byte)(unsafe.Pointer(&words[skip])), bytes)
	if err := cfg.Begin(memory, []uint64{0}); err != nil {
		return nil, err
	}
	for i := range w.scenario.threads {
		t, err := shard.Map(cfg, shard.Shared{Memory: memory, Owner: process{w, i}, Build: w.build, Clock: w.machine()})
		if err != nil {
			return nil, err
		}
		t.RestAfter(1)
		w.tables = append(w.tables, t)
	}
	return shard.Map(cfg, shard.Shared{Memory: memory, Owner: process{w, observerNumber - 1}, Build: w.build, Clock: w.machine()})
}

// machine returns the machine's clock if some call's clock is ahead of it, and otherwise nil. The machine's clock reads
// the latest time of any call.
func (w *world) machine() (clock func() int64) {
	latest := int64(0)
	for _, program := range append(w.scenario.threads, w.scenario.before) {
		for _, c := range program {
			latest = max(latest, c.now())
			if c.fast > 0 {
				clock = func() int64 { return latest }
			}
		}
	}
	return clock
}

// checkTime checks that the watermark is not ahead of the machine's clock, except by the nanosecond that a change of
// the plan adds.
func (w *world) checkTime() error {
	if clock := w.machine(); clock != nil && w.table.Watermark() > clock()+1 {
		return fmt.Errorf("R23: the watermark is %d ahead of the machine's clock", w.table.Watermark()-clock())
	}
	return nil
}

// build is the [shard.Shared.Build] of the table. The first number selects the plan.
func (w *world) build(numbers []uint64) (*shard.Plan, error) {
	if len(numbers) != 1 || numbers[0] >= uint64(len(w.plans)) {
		return nil, fmt.Errorf("no plan of the scenario: %v", numbers)
	}
	plan, err := shard.NewPlan(w.plans[numbers[0]].Algorithm(), 0)
	if err == nil {
		plan.SetCharges(maxDebt, w.scenario.refusals)
	}
	return plan, err
}

func (w *world) forgetPlans() {
	for _, t := range append(w.tables, w.table) {
		if t.IsShared() {
			t.Follows(w.plans[0])
		}
	}
	w.table.Plan() // the process that checks the others has the plan that is current at the start
}

// mixKnownPlan adds a plan to a history: the plan that the thread's process knows.
func (w *world) mixKnownPlan(th *thread, history uint64) uint64 {
	if w.scenario.mortal && w.planned {
		history = interleave.Mix(history, w.tableOf(th.name).Following())
	}
	return history
}

// recordReplacement records that a thread changed a word of the plan's replacement (R22).
func (w *world) recordReplacement(th *thread, a *word.Word) {
	if !w.scenario.mortal {
		return
	}
	s := &w.shadow
	switch n, underway := w.table.Announced(); {
	case a == w.planWords[1] && underway && n < maxPlans:
		s.announced[n] = 1 + w.table.NumberOf(n)
		s.chargedBefore, s.announceWatermark = s.charged, w.table.Watermark()
	case a == w.planWords[0]:
		// The watermark moves to the time of the call, in one step of R7. A call with a clock has read the clock after
		// the plan was announced.
		s.since = th.now()
		if th.call().clock {
			s.since = max(s.since, s.chargedBefore)
		}
		s.since = min(s.since, s.announceWatermark+4*w.skew)
	}
}

// recordEntry is for a thread that replaces the plan of a shared table. It records whether the thread has entered its
// number in the word setting, and removed the number again.
func (th *thread) recordEntry(w *world, a word.Access) {
	if len(w.planWords) > 0 && a.Word == w.planWords[2] && a.Op != word.Load {
		th.replaces += int(interleave.Bit(a.Word.Peek() == a.New))
	}
}

// forgetReads forgets what a thread has read before the thread checks whether its replacement of the plan is complete.
// The thread makes several such checks. From one check to the next, it uses only the plan that its process knows.
func (w *world) forgetReads(th *thread) {
	if th.replaces > 0 && th.Pending.Word == w.planWords[1] && th.Pending.Op == word.Load {
		th.History = w.mixKnownPlan(th, interleave.Mix(interleave.Mix(th.before, uint64(th.replaces)), uint64(th.clock)))
	}
}

func (c *changes) hash() uint64 {
	h := interleave.Mix(interleave.Mix(1<<56, uint64(c.charged)), uint64(c.chargedBefore))
	h = interleave.Mix(interleave.Mix(h, uint64(c.announceWatermark)), uint64(c.since))
	for _, number := range c.announced {
		h = interleave.Mix(h, number)
	}
	return h
}

// checkPlans checks that, in each process, plan n has the numbers that were announced for plan n.
func (w *world) checkPlans() error {
	for i, t := range w.tables {
		plan, n := t.Known(), t.Following()
		if n == 0 || n >= maxPlans || w.shadow.announced[n] == 0 {
			continue
		}
		if want := w.plans[w.shadow.announced[n]-1].Quota(0); plan.Quota(0) != want {
			return fmt.Errorf("R21: process %d takes a plan of %+v for number %d, which is one of %+v", i, plan.Quota(0), n, want)
		}
	}
	return nil
}

func (w *world) tableOf(thread int) *shard.Table {
	if !w.scenario.mortal || len(w.threads) < len(w.tables) { // or the calls before the threads are being made
		return w.table
	}
	return w.tables[thread]
}

func (w *world) isForeign(a *word.Word) bool {
	return w.scenario.mortal && !slices.Contains(w.words, a)
}

func (w *world) die(th *thread) {
	th.dead = true
	if w.trace != nil {
		w.trace(fmt.Sprintf("t%d  dies", th.name))
	}
}

// checkDead checks that, at the end, an attach and a sweep leave nothing of the dead process.
func (w *world) checkDead() error {
	if !w.threads[0].dead {
		return nil
	}
	before := w.values()
	w.table.Sweep(w.table.Watermark(), nil)
	observer := &thread{program: []call{sweeps()}, watermark: w.table.Watermark()}
	for i := range w.slots {
		if from, to := atomicbucket.State(before[2*i]), atomicbucket.State(w.words[2*i].Peek()); from.IsLive() && to.IsLive() && from != to {
			if err := w.shadow.convert(observer, w.shadow.owner(w.words[2*i+1].Peek()), to); err != nil {
				return err
			}
		}
	}
	if !w.table.IsSettled() {
		return errors.New("R22: a replacement of the plan is still under way after the sweep")
	}
	if err := w.checkReplace(); err != nil {
		return err
	}
	for i := range w.slots {
		if tag := atomicbucket.State(w.words[2*i].Peek()).Tag(); tag == atomicbucket.Claimed || tag == atomicbucket.Tentative {
			return fmt.Errorf("R17: slot %d is in %v after the sweep, and nobody will publish or settle it", i, tag)
		}
	}
	if lowering := w.probeBounds[0].Peek(); w.scenario.probeBound && lowering > 1 {
		return fmt.Errorf("R18: the word lowering says %#x after the sweep: no sweep lowers probe bounds any more", lowering)
	}
	return w.checkProbeBounds()
}

func (w *world) values() (values []uint64) {
	for _, word := range w.words {
		values = append(values, word.Peek())
	}
	return values
}

// checkReplace checks that a newly attached process can replace the plan, and changes nothing else.
func (w *world) checkReplace() error {
	values := w.values()
	defer func() {
		for i, word := range w.words {
			word.Poke(values[i])
		}
		w.table.Follows(w.plans[0])
	}()
	if !w.table.Replace([]uint64{0}, w.table.Watermark) {
		return errors.New("R22: nobody can replace the plan any more")
	}
	return nil
}
