//go:build explore

package explore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
	"github.com/weir-go/weir/shard"
)

type world struct {
	scenario    scenario
	table       *shard.Table
	tables      []*shard.Table // the tables of the threads in a mortal scenario
	plans       [3]*shard.Plan
	words       []*word.Word // in the order of shard.Table.Words
	slots       int
	probeBounds []*word.Word // the words with probe bounds
	pages       []*word.Word // the words with marks of pages
	planWords   []*word.Word // the words by which the plan of a shared table is replaced
	refunds     []*word.Word // the words that only refunds use: the last elements of the field words
	threads     []*thread
	planted     bool  // the earlier calls have been made
	still       bool  // no thread writes watermark or swept, so reading one of these words is not a step
	planned     bool  // a thread changes the plan
	cancels     bool  // some thread gives back its own take
	refunded    bool  // some thread gives tokens back, so the words for refunds matter
	forced      bool  // a record may be evicted or reset
	skew        int64 // the smallest skew of the plans
	shadow      shadow
	trace       func(line string) // called with every step, if not nil

	origin struct { // the state in which every execution starts
		words   []uint64
		keys    []owner
		counts  counts
		changes changes
	}
	retries uint64      // the retries that the table has counted so far
	stats   shard.Stats // the statistics when this execution began
}

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

// Trace makes the world describe every step from now on.
func (w *world) Trace(tell func(line string)) { w.trace = tell }

func (w *world) Unfinished() (threads uint64) {
	for i, th := range w.threads {
		threads |= (1 - interleave.Bit(th.finished() || th.dead)) << i
	}
	return threads
}

// Outcomes returns how many outcomes the next step of a thread can have: 1, or 2 for a thread that may die instead.
func (w *world) Outcomes(thread int) int {
	return 1 + int(interleave.Bit(w.scenario.mortal && thread == 0 && w.planted))
}

// Restart starts an execution: every thread is before its first operation.
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

// isPlan reports whether a word says which plan is current, or bounds the watermark under the current plan.
func (w *world) isPlan(a *word.Word) bool {
	return a == w.words[2*w.slots+2] || a == w.words[2*w.slots+3]
}

func (w *world) isProbeBound(a *word.Word) bool { return slices.Contains(w.probeBounds, a) }

// hints returns an index in the field words. From this index on, words belong to no record: shared plans, probe bounds,
// pages, and refunds.
func (w *world) hints() int {
	return len(w.words) - len(w.planWords) - len(w.probeBounds) - len(w.pages) - len(w.refunds)
}

// errNotStill is returned if a thread writes the watermark in a world assumed to be still.
var errNotStill = errors.New("the watermark was written")

// Step lets a thread make its next operation, and checks all invariants.
func (w *world) Step(thread, way int) error {
	th := w.threads[thread]
	if way > 0 {
		w.die(th)
		return nil
	}
	a := th.Pending
	i := slices.Index(w.words, a.Word)
	from, to := th.Step()
	th.recordEntry(w, a)
	if i == 2*w.slots && a.Op == word.Load {
		th.watermark = int64(from)
	}

	returned := th.returned
	if returned == nil {
		w.restartSearch(th)
		return w.account(th, a, i, from, to)
	}
	th.done-- // the operation still belongs to that call
	err := w.account(th, a, i, from, to)
	if err == nil {
		if w.trace != nil {
			w.trace(fmt.Sprintf("  t%d: %v -> verdict %d, %v", th.name, th.call(), returned.verdict, returned.state))
		}
		err = w.checkCall(th, *returned)
	}
	th.done++
	if err != nil {
		return err
	}
	th.before = interleave.Mix(th.before, uint64(returned.verdict))
	if w.cancels { // the thread remembers what it took
		th.before = interleave.Mix(interleave.Mix(th.before, uint64(returned.state)), th.tenure)
		th.before = interleave.Mix(interleave.Mix(th.before, returned.ends.Word()), uint64(returned.ended))
	}
	th.before = w.mixKnownPlan(th, th.before)
	th.begin(int64(w.words[2*w.slots].Peek()))
	if !th.finished() {
		w.observe(th)
	}
	return nil
}

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
	w.recordReplacement(th, a.Word)
	return w.changed(th, i, atomicbucket.State(from), atomicbucket.State(to))
}

