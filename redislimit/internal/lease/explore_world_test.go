//go:build explore

package lease

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// A world contains everything that an execution changes: a key's leases on one node, and the store.
type world struct {
	scenario scenario
	terms    *Terms
	table    word.Word // the number of the key's lease; 0 for none
	leases   []held    // all leases so far
	shared             // what is known about tokens
	threads  []*thread
	watched  bool // a thread makes looks, so leases may be retired
	trace    func(line string)

	origin struct { // the state in which every execution begins
		table  uint64
		leases []held
		values []Lease
		shared shared
	}
}

type held struct {
	lease   *Lease
	owner   *thread // the thread that has the duty to ask the store
	touched bool    // it was changed since the last look
}

// shared contains what is known about tokens, on the node and in the store.
type shared struct {
	store    store
	admitted int64 // tokens admitted, minus tokens refunded
	stranded int64 // tokens that were charged and are in no hand, because a question or an answer was lost
}

// newWorld returns the world of a scenario after the calls that prepare it.
func newWorld(s scenario) (*world, error) {
	w := &world{scenario: s, terms: s.terms(), watched: true}
	w.store.left = int64(w.terms.Limit) - int64(s.others)
	w.store.charge(int64(s.asked))
	w.admitted = int64(s.debt + s.asked)
	w.leases = []held{{lease: New(w.terms, s.debt)}}
	w.table.Poke(1)
	w.keep()
	interleave.Intercept(w.passes)
	w.threads = []*thread{newThread(0, s.before, w)}
	w.Restart()
	for !w.threads[0].finished() {
		if err := w.Step(0, answered); err != nil {
			return nil, err
		}
	}
	w.keep()
	w.watched = slices.ContainsFunc(slices.Concat(s.threads...), func(c call) bool { return c.verb == look })
	w.threads = nil
	for i, program := range s.threads {
		w.threads = append(w.threads, newThread(i, program, w))
	}
	return w, nil
}

func (w *world) keep() {
	w.origin.table, w.origin.shared = w.table.Peek(), w.shared
	w.origin.leases, w.origin.values = slices.Clone(w.leases), nil
	for _, h := range w.leases {
		w.origin.values = append(w.origin.values, *h.lease)
	}
}

// Restart begins an execution: every thread is before its first operation.
func (w *world) Restart() {
	for _, th := range w.threads {
		th.rewind()
	}
	w.table.Poke(w.origin.table)
	w.shared = w.origin.shared
	w.leases = append(w.leases[:0], w.origin.leases...)
	for i := range w.leases {
		*w.leases[i].lease = w.origin.values[i]
	}
	for _, th := range w.threads {
		if len(th.program) > 0 {
			th.Resume()
		}
	}
}

// Unfinished returns the threads that have a next step. Each thread is one bit.
func (w *world) Unfinished() (threads uint64) {
	for i, th := range w.threads {
		threads |= (1 - interleave.Bit(th.finished())) << i
	}
	return threads
}

// Outcomes returns how many outcomes the next step of a thread can have. A question or its answer may be lost.
func (w *world) Outcomes(thread int) int {
	if w.threads[thread].Pending.Word == nil {
		return ways
	}
	return 1
}

// Trace makes the world report every step from now on.
func (w *world) Trace(tell func(line string)) { w.trace = tell }

func (w *world) tell(format string, arguments ...any) {
	if w.trace != nil {
		w.trace(fmt.Sprintf(format, arguments...))
	}
}

func words(l *Lease) [8]*word.Word {
	return [...]*word.Word{&l.word, &l.denyUntil.Word, &l.expires.Word, &l.renewBelow, &l.denyFrom, &l.resetAt.Word, &l.remaining, &l.retryAt.Word}
}

var names = [...]string{"word", "denyUntil", "expires", "low", "denyFrom", "resetAt", "remaining", "retryAt"}

const (
	theWord   = 0
	expires   = 2
	resetAt   = 5
	remaining = 6 // this word and the following ones are only used in reports
)

func (w *world) position(a *word.Word) (lease, name int, ok bool) {
	for i, h := range w.leases {
		all := words(h.lease)
		if name := slices.Index(all[:], a); name >= 0 {
			return i, name, true
		}
	}
	return 0, 0, false
}

// passes reports whether an operation does not count as a step, because it does not affect other threads:
//
//   - on a lease that is not in the table yet
//   - on a word that is only used in reports
//   - on a word that only looks use, in a scenario without looks
//   - on a table that does not change
func (w *world) passes(a word.Access) bool {
	if a.Word == &w.table {
		return !w.watched
	}
	_, name, ok := w.position(a.Word)
	return !ok || name >= remaining || !w.watched && (name == expires || name == resetAt)
}

