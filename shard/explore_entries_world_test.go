//go:build explore

package shard

import (
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
)

// An inFlightWorld is a shared table of a limit in flight, and processes that enter and leave. These invariants must
// hold:
//
//	I1  no more than the limit is in flight
//	I2  an entry enters once and leaves once, with all of its tokens, after it was pending; a call returns
//	    what it has done
//	I4  if a call is refused, the limit was reached at some moment of the call
//	I7  no record that has tokens in flight is forgotten
//	R26 the next process that calls Reap removes all tokens and entries of a dead process, and no others;
//	    tokens of a hanging process are forgotten after their lifetime; a reset removes everything that was
//	    in flight when it began
type inFlightWorld struct {
	scenario inFlightScenario
	table    *Table
	tables   []*Table
	words    []*word.Word
	slots    []*slot
	threads  []*inFlightThread
	inside   []inside // the tokens in flight of each entry
	trace    func(line string)
	origin   struct {
		words  []uint64
		inside []inside
		held   [][]heldEntry
	}
}

// An inside has the tokens that an entry has in flight, 0 for none, and their key.
type inside struct {
	key, tokens uint64
	thread      int
	generation  uint32
}

// A heldEntry is an entry that a thread may leave.
type heldEntry struct {
	receipt Receipt
	key     uint64
	entry   uint64
	inside  inside
}

// An inFlightThread makes its calls as a separate process.
type inFlightThread struct {
	*interleave.Thread
	w       *inFlightWorld
	name    int
	program []inFlightCall
	made    int
	dead    bool
	held    []heldEntry
	leaving inside // what this call gives back by its receipt
	taken   int    // takes of this call that were made
	full    bool   // at some moment of this call its key had no room, or no entry was free
	said    error
}

func (th *inFlightThread) Claimant() uint64 { return uint64(th.name) + 1 }

// Dead reports whether another process is dead. The process th knows this from then on.
func (th *inFlightThread) Dead(claimant uint64) bool {
	i := int(claimant) - 1
	dead := i >= 0 && i < len(th.w.threads) && th.w.threads[i].dead && !th.w.scenario.hangs
	if th.Thread != nil {
		th.History = interleave.Mix(th.History, interleave.Bit(dead))
	}
	return dead
}

func newInFlightWorld(t *testing.T, s inFlightScenario) *inFlightWorld {
	w := &inFlightWorld{scenario: s}
	word.Before = nil
	algorithm, err := atomicbucket.NewEntries(s.limit, s.limit, lifetime)
	require.NoError(t, err)
	build := func([]uint64) (*Plan, error) { return NewPlan(&algorithm, 0) }
	plan, err := build(nil)
	require.NoError(t, err)
	cfg := Config{Plan: plan, Slots: 1, Shards: 1, ProbeWindow: s.window, Start: start, Entries: s.entries}
	bytes, err := cfg.SharedBytes()
	require.NoError(t, err)
	words := make([]uint64, bytes/8+512)
	memory := unsafe.Slice((*byte)(unsafe.Pointer(&words[-uintptr(unsafe.Pointer(&words[0]))%4096/8])), bytes)
	require.NoError(t, cfg.Begin(memory, nil))
	for i := range s.threads {
		w.threads = append(w.threads, w.newThread(i, nil))
	}
	observer := &inFlightThread{w: w, name: 62}
	for _, th := range append(slices.Clone(w.threads), observer) {
		table, err := Map(cfg, Shared{memory, th, build, nil, nil})
		require.NoError(t, err)
		table.Plan()
		w.tables = append(w.tables, table)
	}
	w.table = w.tables[len(s.threads)]
	w.table.MarkPages()
	w.table.FixProbeBounds()
	for i := range w.table.shards[0].slots {
		sl := &w.table.shards[0].slots[i]
		w.slots, w.words = append(w.slots, sl), append(w.words, (*word.Word)(unsafe.Pointer(&sl.state)), &sl.key)
	}
	for i := range w.table.entries.list {
		e := &w.table.entries.list[i]
		w.words = append(w.words, &e.holder, &e.slotTokens, &e.takenAt)
	}
	w.words = append(w.words, &w.table.watermark, &w.table.swept)
	w.inside = make([]inside, s.entries)
	w.begin()
	for i, before := range s.before { // the calls are made one by one, each by its process
		th := w.threads[before.of]
		w.keep()
		th.program = []inFlightCall{before.inFlightCall}
		interleave.Intercept(w.passes)
		w.Restart()
		for th.made < 1 {
			require.NoError(t, w.Step(before.of, 0), "before, %d", i)
		}
		th.program = nil
		w.rest()
	}
	w.keep()
	for i, th := range w.threads {
		th.program = s.threads[i]
	}
	interleave.Intercept(w.passes)
	return w
}

