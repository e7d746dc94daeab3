//go:build explore

package explore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
	"github.com/weir-go/weir/shard"
)

// A world is everything that an execution changes.
type world struct {
	scenario    scenario
	table       *shard.Table
	tables      []*shard.Table // as the threads of a mortal scenario have it
	plans       [3]*shard.Plan
	words       []*word.Word // as shard.Table.Words has them
	slots       int
	probeBounds []*word.Word // those of them that say how far searches go
	pages       []*word.Word // those that say where records may be
	planWords   []*word.Word // those by which the plan of a shared table is replaced
	refunds     []*word.Word // those that only refunds act upon: the last ones
	threads     []*thread
	planted     bool  // the calls before the threads are made
	still       bool  // no thread writes the watermark or swept, so reading them is no step
	planned     bool  // a thread changes the plan
	cancels     bool  // some thread gives back what it took
	refunded    bool  // some thread gives something back, so that the words for refunds matter
	forced      bool  // some record may be forgotten by force
	skew        int64 // the smallest of the plans
	shadow      shadow
	trace       func(line string) // told about every step, if not nil

	origin struct { // where every execution begins
		words   []uint64
		keys    []owner
		counts  counts
		changes changes
	}
	retries uint64      // that the table has counted
	stats   shard.Stats // when this execution began
}

// newWorld returns the world of a scenario, its calls of before made.
func newWorld(s scenario, still bool) (*world, error) {
	w := &world{scenario: s}
	for i, burst := range []uint64{cmpOr(s.burst, 1), cmpOr(s.plans[0], 1), cmpOr(s.plans[1], 1)} {
		tokens, period := cmpOr(s.rate, 1e9), time.Second
		if i > 0 && s.fine > 0 {
			tokens, period = float64(s.fine), time.Duration(s.fine+1)
		} else if i > 0 && s.rate == 0 {
			tokens, period = 1, time.Duration(i+1)
		}
		algorithm, err := atomicbucket.NewTokenBucket(tokens, period, burst)
		if err != nil {
			return nil, err
		}
		if w.plans[i], err = shard.NewPlan(&algorithm, 0); err != nil {
			return nil, err
		}
		if limited, limit, err := s.limited(i); err != nil {
			return nil, err
		} else if limited != nil {
			if w.plans[i], err = shard.NewPlan(limited, 0); err != nil {
				return nil, err
			}
			if i == 0 {
				w.shadow.limited, w.shadow.inFlight = limit, s.inFlight > 0
			}
		}
		w.plans[i].SetCharges(maxDebt, s.refusals)
		if i == 0 || s.fine > 0 {
			w.shadow.algorithm = &algorithm
		}
		if skew := int64(w.plans[i].Algorithm().MaxSkew()); i == 0 || skew < w.skew {
			w.skew = skew
		}
	}
	w.shadow.refusals = s.refusals
	cfg := shard.Config{
		Plan: w.plans[0], Slots: cmpOr(s.slots, 1), Shards: 1, ProbeWindow: s.probeWindow, Overflow: s.overflow, Start: start,
	}
	var table *shard.Table
	var err error
	if s.mortal {
		table, err = w.share(cfg)
	} else {
		table, err = shard.New(cfg)
	}
	if err != nil {
		return nil, err
	}
	w.table, w.words, w.shadow.table, w.shadow.plans = table, table.Words(), table, w.plans
	w.planWords = table.PlanWords()
	w.slots, w.probeBounds, w.pages = int(table.Stats().Slots), table.ProbeBoundWords(), table.PageWords()
	w.refunds = table.RefundWords()
	if !s.pages {
		table.MarkPages()
	}
	if !s.probeBound {
		table.FixProbeBounds()
	}
	table.RestAfter(1)
	w.shadow.round, w.shadow.overflow = 1-interleave.Bit(w.shadow.algorithm.Exact()), s.overflow
	interleave.Intercept(func(a word.Access) bool {
		if w.foreign(a.Word) || !s.mortal && a.Word == table.PlannedWord() {
			return true
		}
		if slices.Contains(w.refunds, a.Word) {
			return !w.refunded || a.Op == word.Load && !w.forced && a.Word == w.refunds[1]
		}
		return a.Op == word.Load && (w.still && w.isTime(a.Word) || !w.planned && (w.isPlan(a.Word) || slices.Contains(w.planWords, a.Word)) || !s.probeBound && w.isProbeBound(a.Word) || !s.pages && slices.Contains(w.pages, a.Word))
	})
	for _, program := range append(s.threads, s.before) {
		for _, c := range program {
			if c.verb == adopt {
				w.planned = true
			} else if c.verb != sweep && c.verb != sweepEpoch && c.verb != sweepPart {
				w.shadow.owner(c.key)
			}
			w.cancels = w.cancels || c.verb == cancel
			w.refunded = w.refunded || c.givesBack()
			w.forced = w.forced || c.verb == reset || s.overflow == shard.Evict
		}
	}
	w.keep()
	w.threads = []*thread{w.newThread(0, s.before)}
	w.Restart()
	for !w.threads[0].finished() {
		if err := w.Step(0, 0); err != nil {
			return nil, fmt.Errorf("before the threads: %w", err)
		}
	}
	w.keep()
	w.threads, w.still, w.planted = nil, still, true
	for i, program := range s.threads {
		w.threads = append(w.threads, w.newThread(i, program))
	}
	return w, nil
}

