//go:build explore

package explore

import (
	"iter"

	"github.com/weir-go/weir/internal/word"
	"github.com/weir-go/weir/shard"
)

// A thread is a coroutine that makes its calls one after the other and stops before
// every operation on a word. It is run again and again, once an execution.
type thread struct {
	name    int
	program []call
	resume  func() (struct{}, bool)
	yield   func(struct{}) bool

	made     int         // calls returned
	pending  word.Access // the operation that comes next
	returned *outcome    // what the last step made a call return, or nil
	unwind   bool        // the execution is given up

	// history stands for all that the thread knows: a hash of what its calls
	// returned and of what the operations of the present call have read. The code is
	// deterministic, so equal histories are equal positions and equal variables.
	history uint64
	before  uint64 // history when the present call began

	// About the present call:
	floor     int64   // the mark when it began
	mark      int64   // the mark that it has read last
	charged   int     // buckets that it wrote
	wrote     bool    // it changed a slot
	disturbed bool    // another thread changed a word
	refusable bool    // there was a moment at which its bucket had less than the cost
	sights    []sight // what there was to see of its key, at any moment
}

// A sight is what a call could have seen: that its key owed so many tokens at a time, which
// is that of its clock, or the mark if that was later.
type sight struct {
	at   int64
	owed uint64
}

// newThread returns a thread that has not begun. Its coroutine lives as long as the
// test does.
func newThread(name int, program []call, table *shard.Table, plans [3]*shard.Plan) *thread {
	th := &thread{name: name, program: program}
	th.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		th.yield = yield
		for {
			th.run(table, plans)
			yield(struct{}{})
		}
	})
	return th
}

// unwound is the panic that takes a thread out of a call.
type unwound struct{}

// run makes the calls.
func (th *thread) run(table *shard.Table, plans [3]*shard.Plan) {
	defer func() {
		if r := recover(); r != nil && r != any(unwound{}) {
			panic(r)
		}
	}()
	for _, c := range th.program {
		o := c.perform(table, plans)
		th.returned = &o
		th.made++
	}
}

// pause is called in the coroutine, before every operation.
func (th *thread) pause(a word.Access) {
	th.pending = a
	th.yield(struct{}{})
	if th.unwind {
		panic(unwound{})
	}
}

func (th *thread) finished() bool { return th.made == len(th.program) }

// call returns the call under way.
func (th *thread) call() call { return th.program[th.made] }

// rewind takes the thread back to before its first call.
func (th *thread) rewind() {
	if !th.finished() && th.pending.Word != nil {
		th.unwind = true
		th.resume()
	}
	*th = thread{name: th.name, program: th.program, resume: th.resume, yield: th.yield}
}

// begin forgets what was about the call that returned.
func (th *thread) begin(mark int64) {
	*th = thread{
		name: th.name, program: th.program, resume: th.resume, yield: th.yield,
		made: th.made, pending: th.pending,
		history: th.before, before: th.before,
		floor: mark, mark: mark,
	}
}

// hash stands for the thread's part of the state. Threads of one program are
// interchangeable, so its name is not in it.
func (th *thread) hash() uint64 {
	h := mix(uint64(len(th.program)-th.made), th.history)
	for _, c := range th.program[th.made:] {
		h = mix(mix(mix(h, c.key), uint64(c.verb)<<32|c.n), uint64(c.late))
	}
	if th.finished() {
		return h
	}
	h = mix(h, uint64(th.floor))
	sights := uint64(0) // in whatever order
	for _, s := range th.sights {
		sights += mix(mix(1, uint64(s.at)), s.owed)
	}
	h = mix(h, sights)
	return mix(h, bit(th.disturbed)|bit(th.refusable)<<1)
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// mix returns a hash of two numbers. mix(0, 0) is not 0: having read a zero is not the
// same as having read nothing.
func mix(h, v uint64) uint64 {
	h = (h + 0x9e3779b97f4a7c15 ^ v) * 0xd6e8feb86659fd93
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return h ^ h>>29
}