// begin makes processes look for entries from the first on.
func (w *inFlightWorld) begin() {
	for i, table := range w.tables {
		table.entries.next.Store(uint64(i) - 1)
	}
}

// passes reports whether an operation does not count as a step, because the scenario does not depend on its word.
func (w *inFlightWorld) passes(a word.Access) bool {
	last := len(w.words) - 1
	if a.Word == w.words[last] || a.Word == w.words[last-1] {
		return !w.scenario.timed
	}
	return !slices.Contains(w.words, a.Word)
}

// rest sets all threads back to the point before their first operation.
func (w *inFlightWorld) rest() {
	for _, th := range w.threads {
		th.Rewind()
		th.made = 0
	}
}

// keep saves the current state as the state in which executions begin.
func (w *inFlightWorld) keep() {
	w.origin.words, w.origin.held = nil, nil
	for _, a := range w.words {
		w.origin.words = append(w.origin.words, a.Peek())
	}
	for _, th := range w.threads {
		w.origin.held = append(w.origin.held, slices.Clone(th.held))
	}
	w.origin.inside = slices.Clone(w.inside)
}

// Restart begins an execution.
func (w *inFlightWorld) Restart() {
	for i, th := range w.threads {
		th.Rewind()
		*th = inFlightThread{Thread: th.Thread, w: w, name: i, program: th.program, held: slices.Clone(w.origin.held[i])}
	}
	for i, a := range w.words {
		a.Poke(w.origin.words[i])
	}
	w.inside = slices.Clone(w.origin.inside)
	w.begin()
	for _, th := range w.threads {
		if len(th.program) > 0 {
			th.Resume()
		}
	}
	w.observe()
}

// Unfinished returns a bit for each thread that has a next step.
func (w *inFlightWorld) Unfinished() (threads uint64) {
	for i, th := range w.threads {
		threads |= interleave.Bit(th.made < len(th.program) && !th.dead) << i
	}
	return threads
}

// Outcomes returns how many outcomes the next step of a thread can have: 2 for the process that may die, otherwise 1.
func (w *inFlightWorld) Outcomes(thread int) int { return 1 + int(interleave.Bit(thread == 0)) }

// Trace reports every step from now on.
func (w *inFlightWorld) Trace(tell func(line string)) { w.trace = tell }

func (w *inFlightWorld) newThread(name int, program []inFlightCall) *inFlightThread {
	th := &inFlightThread{w: w, name: name, program: program}
	th.Thread = interleave.NewThread(func() {
		for _, c := range th.program {
			th.taken, th.full, th.leaving = 0, false, inside{}
			th.said = th.do(c)
			th.made++
		}
	})
	return th
}

// do makes a call, and returns an error if its answer is wrong.
func (th *inFlightThread) do(c inFlightCall) error {
	table := th.w.tables[th.name]
	p, now := table.Find(c.key), start+int64(c.late)
	switch c.verb {
	case enters, charges:
		var o Outcome
		if c.verb == enters {
			o = table.Take(p, now, c.n, 0)
		} else {
			o, _ = table.Charge(p, now, now, c.n, TierQuota(0), nil)
		}
		switch o.Verdict {
		case Admitted:
			number, _ := o.Plan.entries.Last(o.State)
			h := atomicbucket.Entry(table.entries.list[number].holder.Peek())
			th.held = append(th.held, heldEntry{o.Receipt(c.n, 0, Ends{}), c.key, number,
				inside{c.key, c.n, th.name, h.Generation()}})
			if th.taken != 1 {
				return fmt.Errorf("I2: %v was admitted, and taken %d times", c, th.taken)
			}
		case Refused, NoRoom:
			if !th.full {
				return fmt.Errorf("I4: %v was refused, and at no moment meanwhile was there no room", c)
			}
			if th.taken != 0 {
				return fmt.Errorf("I2: %v was refused, and taken", c)
			}
		default:
			return fmt.Errorf("I2: %v was decided as %v", c, o.Verdict)
		}
	case leaves:
		if len(th.held) == 0 { // it was refused
			return nil
		}
		i := int(c.n)
		if i == 0 {
			i = len(th.held)
		}
		h := th.held[i-1]
		th.held, th.leaving = slices.Delete(th.held, i-1, i), h.inside
		table.RefundBy(table.Find(h.key), func() int64 { return now }, h.receipt.Tokens(), 0, h.receipt)
		if th.w.inside[h.entry] == h.inside {
			return fmt.Errorf("I2: %v has left, and is in flight", c)
		}
	case reaps:
		table.Reap(now)
	case sweepsAll:
		table.Sweep(now, nil)
	case resetsKey:
		before := slices.Clone(th.w.inside)
		for _, in := range before {
			th.History = interleave.Mix(th.History, in.key<<16|in.tokens<<8|uint64(in.generation))
		}
		table.Reset(p)
		for i, in := range before {
			if in.tokens > 0 && in.key == c.key && th.w.inside[i] == in {
				return fmt.Errorf("R26: %+v is in flight after a reset", in)
			}
		}
	case refundsKey:
		table.Refund(p, now, c.n, 0, Receipt{})
	}
	return nil
}