// restartSearch forgets what the thread knows if its call restarts its search. The restarted call uses nothing that it
// read before. Only a hit would use the watermark that it read, so hits are excluded. Without restartSearch, two rounds
// of a loop would never be the same state, so an endless loop would not be recognized.
func (w *world) restartSearch(th *thread) {
	retries := w.table.Stats().Retries
	if retries != w.retries && (w.isTime(th.Pending.Word) ||
		(th.Pending.Word == w.words[0] || w.isProbeBound(th.Pending.Word)) && th.call().verb != take &&
			th.call().verb != reserve && th.call().verb != charge && th.call().verb != upTo) {
		th.History = w.mixKnownPlan(th, interleave.Mix(th.before, 1))
	}
	w.retries = retries
	w.forgetReads(th)
}

// changed records a change of word i in the shadow, checks the invariants, and informs every call.
func (w *world) changed(th *thread, i int, from, to atomicbucket.State) (err error) {
	isHint := i >= w.hints()
	th.wrote = th.wrote || i < 2*w.slots || i >= 2*w.slots+5 && !isHint
	if isHint {
		err = w.checkProbeBounds()
	} else if i < 2*w.slots {
		if label := w.words[i|1].Peek(); i&1 == 1 {
			key := w.shadow.owner(uint64(to)) // checkSlots reports what is wrong
			key.pendingLabel, key.pendingThread, key.pendingCall = uint64(to), th, th.done
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

// watchesRoom reports whether free slots are recorded. They are recorded only for a table that refuses new keys and has
// one probe window. Another table reports that it has no room as soon as another call claims the record to evict.
func (w *world) watchesRoom() bool {
	return w.scenario.overflow == shard.Refuse && w.scenario.slots == 0
}

// observe records what a thread's call could have seen at this moment.
func (w *world) observe(th *thread) {
	if w.watchesRoom() {
		for i := range w.scenario.probeWindow {
			owned := atomicbucket.State(w.words[2*i].Peek()).Tag() > atomicbucket.Free
			th.ownedSlots |= interleave.Bit(owned) << i
		}
	}
	switch c := th.call(); c.verb {
	case charge:
		if w.shadow.fittingTokens(c, w.shadow.algorithm.Ticks(max(c.now(), th.startWatermark))) == 0 {
			th.refusable = true
		}
	case upTo:
		if w.shadow.isShort(c, w.shadow.algorithm.Ticks(max(c.now(), th.startWatermark))) {
			th.refusable = true
		}
	case take, reserve:
		if w.shadow.limited > 0 {
			used := w.shadow.used(w.shadow.owner(c.key), w.shadow.algorithm.Ticks(max(c.time(), th.startWatermark)))
			th.refusable = th.refusable || used+c.n > c.limitOr(w.shadow.minLimit())
			return
		}
		owed := w.shadow.owes(c.key, w.shadow.algorithm.Ticks(max(c.time(), th.startWatermark)))
		if c.verb == reserve {
			owed -= min(owed, patience)
		}
		if owed+w.shadow.price(c, c.n) > c.ticksOr(w.shadow.algorithm, w.shadow.limit(c.key)) {
			th.refusable = true
		}
	case peek, refund:
		s := sight{at: max(c.now(), int64(w.words[2*w.slots].Peek()))}
		if tick := w.shadow.algorithm.Ticks(s.at); w.shadow.limited > 0 {
			s.owed = w.shadow.reportedUse(w.shadow.owner(c.key), tick)
		} else {
			plan := w.shadow.planOf(c.key)
			s.owed = min(w.shadow.tokens(plan, w.shadow.owes(c.key, tick)), plan.Quota(0).Tokens)
		}
		if !slices.Contains(th.sights, s) {
			th.sights = append(th.sights, s)
		}
	}
}

// Hash returns a hash of the state of the world.
func (w *world) Hash() (h uint64) {
	words := w.words
	if !w.refunded { // no thread reads the words for refunds
		words = words[:len(words)-len(w.refunds)]
	}
	for i, word := range words {
		h += interleave.Mix(uint64(i)+1, word.Peek())
	}
	for _, key := range w.shadow.keys {
		own := interleave.Mix(interleave.Mix(key.key+1<<32, key.full), key.burst)
		own = interleave.Mix(own, key.label^key.pendingLabel<<8)
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
