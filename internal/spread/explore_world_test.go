//go:build explore

package spread

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
)

const start = int64(time.Hour)

// A world has everything that an execution changes: a bucket, the time, and what the checks know about both.
type world struct {
	scenario scenario
	bucket   *Bucket
	terms    []*Terms // the terms at the start, and then the terms that replace them in turn
	threads  []*thread
	running  *thread
	timed    bool // time passes in the scenario
	isReset  bool // the scenario resets the bucket
	trace    func(line string)
	now      int64
	rules

	origin struct { // the state in which every execution begins
		words []uint64
		plans []uint64
		now   int64
		rules rules
	}
}

// A thread makes its calls one after the other.
type thread struct {
	*interleave.Thread
	name    int
	program []call
	made    int    // calls returned
	loaded  uint64 // the last value that it has read from the shared word
	looked  bool   // it has read the clock in this step, so it knows only the time and the value of loaded
	progress
	ended progress // of the call that has returned in this step
}

func newWorld(t *testing.T, s scenario) *world {
	w := &world{scenario: s, now: start}
	for _, tokens := range []uint64{s.most(), 1, s.most() * 2} {
		rate := float64(tokens) * float64(s.processors())
		period, debt := Ahead, uint64(2)
		if s.slow {
			rate, period, debt, tokens = 1, 1<<(timeBits-4), 1, 0
		}
		bucket, err := atomicbucket.NewTokenBucket(rate, period, s.limit())
		require.NoError(t, err)
		require.True(t, bucket.Exact())
		terms, err := NewTerms(&bucket, s.processors(), debt, nil)
		require.NoError(t, err)
		require.Equal(t, tokens, terms.Share())
		w.terms = append(w.terms, terms)
	}
	for _, c := range slices.Concat(append(s.threads, s.before)...) {
		w.timed = w.timed || c.verb == pass
		w.isReset = w.isReset || c.verb == reset
	}
	word.Before = nil
	w.bucket = New(w.terms[0], w.clock)
	w.begin()
	interleave.Intercept(w.passes)
	w.threads = []*thread{w.newThread(0, s.before)}
	w.keep()
	w.Restart()
	for w.Unfinished() != 0 {
		require.NoError(t, w.Step(0, 0))
	}
	w.keep()
	w.threads = nil
	for i, program := range s.threads {
		w.threads = append(w.threads, w.newThread(i, program))
	}
	return w
}

// clock is the bucket's clock. It also records that the running thread has read the clock.
func (w *world) clock() int64 {
	if th := w.running; th != nil {
		th.clock, th.looked = w.now, true
	}
	return w.now
}

// The method passes reports whether an operation does not count as a step. This is true for an access to a word that is
// constant in this scenario, to terms, or to a hint. If the value of terms or of a hint affects the thread, it becomes
// part of the thread's history.
func (w *world) passes(a word.Access) bool {
	if a.Word == &w.bucket.changedAt {
		return !w.scenario.rests
	}
	for i := range w.bucket.terms {
		if a.Word == &w.bucket.terms[i].Word {
			w.running.History = interleave.Mix(w.running.History, a.Word.Peek())
			return true
		}
	}
	for i := range w.bucket.cells {
		switch a.Word {
		case &w.bucket.cells[i].lastState, &w.bucket.cells[i].readAt.Word: // these affect only what answers report
			return true
		case &w.bucket.cells[i].count:
			w.running.History = interleave.Mix(w.running.History, a.Word.Peek())
			return true
		}
	}
	return false
}

// words returns all words that calls change, except the terms.
func (w *world) words() []*word.Word {
	all := []*word.Word{&w.bucket.shared, &w.bucket.changedAt}
	for i := range w.bucket.cells {
		all = append(all, &w.bucket.cells[i].word, &w.bucket.cells[i].count)
	}
	return all
}

// keep stores the current state as the state in which every execution begins.
func (w *world) keep() {
	w.origin.words, w.origin.plans = nil, nil
	for _, a := range w.words() {
		w.origin.words = append(w.origin.words, a.Peek())
	}
	for i := range w.bucket.terms {
		w.origin.plans = append(w.origin.plans, w.bucket.terms[i].Peek())
	}
	w.origin.now, w.origin.rules = w.now, w.rules
}

