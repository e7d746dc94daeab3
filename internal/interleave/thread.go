//go:build explore

package interleave

import (
	"iter"

	"github.com/weir-go/weir/internal/word"
)

// running is the running thread, or nil. Threads take turns.
var running *Thread

// Intercept makes threads stop before every operation on a word. It exempts operations for which the function isExempt
// returns true: operations on words that no other thread accesses. If isExempt is nil, it exempts no operation.
func Intercept(isExempt func(word.Access) bool) {
	word.Before = func(a word.Access) {
		if running != nil && (isExempt == nil || !isExempt(a)) {
			running.Pause(a)
		}
	}
}

// A Thread is a coroutine that stops before every operation on a word. It runs once for each execution. Make one with
// [NewThread].
type Thread struct {
	// Pending is the next operation. If the next operation is not an operation on a word, the field Word is nil: see
	// Pause.
	Pending word.Access
	// History is a hash of everything that the thread's operations have read. The code is deterministic, so equal
	// histories mean equal positions and variables. A World that knows that the thread has forgotten something may
	// reset History.
	History uint64

	resume func() (struct{}, bool)
	yield  func(struct{}) bool
	paused bool // the thread is before an operation, and not at its end
	unwind bool // the execution is abandoned
}

// NewThread returns a thread that will call the function run. The coroutine of the thread lives as long as the test.
func NewThread(run func()) *Thread {
	thread := &Thread{}
	thread.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		thread.yield = yield
		for {
			runOnce(run)
			yield(struct{}{})
		}
	})
	return thread
}

// unwound is the panic that takes a thread out of a call.
type unwound struct{}

func runOnce(run func()) {
	defer func() {
		if r := recover(); r != nil && r != any(unwound{}) {
			panic(r)
		}
	}()
	run()
}

// Pause stops the thread before an operation. It is called within the thread: by every operation on a word, after
// [Intercept]. Before a step that is not an operation on a word, call Pause with the zero Access.
func (t *Thread) Pause(a word.Access) {
	t.Pending, t.paused = a, true
	t.yield(struct{}{})
	t.paused = false
	if t.unwind {
		panic(unwound{})
	}
}

// Resume lets the thread run until it is before its next operation, or at its end.
func (t *Thread) Resume() {
	running = t
	t.resume()
	running = nil
}

// Rewind takes the thread back to its start. Then call Resume to bring it to its first operation.
func (t *Thread) Rewind() {
	if t.paused {
		t.unwind = true
		t.Resume()
	}
	*t = Thread{resume: t.resume, yield: t.yield}
}

// Step lets the thread make its pending operation and run to the next operation. It returns the values of the word
// before and after the operation. It adds the value that the thread has read to the thread's history.
func (t *Thread) Step() (from, to uint64) {
	a := t.Pending
	if a.Word == nil {
		t.Resume()
		return 0, 0
	}
	from = a.Word.Peek()
	t.Resume()
	to = a.Word.Peek()
	result := from
	switch a.Op {
	case word.Store:
		result = 0
	case word.CompareAndSwap:
		result = Bit(from == a.Old)
	case word.Add:
		result = to
	}
	t.History = Mix(t.History, result)
	return from, to
}
