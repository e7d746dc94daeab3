//go:build explore

package explore

import (
	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/shard"
)

// A thread makes its calls one after the other. Its history has the results of the calls, and the values that the
// current call has read.
type thread struct {
	*interleave.Thread
	name    int
	program []call

	done     int      // the number of calls that have returned
	dead     bool     // it never runs again
	returned *outcome // the outcome if a call returned in the last step, otherwise nil
	before   uint64   // the history when the current call began

	// The fields below describe the current call:
	clock          int64   // the latest time that it has read from the clock
	replaces       int     // how far it is in a replacement of the plan: see world.forgetReads
	startWatermark int64   // the watermark when the call began
	watermark      int64   // the latest watermark that it has read
	grant          int     // the number of its latest take among the key's grants, from 1 on
	tenure         uint64  // the tenure of the key in which that take was made
	entered        uint64  // the tick of its entry in a log
	charged        int     // how often it wrote a bucket
	amount         uint64  // tokens that it was charged, if it is a charge
	wrote          bool    // it changed a slot
	disturbed      bool    // another thread changed a word
	refusable      bool    // at some moment its bucket had less than the cost
	sights         []sight // the debts of its key that the call could have seen
	ownedSlots     uint64  // slots of its probe window that were owned at some moment
}

// A sight is a debt that a call could have seen. This is the debt of the call's key at the call's clock, or at the
// watermark if the watermark is later.
type sight struct {
	at   int64
	owed uint64
}

func (w *world) newThread(name int, program []call) *thread {
	th := &thread{name: name, program: program}
	read := func() int64 { return w.read(th) }
	th.Thread = interleave.NewThread(func() {
		var receipt shard.Receipt
		for _, c := range th.program {
			o := c.perform(w.tableOf(name), w.plans, &receipt, read)
			th.returned = &o
			th.done++
		}
	})
	return th
}

// read returns the time that a thread's call reads from the clock: the call's own time, or the latest time at which any
// call has begun. The later of the two counts.
func (w *world) read(th *thread) int64 {
	if c := th.call(); !c.clock {
		return c.clockTime()
	}
	th.clock = start
	for _, other := range w.threads {
		th.clock = max(th.clock, other.program[min(other.done, len(other.program)-1)].now())
	}
	th.History = interleave.Mix(th.History, uint64(th.clock))
	return th.clock
}

// now returns the time of the call under way.
func (th *thread) now() int64 {
	if c := th.call(); !c.clock {
		return c.now()
	}
	return th.clock
}

func (th *thread) finished() bool { return th.done == len(th.program) }

func (th *thread) call() call { return th.program[th.done] }

func (th *thread) rewind() {
	th.Rewind()
	*th = thread{Thread: th.Thread, name: th.name, program: th.program}
}

// begin resets the fields that describe a call, for the next call.
func (th *thread) begin(watermark int64) {
	*th = thread{
		Thread: th.Thread, name: th.name, program: th.program,
		done: th.done, before: th.before, grant: th.grant, tenure: th.tenure, entered: th.entered,
		startWatermark: watermark, watermark: watermark,
	}
	th.History = th.before
}

// hash returns a hash of the thread's part of the state, without its name, because threads with the same program are
// interchangeable.
func (th *thread) hash() uint64 {
	h := interleave.Mix(uint64(len(th.program)-th.done)|interleave.Bit(th.dead)<<32, th.History)
	for _, c := range th.program[th.done:] {
		h = interleave.Mix(interleave.Mix(interleave.Mix(h, c.key), uint64(c.verb)<<32|c.n|c.limit<<16|interleave.Bit(c.otherTable)<<48), uint64(c.late)^uint64(c.lead)<<32^uint64(c.fast)<<16)
	}
	if th.finished() {
		return h
	}
	h = interleave.Mix(h, uint64(th.startWatermark))
	sights := uint64(0) // their order does not matter
	for _, s := range th.sights {
		sights += interleave.Mix(interleave.Mix(1, uint64(s.at)), s.owed)
	}
	h = interleave.Mix(interleave.Mix(h, sights), th.ownedSlots)
	return interleave.Mix(h, interleave.Bit(th.disturbed)|interleave.Bit(th.refusable)<<1)
}
