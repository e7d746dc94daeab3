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

// In a mortal scenario every thread is a process of its own that has mapped the table. The first one dies: at every
// step it may be that it never runs again, which the others can know. When all have finished, another process attaches
// and sweeps, and nothing may be left of what the dead one was at (R17, R18, R22).

// observerOf is the number of the process that makes the calls before the threads, and sweeps at the end.
const observerOf = 63

// A process is a thread, as an owner of claims.
type process struct {
	w      *world
	thread int
}

func (p process) Claimant() uint64 { return uint64(p.thread) + 1 }

// Dead tells of the death of another thread, which the one that asks knows from then on. Number 0 is of whoever fixed
// the probe bounds, and lives.
func (p process) Dead(claimant uint64) bool {
	i := int(claimant) - 1
	dead := i >= 0 && i < len(p.w.threads) && p.w.threads[i].dead
	if p.thread < len(p.w.threads) {
		th := p.w.threads[p.thread]
		th.History = interleave.Mix(th.History, interleave.Bit(dead))
	}
	return dead
}

// share makes the table of the world, and those of its threads, of memory that they have in common.
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
	return shard.Map(cfg, shard.Shared{Memory: memory, Owner: process{w, observerOf - 1}, Build: w.build, Clock: w.machine()})
}

// machine returns the clock of the machine, which reads the latest time of any call, if the clock of one is ahead of
// it. Else it returns nil.
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

// checkTime checks that the watermark has not passed the machine's clock, but by the nanosecond of a change of the
// plan.
func (w *world) checkTime() error {
	if clock := w.machine(); clock != nil && w.table.Watermark() > clock()+1 {
		return fmt.Errorf("R23: the watermark is %d ahead of the machine's clock", w.table.Watermark()-clock())
	}
	return nil
}

// build makes a process's own plan: its number is which of the scenario's it is.
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

// forgetPlans makes the processes know the first plan, as if they had just attached.
func (w *world) forgetPlans() {
	for _, t := range append(w.tables, w.table) {
		if t.IsShared() {
			t.Follows(w.plans[0])
		}
	}
	w.table.Plan() // who checks the others has the plan that there is at the beginning
}

// knows enters in a history which plan the process of a thread knows.
func (w *world) knows(th *thread, history uint64) uint64 {
	if w.scenario.mortal && w.planned {
		history = interleave.Mix(history, w.tableOf(th.name).Following())
	}
	return history
}

// replaced enters that a thread changed one of the words by which the plan is replaced (R22).
func (w *world) replaced(th *thread, a *word.Word) {
	if !w.scenario.mortal {
		return
	}
	s := &w.shadow
	switch n, underway := w.table.Announced(); {
	case a == w.planWords[1] && underway && n < maxPlans:
		s.announced[n] = 1 + w.table.NumberOf(n)
		s.until, s.mark = s.charged, w.table.Watermark()
	case a == w.planWords[0]:
		// The time of the call, which if it has a clock has read it since the plan was announced; in one step of R7.
		s.since = th.now()
		if th.call().clock {
			s.since = max(s.since, s.until)
		}
		s.since = min(s.since, s.mark+4*w.skew)
	}
}

// enters notes whether a thread that replaces the plan of a shared table has entered itself in setting, and taken
// itself out again.
func (th *thread) enters(w *world, a word.Access) {
	if len(w.planWords) > 0 && a.Word == w.planWords[2] && a.Op != word.Load {
		th.replaces += int(interleave.Bit(a.Word.Peek() == a.New))
	}
}

// completes forgets what a thread knows that replaces the plan and is about to look how far the replacement under way
// is: it carries nothing over from what it looked at before, but the plan that its process knows.
func (w *world) completes(th *thread) {
	if th.replaces > 0 && th.Pending.Word == w.planWords[1] && th.Pending.Op == word.Load {
		th.History = w.knows(th, interleave.Mix(interleave.Mix(th.before, uint64(th.replaces)), uint64(th.clock)))
	}
}

// hash stands for what the replacements of the plan left in the shadow.
func (c *changes) hash() uint64 {
	h := interleave.Mix(interleave.Mix(1<<56, uint64(c.charged)), uint64(c.until))
	h = interleave.Mix(interleave.Mix(h, uint64(c.mark)), uint64(c.since))
	for _, number := range c.announced {
		h = interleave.Mix(h, number)
	}
	return h
}

// checkPlans checks that what each process takes for plan n is what was announced as such.
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

// tableOf returns the table as a thread has it.
func (w *world) tableOf(thread int) *shard.Table {
	if !w.scenario.mortal || len(w.threads) < len(w.tables) { // or the calls before the threads
		return w.table
	}
	return w.tables[thread]
}

// foreign reports whether a word is of one process's own.
func (w *world) foreign(a *word.Word) bool { return w.scenario.mortal && !slices.Contains(w.words, a) }

// die makes a thread one that never runs again.
func (w *world) die(th *thread) {
	th.dead = true
	if w.trace != nil {
		w.trace(fmt.Sprintf("t%d  dies", th.name))
	}
}

// checkDead checks, when all others have finished, that a process which attaches then finds nothing of the dead one's
// after a sweep.
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

// values returns what the words hold.
func (w *world) values() (values []uint64) {
	for _, word := range w.words {
		values = append(values, word.Peek())
	}
	return values
}

// checkReplace checks that a process which attaches can replace the plan, and leaves everything as it is.
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
