//go:build explore

package lease

import (
	"fmt"

	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
	"github.com/weir-go/weir/redislimit/internal/script"
)

type verb uint8

const (
	take verb = iota
	look
	refund
	refill // no call: tokens come back in the store. Only used before the threads start
)

// A call is one call of package redislimit.
type call struct {
	verb verb
	n    uint64
	late int64
}

func (c call) String() string {
	switch c.verb {
	case take:
		return fmt.Sprintf("take %d at %d", c.n, c.late)
	case refund:
		return fmt.Sprintf("refund %d at %d", c.n, c.late)
	}
	if c.verb == refill {
		return fmt.Sprintf("%d come back", c.n)
	}
	return fmt.Sprintf("look at %d", c.late)
}

func (c call) at(late int64) call { c.late = late; return c }

// A lease uses 0 for "no time", so the clock of a lease starts later.
const start = 1000

func (c call) now() int64 { return start + c.late }

func takes(n uint64) call   { return call{verb: take, n: n} }
func looks() call           { return call{verb: look} }
func refills(n uint64) call { return call{verb: refill, n: n} }
func refunds(n uint64) call { return call{verb: refund, n: n} }

// A phase says which function of the lease a thread is in.
type phase uint8

const (
	elsewhere phase = iota
	taking
	asking
	settling
	applying
	failing
	looking
	refunding
	returning // asks the store to take back tokens for which the lease has no room
)

// A thread makes its calls one after the other. The fields from phase on are about the current call.
type thread struct {
	*interleave.Thread
	name    int
	program []call
	made    int    // calls that have returned
	loop    uint64 // the history when the thread last loaded a lease's word
	again   bool   // it has met a retired lease and starts over

	phase   phase
	lease   int           // the number of the lease that the call uses; 0 for none
	idle    bool          // the lease was not changed between this look and the previous one
	paid    int           // how many times this Take was charged
	said    *said         // the result of Take, if Take returned in this step
	gone    bool          // Expire returned gone in this step
	carried uint64        // the cost of its request that goes with the renewal; 0 for none
	told    *bool         // the result of Apply for that request, if Apply returned in this step
	debt    uint64        // the debt when it got the duty to ask the store
	taken   uint64        // tokens taken out of hand to be given back
	ask     script.Ask    // the question
	way     int           // the way in which the question ended
	answer  script.Answer // the answer, if there was one
	charged uint64        // the debt that the answer charged
}

type said struct {
	verdict Verdict
	renew   bool
}

func newThread(name int, program []call, w *world) *thread {
	th := &thread{name: name, program: program}
	th.Thread = interleave.NewThread(func() {
		for _, c := range th.program {
			switch c.verb {
			case take:
				w.take(th, c)
			case look:
				w.look(th, c)
			case refund:
				w.refund(th, c)
			case refill:
				w.store.refill(int64(c.n))
			}
			th.phase = elsewhere
			th.made++
		}
	})
	return th
}

func (th *thread) finished() bool { return th.made == len(th.program) }

func (th *thread) call() call { return th.program[th.made] }

func (th *thread) rewind() {
	th.Rewind()
	*th = thread{Thread: th.Thread, name: th.name, program: th.program}
}

// hash represents the thread's part of the state, but not its name, because threads with the same program are
// interchangeable.
func (th *thread) hash() uint64 {
	h := interleave.Mix(uint64(len(th.program)-th.made), th.History)
	for _, c := range th.program[th.made:] {
		h = interleave.Mix(interleave.Mix(h, uint64(c.verb)<<32|c.n), uint64(c.late))
	}
	return h
}

// take does what Limiter.local and Limiter.carry of package redislimit do.
func (w *world) take(th *thread, c call) {
	for {
		l := w.lookup(th)
		th.phase = taking
		v, renew := l.Take(c.n, c.now)
		th.said = &said{v, renew}
		if renew {
			th.phase, th.carried = asking, 0
			if v == Unknown {
				th.carried = c.n
			}
			w.question(th, l, l.Renewal(c.now(), c.n, v == Unknown))
		}
		th.phase = elsewhere
		if v != Retired {
			return
		}
		w.forget(th)
		th.again = true
	}
}

// look is Limiter.keep for one key.
func (w *world) look(th *thread, c call) {
	if th.lease = int(w.table.Load()); th.lease == 0 {
		return
	}
	l := w.lease(th)
	th.phase = looking
	settle, gone := l.Expire(c.now())
	if settle {
		th.phase, th.carried = settling, 0
		w.question(th, l, l.Settlement(c.now()))
	}
	th.phase = elsewhere
	if th.gone = gone; gone {
		w.forget(th)
	}
}

// refund is Limiter.Refund.
func (w *world) refund(th *thread, c call) {
	if th.lease = int(w.table.Load()); th.lease > 0 {
		l := w.lease(th)
		th.phase = refunding
		if l.Refund(c.n) {
			return
		}
	}
	th.phase, th.ask = returning, script.Ask{Returned: c.n}
	th.Pause(word.Access{})
}

func (w *world) question(th *thread, l *Lease, ask script.Ask) {
	th.ask = ask
	th.Pause(word.Access{})
	if now := th.call().now(); th.way == answered {
		th.phase = applying
		paid := l.Apply(th.answer, now)
		th.told = &paid
	} else {
		th.phase = failing
		l.Fail(now)
	}
}

func (w *world) lookup(th *thread) *Lease {
	if th.lease = int(w.table.Load()); th.lease == 0 {
		fresh := New(w.terms, 0)
		if w.table.CompareAndSwap(0, uint64(len(w.leases))+1) {
			w.leases = append(w.leases, held{lease: fresh})
		}
		th.lease = int(w.table.Peek())
		th.History = interleave.Mix(th.History, uint64(th.lease))
	}
	return w.lease(th)
}

func (w *world) lease(th *thread) *Lease { return w.leases[th.lease-1].lease }

func (w *world) forget(th *thread) { w.table.CompareAndSwap(uint64(th.lease), 0) }