// Step lets a thread do its next operation, or die, and checks what it changed.
func (w *inFlightWorld) Step(thread, way int) error {
	th := w.threads[thread]
	if way > 0 {
		th.dead = true
		if w.trace != nil {
			w.trace(fmt.Sprintf("t%d  dies", thread))
		}
		return nil
	}
	a, made := th.Pending, th.made
	from := a.Word.Peek()
	var to uint64
	th.Thread.History = interleave.Mix(th.Thread.History, uint64(th.made))
	i := slices.Index(w.words, a.Word)
	// The change is checked before the thread continues, because the call may end then.
	switch a.Op {
	case word.Store, word.Swap:
		to = a.New
	case word.CompareAndSwap:
		if to = from; from == a.Old {
			to = a.New
		}
	case word.Add:
		to = from + a.New
	default:
		to = from
	}
	if w.trace != nil {
		w.trace(w.describe(th, a, i, from, to))
	}
	if err := w.changed(th, i, from, to); err != nil {
		return err
	}
	th.Thread.Step()
	w.observe()
	if th.made > made {
		return th.said
	}
	return nil
}

// changed checks the change of a record, and enters it in w.inside.
func (w *inFlightWorld) changed(th *inFlightThread, i int, was, is uint64) error {
	from, to := atomicbucket.State(was), atomicbucket.State(is)
	if was == is || i >= 2*len(w.slots) || i%2 == 1 || !from.IsLive() && !to.IsLive() {
		return nil
	}
	plan := w.table.Plan()
	before, after := uint64(0), plan.entries.Debt(to.Record(), 0)
	if from.IsLive() {
		before = plan.entries.Debt(from.Record(), 0)
	}
	if !to.IsLive() {
		if before > 0 {
			return fmt.Errorf("I7: %d are in flight of a record that is forgotten", before)
		}
		return nil
	}
	number, left := plan.entries.Last(to)
	in, key := &w.inside[number], w.slots[i/2].key.Peek()&^tierMask
	e := &w.table.entries.list[number]
	h := atomicbucket.Entry(e.holder.Peek())
	if left {
		if in.tokens == 0 || in.tokens != before-after || in.key != key {
			return fmt.Errorf("I2: %d leave of key %d by entry %d, which has %+v", before-after, key, number, *in)
		}
		switch c := th.program[th.made]; {
		case c.verb == leaves && *in != th.leaving:
			return fmt.Errorf("I2: the entry of another take leaves: %+v by a receipt of %+v", *in, th.leaving)
		case (c.verb == resetsKey || c.verb == refundsKey) && in.key != c.key:
			return fmt.Errorf("I2: %+v leaves, of another key than %v", *in, c)
		case (c.verb == reaps || c.verb == sweepsAll) && c.late == 0 && !w.threads[in.thread].dead:
			return fmt.Errorf("R26: %+v leaves, of a process that is alive", *in)
		}
		*in = inside{}
		return nil
	}
	switch {
	case in.tokens > 0:
		return fmt.Errorf("I2: entry %d enters, which has %+v", number, *in)
	case h.What() != atomicbucket.Pending || h.Claimant() != th.Claimant():
		return fmt.Errorf("I2: %d enter by entry %d, which is %#x", after-before, number, h)
	case after > w.scenario.limit:
		return fmt.Errorf("I1: %d are in flight, of %d", after, w.scenario.limit)
	}
	*in = inside{key, after - before, th.name, h.Generation()}
	th.taken++
	return nil
}

