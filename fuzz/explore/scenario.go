//go:build explore

package explore

import (
	"fmt"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// A scenario is a table, calls that are made first, and threads whose calls are interleaved in every order.
//
// Unless rate is set, a token is a nanosecond and a tick, so clocks can be read in tokens.
type scenario struct {
	name        string
	rate        float64   // tokens per second; 0 means 1e9
	burst       uint64    // 0 means 1
	plans       [2]uint64 // the bursts of the second and third plan, if there are any
	fine        uint64    // ticks per nanosecond of the plans in the field plans; more ticks make their skews smaller
	log         uint64    // the limit of a sliding log with a window of logWindow; 0 means another algorithm
	fixed       uint64    // the limit of a fixed window; all calls must be at the same time
	counter     uint64    // the limit of a sliding window counter; all calls must be at the same time
	inFlight    uint64    // the limit in flight, with periods of logWindow; plans has limits. A thread enters once
	probeWindow int       // slots in a probe window
	slots       uint64    // slots in the table; 0 means one probe window
	probeBound  bool      // probe bounds change; otherwise each is the whole probe window
	pages       bool      // pages are marked as they are used; otherwise all are marked
	overflow    shard.Overflow
	refusals    shard.RefusalCharge // what a refusal costs
	before      []call
	threads     [][]call
	mortal      bool // threads are processes of a shared table, and the first may die at any step
	large       bool // explored only with -large
	endless     bool // not explored completely, because that takes hours; used only for mutants
}

// logWindow is how long a request stays in a log, in nanoseconds. A tick is a nanosecond here.
const logWindow = 1000

const start = 1000

type verb uint8

const (
	take verb = iota
	peek
	reset
	sweep
	sweepEpoch
	sweepPart
	refund
	adopt
	reserve
	cancel
	charge
	upTo
)

// A call is one call of the table's interface. Its clock reads start+late+fast.
type call struct {
	verb       verb
	key        uint64
	late       int64
	n          uint64
	minimum    uint64 // for an upTo: the fewest tokens that it accepts
	limit      uint64 // the quota of a take, in tokens; 0: the limit of the plan
	otherTable bool   // the quota was made for another table
	lead       int64  // how far the time of a take is ahead of its clock
	fast       int64  // how far its clock is ahead of the machine's clock
	clock      bool   // a cancel or a change of the plan reads a clock during the call: see thread.read
	wantsRetry bool   // a take also requests the time at which to try again
}

// givesBack reports whether the call is a refund, with or without a receipt.
func (c call) givesBack() bool { return c.verb == refund || c.verb == cancel }

func (c call) now() int64 { return start + c.late }

func (c call) clockTime() int64 { return c.now() + c.fast }

// time returns when the call is decided, unless the watermark is later.
func (c call) time() int64 { return c.now() + c.lead }

func (c call) String() string {
	if c.fast > 0 {
		return fmt.Sprintf("%v, by a clock that is %d ahead", c.withClockAhead(0), c.fast)
	}
	switch c.verb {
	case take:
		if c.limit > 0 {
			return fmt.Sprintf("take %d of key %d at %d, under a limit of %d", c.n, c.key, c.late, c.limit)
		}
		if c.lead > 0 {
			return fmt.Sprintf("take %d of key %d at %d, ahead of a clock at %d", c.n, c.key, c.late+c.lead, c.late)
		}
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
		if c.clock {
			return fmt.Sprintf("give back what was taken last, of key %d by the clock", c.key)
		}
		return fmt.Sprintf("give back what was taken last, of key %d at %d", c.key, c.late)
	case charge:
		return fmt.Sprintf("charge %d to key %d at %d", c.n, c.key, c.late)
	case upTo:
		return fmt.Sprintf("take %d to %d of key %d at %d", c.minimum, c.n, c.key, c.late)
	case adopt:
		if c.clock {
			return fmt.Sprintf("adopt plan %d by the clock", c.n)
		}
		return fmt.Sprintf("adopt plan %d at %d", c.n, c.late)
	}
	if c.verb == sweepPart {
		return fmt.Sprintf("sweep a page at %d", c.late)
	}
	if c.verb == sweepEpoch {
		return fmt.Sprintf("sweep an epoch at %d", c.late)
	}
	return fmt.Sprintf("sweep at %d", c.late)
}

// The method at returns the call with a clock that reads start+late.
func (c call) at(late int64) call { c.late = late; return c }

// leads returns the call with another time, which is ahead of the call's clock by lead nanoseconds.
func (c call) leads(lead int64) call { c.lead = lead; return c }

// withClockAhead returns the call with another clock, which is ahead of the machine's clock by fast nanoseconds.
func (c call) withClockAhead(fast int64) call { c.fast = fast; return c }

// byClock returns the call with a clock to read, instead of a time.
func (c call) byClock() call { c.clock = true; return c }

// withRetry returns the call, changed to ask for the time of the next try.
func (c call) withRetry() call { c.wantsRetry = true; return c }

func (c call) withLimit(limit uint64) call { c.limit = limit; return c }

// withOtherLimit returns the call with a quota of another table.
func (c call) withOtherLimit(limit uint64) call { c.limit, c.otherTable = limit, true; return c }

func (c call) quota(plan *shard.Plan) shard.Quota {
	if c.limit == 0 {
		return shard.TierQuota(0)
	}
	q := plan.Quota(0)
	if c.otherTable {
		plan = otherPlan
	}
	return plan.NewQuota(atomicbucket.Quota{Token: q.Token, Tokens: c.limit})
}

// otherPlan is the plan of another table. The quotas of that table have another unit.
var otherPlan = func() *shard.Plan {
	algorithm, err := atomicbucket.NewTokenBucket(1e9, 1e9, 1)
	if err != nil {
		panic(err)
	}
	plan, err := shard.NewPlan(&algorithm, 0)
	if err != nil {
		panic(err)
	}
	return plan
}()

func takes(key, n uint64) call { return call{verb: take, key: key, n: n} }
func peeks(key uint64) call    { return call{verb: peek, key: key} }
func resets(key uint64) call   { return call{verb: reset, key: key} }
func sweeps() call             { return call{verb: sweep} }
func sweepsEpoch() call        { return call{verb: sweepEpoch} }

// sweepsPart returns a sweep that stops after the first page.
func sweepsPart() call { return call{verb: sweepPart} }

func refunds(key, n uint64) call {
	return call{verb: refund, key: key, n: n}
}

func adopts(plan uint64) call { return call{verb: adopt, n: plan} }

// reserves returns a call that reserves tokens. The call accepts a wait of up to patience nanoseconds.
func reserves(key, n uint64) call { return call{verb: reserve, key: key, n: n} }

// cancels returns a call that gives back n tokens of the thread's latest take or reservation.
func cancels(key, n uint64) call { return call{verb: cancel, key: key, n: n} }

func charges(key, n uint64) call { return call{verb: charge, key: key, n: n} }

// takesUpTo returns a call that takes tokens of a key, at most the maximum. It is refused if the key has fewer tokens
// than the minimum.
func takesUpTo(key, minimum, maximum uint64) call {
	return call{verb: upTo, key: key, minimum: minimum, n: maximum}
}

// maxDebt bounds the debt of a key, as a multiple of its limit.
const maxDebt = 2

const patience = 3

type outcome struct {
	verdict shard.Verdict
	state   atomicbucket.State
	at      int64
	plan    *shard.Plan
	used    uint64 // the used part of the limit that a peek saw, or the tokens that a charge or an upTo took
	ends    shard.Ends
	ended   uint32 // tenures that the call itself began to end by force
	atOnce  bool   // the answer was that the caller may try again at once
}

func outcomeOf(o shard.Outcome, used uint64) outcome {
	return outcome{verdict: o.Verdict, state: o.State, at: o.At, plan: o.Plan, used: used, ended: o.Ended()}
}

// perform makes the call. It stores the receipt of a take in *receipt, so that a later cancel can give the tokens back.
// The function read is the clock.
func (c call) perform(t *shard.Table, plans [3]*shard.Plan, receipt *shard.Receipt, read func() int64) (o outcome) {
	p := t.Find(c.key)
	switch c.verb {
	case take:
		ends, q := t.Ends(p), c.quota(plans[0])
		var status *atomicbucket.Status
		if c.wantsRetry {
			status = new(atomicbucket.Status)
		}
		out := t.TakeAt(p, c.time()+c.fast, c.clockTime(), c.n, q, status)
		o = outcomeOf(out, 0)
		o.atOnce = status != nil && status.RetryAfter == 0
		if out.Verdict == shard.Admitted {
			o.ends = ends
			receipt.Enter(&out, c.n, q, ends)
		}
	case reserve:
		ends := t.Ends(p)
		out := t.Reserve(p, c.now(), c.n, 0, patience)
		if o = outcomeOf(out, 0); out.Verdict == shard.Admitted {
			o.ends, *receipt = ends, out.Receipt(c.n, 0, ends)
		}
	case cancel:
		if *receipt == (shard.Receipt{}) { // nothing was taken, but each call must make an operation
			t.Peek(p, c.now(), 0, 0)
		} else {
			o = outcomeOf(t.RefundBy(p, read, c.n, 0, *receipt), 0)
		}
		*receipt = shard.Receipt{}
	case charge:
		q := c.quota(plans[0])
		s, plan, verdict := t.HitCharge(p, c.now(), c.n, q) // as a limiter does
		out, charged := shard.Outcome{State: s, Plan: plan, At: c.now(), Verdict: verdict}, c.n
		if verdict == shard.Undecided {
			out, charged = t.Charge(p, c.now(), c.now(), c.n, q, nil)
		}
		o = outcomeOf(out, charged)
	case upTo:
		ends, q := t.Ends(p), c.quota(plans[0])
		out, taken := t.TakeUpTo(p, c.now(), c.now(), c.minimum, c.n, q, nil)
		if o = outcomeOf(out, taken); out.Verdict == shard.Admitted {
			o.ends = ends
			receipt.Enter(&out, taken, q, ends)
		}
	case peek:
		out, status := t.Peek(p, c.now(), 0, 0)
		o = outcomeOf(out, out.Plan.Quota(0).Tokens-status.Remaining)
	case reset:
		t.Reset(p)
	case sweep:
		t.Sweep(c.clockTime(), nil)
	case sweepEpoch:
		t.SweepEpoch(c.clockTime(), nil)
	case sweepPart:
		t.Sweep(c.clockTime(), func() bool { return false })
	case refund:
		o = outcomeOf(t.Refund(p, c.now(), c.n, 0, shard.Receipt{}), 0) // if there is no record, nothing is used
	case adopt:
		if t.IsShared() {
			t.Replace([]uint64{c.n}, read)
		} else {
			t.Adopt(plans[c.n], c.now)
		}
	}
	return o
}
