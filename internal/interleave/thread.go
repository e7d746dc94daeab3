//go:build explore

package interleave

import (
	"iter"

	"github.com/weir-go/weir/internal/word"
)

// running is the thread that runs, if one does: threads take turns.
var running *Thread

// Intercept has every operation of a thread on a word stop before it, but for those that pass lets through:
// for words that no other thread touches. A nil pass lets none through.
func Intercept(pass func(word.Access) bool) {
	word.Before = func(a word.Access) {
		if running != nil && (pass == nil || !pass(a)) {
			running.Pause(a)
		}
	}
}

// A Thread is a coroutine that stops before every operation on a word. It is run again and
// again, once an execution. Make one with [NewThread].
type Thread struct {
	// Pending is the operation that comes next. Its Word is nil if that is none of a word's: see Pause.
	Pending word.Access
	// History stands for all that the thread knows: a hash of what its operations have
	// read. The code is deterministic, so equal histories are equal positions and equal variables. A
	// World that knows that the thread has forgotten something may set it back.
	History uint64

	resume func() (struct{}, bool)
	yield  func(struct{}) bool
	paused bool // it stands before an operation, and not at its end
	unwind bool // the execution is given up
}

// NewThread returns a thread that will do what run does, and has not begun. Its coroutine lives as
// long as the test does.
func NewThread(run func()) *Thread {
	th := &Thread{}
	th.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		th.yield = yield
		for {
			once(run)
			yield(struct{}{})
		}
	})
	return th
}

// unwound is the panic that takes a thread out of a call.
type unwound struct{}

func once(run func()) {
	defer func() {
		if r := recover(); r != nil && r != any(unwound{}) {
			panic(r)
		}
	}()
	run()
}

// Pause stops the thread before an operation. It is called within the thread: by every operation on a word
// ([Intercept]), and with the zero Access before a step that is no operation on a word.
func (th *Thread) Pause(a word.Access) {
	th.Pending, th.paused = a, true
	th.yield(struct{}{})
	th.paused = false
	if th.unwind {
		panic(unwound{})
	}
}

// Resume lets the thread go on until it stands before its next operation, or at its end.
func (th *Thread) Resume() {
	running = th
	th.resume()
	running = nil
}

// Rewind takes the thread back to before its first operation. It has not begun, then: Resume.
func (th *Thread) Rewind() {
	if th.paused {
		th.unwind = true
		th.Resume()
	}
	*th = Thread{resume: th.resume, yield: th.yield}
}

// Step lets the thread do the operation that it stands before and go on to the next. It returns what the
// word held before and afterwards, and enters in the history what the thread has learned.
func (th *Thread) Step() (from, to uint64) {
	a := th.Pending
	if a.Word == nil {
		th.Resume()
		return 0, 0
	}
	from = a.Word.Peek()
	th.Resume()
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
	th.History = Mix(th.History, result)
	return from, to
}