// observe records which calls could be refused at this moment.
func (w *inFlightWorld) observe() {
	free := false
	for i := range w.table.entries.list {
		free = free || atomicbucket.Entry(w.table.entries.list[i].holder.Peek()).What() == atomicbucket.NoEntry
	}
	for _, th := range w.threads {
		if th.made == len(th.program) {
			continue
		}
		if c := th.program[th.made]; c.verb == enters || c.verb == charges {
			th.full = th.full || !free || w.of(c.key, nil)+c.n > w.scenario.limit || w.isTaken(c.key)
		}
	}
}

// isTaken reports whether the only slot of a probe window is claimed, or belongs to another key that has requests in
// flight.
func (w *inFlightWorld) isTaken(key uint64) bool {
	s := atomicbucket.State(w.words[0].Peek())
	return w.scenario.window == 1 && (s.Tag() == atomicbucket.Claimed || s.Tag() == atomicbucket.Tentative ||
		slices.ContainsFunc(w.inside, func(in inside) bool { return in.tokens > 0 && in.key != key }))
}

// The method of counts the tokens of a key that some threads have in flight. The parameter is selects these threads;
// nil selects all.
func (w *inFlightWorld) of(key uint64, is func(*inFlightThread) bool) (n uint64) {
	for _, in := range w.inside {
		if in.tokens > 0 && in.key == key && (is == nil || is(w.threads[in.thread])) {
			n += in.tokens
		}
	}
	return n
}

// Hash returns a hash of the state of the world.
func (w *inFlightWorld) Hash() (h uint64) {
	for i, a := range w.words {
		h += interleave.Mix(uint64(i)+1, a.Peek())
	}
	for _, th := range w.threads {
		own := interleave.Mix(interleave.Mix(1<<48+uint64(th.name), th.History), uint64(th.made))
		h += interleave.Mix(own, interleave.Bit(th.dead)<<2|interleave.Bit(th.full)<<1|uint64(th.taken)<<3)
	}
	for i, in := range w.inside {
		h += interleave.Mix(interleave.Mix(1<<40+uint64(i), in.key<<8|in.tokens), uint64(in.thread))
	}
	return h
}

// CheckEnd checks the world when all live threads have finished: after a last call of Reap, no tokens or entries of
// dead processes remain.
func (w *inFlightWorld) CheckEnd() error {
	w.table.Reap(start + int64(w.scenario.end))
	lives := func(th *inFlightThread) bool { return !th.dead }
	for _, sl := range w.slots {
		s := atomicbucket.State((*word.Word)(unsafe.Pointer(&sl.state)).Peek())
		if !s.IsLive() {
			continue
		}
		key := sl.key.Peek() &^ tierMask
		if has, want := w.table.Plan().entries.Debt(s.Record(), 0), w.of(key, lives); has != want {
			return fmt.Errorf("R26: %d of key %d are in flight at the end, want %d", has, key, want)
		}
	}
	for i, in := range w.inside {
		want := atomicbucket.NoEntry
		if in.tokens > 0 && !w.threads[in.thread].dead {
			want = atomicbucket.Counted
		}
		h := atomicbucket.Entry(w.table.entries.list[i].holder.Peek())
		if h.What() == atomicbucket.Pending && in.tokens == 0 && w.scenario.hangs && w.threads[h.Claimant()-1].dead {
			continue // this thread may continue
		}
		if h.What() != want {
			return fmt.Errorf("R26: entry %d is %#x at the end, and has %+v", i, h, in)
		}
	}
	return nil
}

// describe returns the line of a schedule for one operation.
func (w *inFlightWorld) describe(th *inFlightThread, a word.Access, i int, from, to uint64) string {
	name, show := fmt.Sprintf("state[%d]", i/2), func(v uint64) string { return atomicbucket.State(v).String() }
	if entry := i - 2*len(w.slots); entry >= 0 || i%2 == 1 {
		show = func(v uint64) string { return fmt.Sprintf("%#x", v) }
		switch {
		case i >= len(w.words)-2:
			name = []string{"watermark", "swept"}[i-len(w.words)+2]
		case entry >= 0:
			name = fmt.Sprintf("%s[%d]", []string{"holder", "what", "since"}[entry%3], entry/3)
		default:
			name = fmt.Sprintf("key[%d]", i/2)
		}
	}
	switch {
	case a.Op == word.Load:
		return fmt.Sprintf("t%d  %s is %s", th.name, name, show(from))
	case a.Op == word.CompareAndSwap && from != a.Old:
		return fmt.Sprintf("t%d  %s is %s, not %s", th.name, name, show(from), show(a.Old))
	}
	return fmt.Sprintf("t%d  %s = %s (was %s)", th.name, name, show(to), show(from))
}

const lifetime = time.Minute