// limited returns the algorithm and the limit of one of the plans of a scenario that is not about token buckets.
func (s scenario) limited(plan int) (atomicbucket.Algorithm, uint64, error) {
	switch {
	case s.log > 0:
		algorithm, err := atomicbucket.NewSlidingLog(s.log, s.log, logWindow)
		return &algorithm, s.log, err
	case s.fixed > 0:
		algorithm, err := atomicbucket.NewFixedWindow(s.fixed, s.fixed, logWindow, false)
		return &algorithm, s.fixed, err
	case s.counter > 0:
		algorithm, err := atomicbucket.NewSlidingWindow(s.counter, s.counter, time.Hour)
		return &algorithm, s.counter, err
	case s.inFlight > 0:
		limit := [3]uint64{s.inFlight, cmpOr(s.plans[0], s.inFlight), cmpOr(s.plans[1], s.inFlight)}[plan]
		algorithm, err := atomicbucket.NewConcurrency(limit, limit, logWindow)
		return &algorithm, limit, err
	}
	return nil, 0, nil
}

func cmpOr[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// keep makes the present state the one where executions begin.
func (w *world) keep() {
	w.origin.words = w.origin.words[:0]
	for _, word := range w.words {
		w.origin.words = append(w.origin.words, word.Peek())
	}
	w.origin.keys = nil
	for _, key := range w.shadow.keys {
		key.times, key.grants = slices.Clone(key.times), slices.Clone(key.grants)
		w.origin.keys = append(w.origin.keys, key)
	}
	w.origin.counts, w.origin.changes = w.shadow.counts, w.shadow.changes
}

// Trace has every step told from now on.
func (w *world) Trace(tell func(line string)) { w.trace = tell }

// Unfinished returns the threads that have a next step, a bit each.
func (w *world) Unfinished() (threads uint64) {
	for i, th := range w.threads {
		threads |= (1 - interleave.Bit(th.finished() || th.dead)) << i
	}
	return threads
}

// Ways returns 1: the table asks nothing that is not in it. But a thread that is mortal may die instead.
func (w *world) Ways(thread int) int {
	return 1 + int(interleave.Bit(w.scenario.mortal && thread == 0 && w.planted))
}

// Restart begins an execution: every thread stands before its first operation.
func (w *world) Restart() {
	for _, th := range w.threads {
		th.rewind()
	}
	for i, word := range w.words {
		word.Poke(w.origin.words[i])
	}
	w.shadow.keys = w.shadow.keys[:len(w.origin.keys)]
	for i, key := range w.origin.keys {
		times := append(w.shadow.keys[i].times[:0], key.times...)
		grants := append(w.shadow.keys[i].grants[:0], key.grants...)
		w.shadow.keys[i] = key
		w.shadow.keys[i].times, w.shadow.keys[i].grants = times, grants
	}
	w.shadow.counts, w.shadow.changes = w.origin.counts, w.origin.changes
	w.forgetPlans()
	w.stats = w.table.Stats()
	w.retries = w.stats.Retries
	for _, th := range w.threads {
		if !th.finished() {
			th.Resume()
			th.begin(w.table.Watermark())
			w.observe(th)
		}
	}
}

// isTime reports whether a word is the watermark or swept.
func (w *world) isTime(a *word.Word) bool {
	return a == w.words[2*w.slots] || a == w.words[2*w.slots+1]
}

// isPlan reports whether a word says which is the present plan, or how far the watermark may move by it.
func (w *world) isPlan(a *word.Word) bool {
	return a == w.words[2*w.slots+2] || a == w.words[2*w.slots+3]
}

// isProbeBound reports whether a word says how far searches go.
func (w *world) isProbeBound(a *word.Word) bool { return slices.Contains(w.probeBounds, a) }

// hints returns where the words begin that are no one's record: those of a shared table's plans, of probe bounds, of
// pages and for refunds.
func (w *world) hints() int {
	return len(w.words) - len(w.planWords) - len(w.probeBounds) - len(w.pages) - len(w.refunds)
}

// errNotStill means that the world was not still after all.
var errNotStill = errors.New("the watermark was written")

// Step lets a thread do its next operation, and checks everything.
func (w *world) Step(thread, way int) error {
	th := w.threads[thread]
	if way > 0 {
		w.die(th)
		return nil
	}
	a := th.Pending
	i := slices.Index(w.words, a.Word)
	from, to := th.Step()
	th.enters(w, a)
	if i == 2*w.slots && a.Op == word.Load {
		th.watermark = int64(from)
	}

	returned := th.returned
	if returned == nil {
		w.beginAgain(th)
		return w.account(th, a, i, from, to)
	}
	th.made-- // the operation still belongs to that call
	err := w.account(th, a, i, from, to)
	if err == nil {
		if w.trace != nil {
			w.trace(fmt.Sprintf("  t%d: %v -> verdict %d, %v", th.name, th.call(), returned.verdict, returned.state))
		}
		err = w.checkCall(th, *returned)
	}
	th.made++
	if err != nil {
		return err
	}
	th.before = interleave.Mix(th.before, uint64(returned.verdict))
	if w.cancels { // the thread remembers what it took
		th.before = interleave.Mix(interleave.Mix(th.before, uint64(returned.state)), th.tenure)
		th.before = interleave.Mix(interleave.Mix(th.before, returned.ends.Word()), uint64(returned.ended))
	}
	th.before = w.knows(th, th.before)
	th.begin(int64(w.words[2*w.slots].Peek()))
	if !th.finished() {
		w.observe(th)
	}
	return nil
}

// account writes down what an operation did.
func (w *world) account(th *thread, a word.Access, i int, from, to uint64) error {
	if w.still && from != to && w.isTime(a.Word) {
		return errNotStill
	}
	if w.trace != nil {
		w.trace(w.describe(th, a, i, from, to))
	}
	if err := w.checkPlans(); err != nil || from == to {
		return err
	}
	if err := w.checkTime(); err != nil {
		return err
	}
	w.replaced(th, a.Word)
	return w.changed(th, i, atomicbucket.State(from), atomicbucket.State(to))
}

// beginAgain forgets what the thread knows when its call searches from the start
// again, which the table counts, because it carries nothing over: an insert first reads
// the watermark, and a reset or a refund the first state. (So does a hit, which is not meant: it
// carries over what the watermark was.) Without this no two rounds would be the same state, and a
// circle would look like a spiral.
func (w *world) beginAgain(th *thread) {
	retries := w.table.Stats().Retries
	if retries != w.retries && (w.isTime(th.Pending.Word) ||
		(th.Pending.Word == w.words[0] || w.isProbeBound(th.Pending.Word)) && th.call().verb != take &&
			th.call().verb != reserve && th.call().verb != charge && th.call().verb != upTo) {
		th.History = w.knows(th, interleave.Mix(th.before, 1))
	}
	w.retries = retries
	w.completes(th)
}

// changed enters a change of word i in the shadow, checks the invariants, and tells
// every call.
func (w *world) changed(th *thread, i int, from, to atomicbucket.State) (err error) {
	isHint := i >= w.hints()
	th.wrote = th.wrote || i < 2*w.slots || i >= 2*w.slots+5 && !isHint
	if isHint {
		err = w.checkProbeBounds()
	} else if i < 2*w.slots {
		if label := w.words[i|1].Peek(); i&1 == 1 {
			key := w.shadow.owner(uint64(to)) // checkSlots will tell more
			key.asked, key.asker, key.asking = uint64(to), th, th.made
		} else if to.IsLive() {
			err = w.shadow.charge(th, label&^shard.TierMask, from, to)
		} else if from.IsLive() {
			err = w.shadow.forget(th, label, to)
		}
		if err == nil {
			err = w.checkSlots()
		}
		if err == nil {
			err = w.checkProbeBounds()
		}
	}
	for _, other := range w.threads {
		if other.finished() {
			continue
		}
		other.disturbed = other.disturbed || other != th
		w.observe(other)
	}
	return err
}

// observe notes what the thread's call could have seen at this moment.
func (w *world) observe(th *thread) {
	switch c := th.call(); c.verb {
	case charge:
		if w.shadow.fits(c, w.shadow.algorithm.Ticks(max(c.now(), th.floor))) == 0 {
			th.refusable = true
		}
	case upTo:
		if w.shadow.short(c, w.shadow.algorithm.Ticks(max(c.now(), th.floor))) {
			th.refusable = true
		}
	case take, reserve:
		if w.shadow.limited > 0 {
			used := w.shadow.used(w.shadow.owner(c.key), w.shadow.algorithm.Ticks(max(c.time(), th.floor)))
			th.refusable = th.refusable || used+c.n > c.limitOr(w.shadow.least())
			return
		}
		owed := w.shadow.owes(c.key, w.shadow.algorithm.Ticks(max(c.time(), th.floor)))
		if c.verb == reserve {
			owed -= min(owed, patience)
		}
		if owed+w.shadow.price(c, c.n) > c.ticksOr(w.shadow.algorithm, w.shadow.limit(c.key)) {
			th.refusable = true
		}
	case peek, refund:
		s := sight{at: max(c.now(), int64(w.words[2*w.slots].Peek()))}
		if tick := w.shadow.algorithm.Ticks(s.at); w.shadow.limited > 0 {
			s.owed = w.shadow.told(w.shadow.owner(c.key), tick)
		} else {
			plan := w.shadow.planOf(c.key)
			s.owed = min(w.shadow.tokens(plan, w.shadow.owes(c.key, tick)), plan.Quota(0).Tokens)
		}
		if !slices.Contains(th.sights, s) {
			th.sights = append(th.sights, s)
		}
	}
}

// Hash stands for the state of the world.
func (w *world) Hash() (h uint64) {
	words := w.words
	if !w.refunded { // nobody reads the others
		words = words[:len(words)-len(w.refunds)]
	}
	for i, word := range words {
		h += interleave.Mix(uint64(i)+1, word.Peek())
	}
	for _, key := range w.shadow.keys {
		own := interleave.Mix(interleave.Mix(key.key+1<<32, key.full), key.burst)
		own = interleave.Mix(own, key.label^key.asked<<8)
		if w.cancels {
			own = interleave.Mix(own, key.tenure)
		}
		for _, tick := range key.times {
			own = interleave.Mix(own, tick)
		}
		for _, g := range key.grants {
			own = interleave.Mix(interleave.Mix(interleave.Mix(own, g.at), g.cost), g.full)
		}
		h += own
	}
	h += interleave.Mix(interleave.Mix(1<<40, w.shadow.evictions), w.shadow.forgiven)
	if w.scenario.mortal && w.planned {
		h += w.shadow.changes.hash()
	}
	for _, th := range w.threads {
		h += interleave.Mix(1<<48, th.hash())
	}
	return h
}

// describe is a line of a schedule.
func (w *world) describe(th *thread, a word.Access, i int, from, to uint64) string {
	name := fmt.Sprintf("state[%d]", i/2)
	show := func(v uint64) string { return atomicbucket.State(v).String() }
	if i&1 == 1 || i >= 2*w.slots {
		name = fmt.Sprintf("key[%d]", i/2)
		show = func(v uint64) string { return fmt.Sprint(v) }
	}
	if plan := i - w.hints(); plan >= 0 && plan < len(w.planWords) {
		name = []string{"planned", "change", "setting", "count[0]", "plan[0]", "count[1]", "plan[1]"}[plan]
		show = func(v uint64) string { return fmt.Sprintf("%#x", v) }
	} else if hint := plan - len(w.planWords); hint >= 0 {
		name = fmt.Sprintf("probeBound[%d]", hint-1)
		if hint == 0 {
			name = "lowering"
		} else if late := hint - len(w.probeBounds) - len(w.pages); late >= 0 {
			name = []string{"leading", "ends", "promised"}[late]
		} else if page := hint - len(w.probeBounds); page >= 0 {
			name = fmt.Sprintf("pages[%d]", page)
		}
		show = func(v uint64) string { return fmt.Sprintf("%#x", v) }
	} else if i >= 2*w.slots {
		name = append([]string{"watermark", "swept", "plan", "pace", "advancing"}, slices.Repeat([]string{"ring"}, len(w.words))...)[i-2*w.slots]
	}
	switch {
	case a.Op == word.Load:
		return fmt.Sprintf("t%d  %s is %s", th.name, name, show(from))
	case a.Op == word.CompareAndSwap && from != a.Old:
		return fmt.Sprintf("t%d  %s is %s, not %s", th.name, name, show(from), show(a.Old))
	}
	return fmt.Sprintf("t%d  %s = %s (was %s)", th.name, name, show(to), show(from))
}