// Step makes a thread do its next operation, and checks all rules. way says how the operation ends.
func (w *world) Step(thread, way int) error {
	th := w.threads[thread]
	a := th.Pending
	if a.Word == nil {
		if err := w.serve(th, way); err != nil {
			return err
		}
	}
	i, name, _ := w.position(a.Word)
	if th.phase == looking && name == theWord && a.Op == word.Load {
		w.begin(th)
	}
	before, plain := *th, w.plain()
	from, to := th.Step()
	if w.trace != nil && a.Word != nil {
		w.tell("%s", w.describe(th, a, from, to))
	}
	err := error(nil)
	if a.Word != nil && a.Word != &w.table && name == theWord && from != to {
		err = w.changed(th, before, i, state(from), state(to))
	}
	if err == nil {
		err = w.check(th, plain)
	}
	w.remember(th, before, a, from)
	return err
}

// remember updates the thread's history, which must represent all that the thread knows.
func (w *world) remember(th *thread, before thread, a word.Access, from uint64) {
	th.said, th.told, th.gone = nil, nil, false
	if th.made != before.made || th.again {
		th.History, th.again = 0, false
	}
	for i, h := range w.leases { // a thread with the duty may read the fields that are not words at any time
		if h.owner == th {
			th.History = interleave.Mix(th.History, w.fields(i).hash())
		}
	}
	_, name, ok := w.position(th.Pending.Word)
	if th.finished() || !ok || name != theWord || th.Pending.Op != word.Load {
		return
	}
	if a.Op == word.CompareAndSwap && a.Word == th.Pending.Word && from != a.Old && th.made == before.made {
		th.History = th.loop
	}
	th.loop = th.History
}

type fields struct {
	asked   script.Ask
	carried uint64
	sent    int64
	before  int64
	held    uint64
	least   uint64
	small   pace
	all     pace
	window  int64
}

func (w *world) fields(i int) fields {
	l := w.leases[i].lease
	return fields{l.question, l.carriedCost, l.sent, l.lastSent, l.lastTokens, l.minGrant, l.smallPace, l.totalPace, l.window}
}

func (f fields) hash() (h uint64) {
	for _, v := range [...]uint64{
		f.asked.Need, f.asked.Want, f.asked.Returned, f.asked.Debt, uint64(f.asked.Window),
		f.carried, uint64(f.sent), uint64(f.before), f.held, f.least, math.Float64bits(f.small.last), math.Float64bits(f.small.low),
		math.Float64bits(f.all.last), math.Float64bits(f.all.low), uint64(f.window),
	} {
		h = interleave.Mix(h, v)
	}
	return h
}

func (w *world) plain() []fields {
	all := make([]fields, len(w.leases))
	for i := range w.leases {
		all[i] = w.fields(i)
	}
	return all
}

// Hash returns a number that represents the state of the world.
func (w *world) Hash() (h uint64) {
	mix := interleave.Mix
	h = mix(mix(mix(mix(w.table.Peek(), uint64(w.store.left)), uint64(w.store.net)), uint64(w.admitted)), uint64(w.stranded))
	for i, l := range w.leases {
		all := words(l.lease)
		for _, a := range all[:remaining] {
			h = mix(h, a.Peek())
		}
		h = mix(mix(mix(h, w.fields(i).hash()), l.lease.visitedWord), interleave.Bit(l.touched))
	}
	for _, th := range w.threads {
		own := th.hash()
		for i, l := range w.leases {
			own = mix(own, interleave.Bit(l.owner == th)<<i)
		}
		h += mix(1<<48, own)
	}
	return h
}

func (w *world) describe(th *thread, a word.Access, from, to uint64) string {
	name, show := "table", func(v uint64) string { return fmt.Sprint(v) }
	if i, which, ok := w.position(a.Word); ok {
		name = names[which]
		if i > 0 {
			name += fmt.Sprintf("[%d]", i+1)
		}
		if which == theWord {
			show = func(v uint64) string { return state(v).String() }
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

func (s state) String() string {
	flags := ""
	for _, f := range []struct {
		flag state
		name string
	}{{renewing, " renewing"}, {healthy, " healthy"}, {retired, " retired"}} {
		if s&f.flag != 0 {
			flags += f.name
		}
	}
	return fmt.Sprintf("{%d in hand, %d debt,%s #%d}", s.tokens(), s.debt(), strings.TrimSpace(flags), s/generation)
}
