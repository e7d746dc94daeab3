//go:build explore

package explore

import (
	"fmt"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// A scenario is what the explorer explores: a table, the calls that are made on it one
// by one before, and the threads whose calls are then interleaved in every way.
//
// Unless the rate says otherwise a token is a nanosecond is a tick, so that a clock
// can be read in tokens.
type scenario struct {
	name        string
	rate        float64   // tokens a second; 0 means 1e9
	burst       uint64    // 0 means 1
	plans       [2]uint64 // the bursts of the second and third plan, if there are any
	log         uint64    // the limit of a sliding log with a window of logWindow; 0 means another algorithm
	fixed       uint64    // the limit of a fixed window; its calls must be at one time
	counter     uint64    // the limit of a sliding window counter; likewise
	probeWindow int       // slots in the window
	slots       uint64    // slots in the table; 0 means one window
	probeBound  bool      // homes have probe bounds that change; else each is the whole window
	overflow    shard.Overflow
	before      []call
	threads     [][]call
	large       bool // explored with -large only
}

// logWindow is how long a request stays in a log, in nanoseconds, which are ticks.
const logWindow = 1000

// start is the time at which the tables are made.
const start = 1000

// A verb is what a call does.
type verb uint8

const (
	take verb = iota
	peek
	reset
	sweep
	sweepEpoch
	refund
	adopt
	reserve
	cancel
)

// A call is one call of the table's interface. Its clock reads start+late.
type call struct {
	verb verb
	key  uint64
	late int64
	n    uint64
}

// givesBack reports whether the call is a refund, of one take or of none in particular.
func (c call) givesBack() bool { return c.verb == refund || c.verb == cancel }

func (c call) now() int64 { return start + c.late }

func (c call) String() string {
	switch c.verb {
	case take:
		return fmt.Sprintf("take %d of key %d at %d", c.n, c.key, c.late)
	case peek:
		return fmt.Sprintf("look at key %d at %d", c.key, c.late)
	case reset:
		return fmt.Sprintf("reset key %d", c.key)
	case refund:
		return fmt.Sprintf("refund %d to key %d at %d", c.n, c.key, c.late)
	case reserve:
		return fmt.Sprintf("reserve %d of key %d at %d", c.n, c.key, c.late)
	case cancel:
		return fmt.Sprintf("give back what was taken last, of key %d at %d", c.key, c.late)
	case adopt:
		return fmt.Sprintf("adopt plan %d at %d", c.n, c.late)
	}
	if c.verb == sweepEpoch {
		return fmt.Sprintf("sweep an epoch at %d", c.late)
	}
	return fmt.Sprintf("sweep at %d", c.late)
}

// at returns the call made by a clock that reads late nanoseconds after the start.
func (c call) at(late int64) call { c.late = late; return c }

func takes(key, n uint64) call { return call{verb: take, key: key, n: n} }
func peeks(key uint64) call    { return call{verb: peek, key: key} }
func resets(key uint64) call   { return call{verb: reset, key: key} }
func sweeps() call             { return call{verb: sweep} }
func sweepsEpoch() call        { return call{verb: sweepEpoch} }
func refunds(key, n uint64) call {
	return call{verb: refund, key: key, n: n}
}

// adopts changes to another of the scenario's plans, whose burst is another.
func adopts(plan uint64) call { return call{verb: adopt, n: plan} }

// reserves takes ahead, and is ready to wait for patience.
func reserves(key, n uint64) call { return call{verb: reserve, key: key, n: n} }

// cancels gives back what the thread's latest take or reservation took of the key.
func cancels(key, n uint64) call { return call{verb: cancel, key: key, n: n} }

// patience is how long a reservation waits, in nanoseconds.
const patience = 3

// An outcome is what a call returned.
type outcome struct {
	verdict shard.Verdict
	state   atomicbucket.State
	at      int64
	plan    *shard.Plan
	used    uint64 // of the limit, as a peek has seen it
}

func outcomeOf(o shard.Outcome, used uint64) outcome {
	return outcome{o.Verdict, o.State, o.At, o.Plan, used}
}

// perform makes the call. What it takes is entered in the receipt, which a cancel gives back.
func (c call) perform(t *shard.Table, plans [3]*shard.Plan, receipt *atomicbucket.Receipt) (o outcome) {
	p := t.Find(c.key)
	switch c.verb {
	case take:
		out := t.Take(p, c.now(), c.n, 0)
		if o = outcomeOf(out, 0); out.Verdict == shard.Admitted {
			*receipt = out.Receipt(0)
		}
	case reserve:
		out := t.Reserve(p, c.now(), c.n, 0, patience)
		if o = outcomeOf(out, 0); out.Verdict == shard.Admitted {
			*receipt = out.Receipt(0)
		}
	case cancel:
		if *receipt == (atomicbucket.Receipt{}) { // nothing was taken; a call makes an operation
			t.Peek(p, c.now(), 0, 0)
		} else {
			o = outcomeOf(t.Refund(p, c.now(), c.n, 0, *receipt), 0)
		}
		*receipt = atomicbucket.Receipt{}
	case peek:
		out, status := t.Peek(p, c.now(), 0, 0)
		o = outcomeOf(out, out.Plan.Quota(0).Tokens-status.Remaining)
	case reset:
		t.Reset(p)
	case sweep:
		t.Sweep(c.now(), nil)
	case sweepEpoch:
		t.SweepEpoch(c.now(), nil)
	case refund:
		o = outcomeOf(t.Refund(p, c.now(), c.n, 0, atomicbucket.Receipt{}), 0) // if there is no record nothing is used
	case adopt:
		t.Adopt(plans[c.n], c.now())
	}
	return o
}