// Restart begins an execution.
func (w *world) Restart() {
	for _, th := range w.threads {
		th.Rewind()
		*th = thread{Thread: th.Thread, name: th.name, program: th.program}
	}
	for i, a := range w.words() {
		a.Poke(w.origin.words[i])
	}
	for i := range w.bucket.terms {
		w.bucket.terms[i].Poke(w.origin.plans[i])
	}
	w.now, w.rules = w.origin.now, w.origin.rules
	for _, th := range w.threads {
		if len(th.program) > 0 {
			w.running = th
			th.Resume()
			w.running = nil
		}
	}
}

// Unfinished returns the threads that have a next step, as a bit set.
func (w *world) Unfinished() (threads uint64) {
	for i, th := range w.threads {
		threads |= interleave.Bit(th.made < len(th.program)) << i
	}
	return threads
}

// Outcomes returns 1, because the world decides nothing: every step has one outcome.
func (w *world) Outcomes(int) int { return 1 }

// Trace reports every step from now on.
func (w *world) Trace(tell func(line string)) { w.trace = tell }

func (w *world) newThread(name int, program []call) *thread {
	th := &thread{name: name, program: program}
	th.Thread = interleave.NewThread(func() {
		for _, c := range th.program {
			th.progress = progress{}
			w.do(th, c)
			th.made, th.ended = th.made+1, th.progress
		}
	})
	return th
}

func (w *world) do(th *thread, c call) {
	b := w.bucket
	switch c.verb {
	case take:
		var admitted bool
		if c.n == 1 {
			admitted = b.Spend(c.cell)
		} else {
			admitted = b.SpendAt(c.cell, c.n, w.now).Admitted
		}
		if !admitted {
			admitted = b.Take(c.cell, c.n).Admitted
		}
		th.said = &admitted
	case refund:
		b.Refund(c.n, w.terms[0], start)
	case settle:
		if c.n < 1 {
			b.Refund(1-c.n, w.terms[0], start)
		} else {
			b.Charge(c.n - 1)
		}
	case reset:
		b.Reset()
	case peek:
		said := b.Peek(c.n).Admitted
		th.said = &said
	case replace:
		b.Replace(w.terms[1+th.made])
	case pass:
		th.Pause(word.Access{})
		w.now += int64(c.n * w.terms[0].Quota.Token)
	}
}

// Step lets a thread do its next operation, and then checks all rules.
func (w *world) Step(thread, _ int) error {
	th := w.threads[thread]
	a, before, made := th.Pending, w.measure(), th.made
	c := th.program[made]
	w.running = th
	was := th.progress
	from, to := th.Step()
	w.running = nil
	if a.Word == &w.bucket.shared && a.Op == word.Load {
		th.loaded = from
	}
	if th.looked && c.verb != replace && c.verb != pass {
		th.History = interleave.Mix(th.loaded, uint64(w.now))
	}
	th.looked = false
	if w.trace != nil {
		w.trace(w.describe(th, c, a, from, to))
	}
	ended := th.made != made
	now := th.progress
	if ended { // th.progress already belongs to the next call
		now = was
		now.said, now.clock = th.ended.said, th.ended.clock
	}
	err := w.check(th, c, &now, before, ended)
	if ended {
		th.History = 0
	} else {
		th.progress = now
	}
	return err
}

// Hash returns a hash of the state of the world.
func (w *world) Hash() (h uint64) {
	for _, a := range w.words() {
		h = interleave.Mix(h, a.Peek())
	}
	for i := range w.bucket.terms {
		h = interleave.Mix(h, w.bucket.terms[i].Peek())
	}
	h = interleave.Mix(interleave.Mix(h, uint64(w.now)), w.rules.hash())
	for i, th := range w.threads {
		h = interleave.Mix(interleave.Mix(h, uint64(i)<<32|uint64(th.made)), th.History)
		h = interleave.Mix(interleave.Mix(h, uint64(th.clock)), uint64(th.paid)<<1|interleave.Bit(th.right)|interleave.Bit(th.wrong)<<8)
	}
	return h
}

// describe returns the line of a schedule that describes an operation.
func (w *world) describe(th *thread, c call, a word.Access, from, to uint64) string {
	name := fmt.Sprintf("t%d, %v:", th.name, c)
	for i := range w.bucket.cells {
		if a.Word == &w.bucket.cells[i].word {
			return fmt.Sprintf("%s cell %d %v -> %v (op %d, %v to %v)", name, i+1, cell(from), cell(to), a.Op, cell(a.Old), cell(a.New))
		}
	}
	if a.Word == &w.bucket.shared {
		return fmt.Sprintf("%s shared %v -> %v (op %d, %v)", name, state(from), state(to), a.Op, state(a.Old))
	}
	return fmt.Sprintf("%s %d -> %d", name, from, to)
}
