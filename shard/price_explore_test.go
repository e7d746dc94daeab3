//go:build explore

package shard

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
)

// The list after has the tiers of the plan that a call adopts. The list explored has the tiers of the plan before.
var after = []atomicbucket.Quota{{Token: 10, Tokens: 4}, {Token: 34, Tokens: 5}, {Token: 26, Tokens: 6}}

// The prices of these quotas have no common divisor. So a debt that is read at a wrong price is not a whole number of
// tokens.
var explored = []atomicbucket.Quota{{Token: 7, Tokens: 4}, {Token: 11, Tokens: 5}, {Token: 13, Tokens: 6}}

// A priceCall takes n tokens from a key under a quota, and then gives some of them back. If charges is set, it charges
// n tokens instead. If adopts is set, it replaces the plan instead. A quota number below the constant tiers names a
// quota with its own numbers. A higher number names a tier with the same numbers.
type priceCall struct {
	quota, n, back int
	other          bool // the call is for another key
	charges        bool
	adopts         bool
}

const tiers = 3

// noon is the time of all calls. It is a different tick under each plan.
const noon = start + 1000

// A priceWorld has one record, and concurrent calls on it under several quotas, all at the same time.
type priceWorld struct {
	table   *Table
	words   []*word.Word
	origin  []uint64
	threads []*priceThread
	trace   func(string)
	plans   map[atomicbucket.Tag]*Plan // the current plan, and the plan that a call adopts
	adopted *Plan                      // the plan that a call adopts, or nil
}

type priceThread struct {
	*interleave.Thread
	call     priceCall
	admitted uint64 // tokens that were admitted and not given back
	finished bool
}

// ticksOf returns a plan with a number of ticks in a nanosecond, and tiers with their ticks for a token.
func ticksOf(t *testing.T, ticks uint64, tiers ...atomicbucket.Quota) *Plan {
	algorithm, err := atomicbucket.NewTicks(time.Duration(1 << 51 / ticks))
	require.NoError(t, err)
	require.Equal(t, ticks, algorithm.Ticks(1))
	plan, err := NewPlan(&algorithm, 0, tiers...)
	require.NoError(t, err)
	return plan
}

func newPriceWorld(t *testing.T, before *priceCall, calls ...priceCall) *priceWorld {
	table, err := New(Config{Plan: ticksOf(t, 1, explored...), Slots: 1, Shards: 1, ProbeWindow: 1, Overflow: Refuse, Start: noon})
	require.NoError(t, err)
	table.MarkPages()
	w := &priceWorld{table: table, words: table.Words()}
	w.plans = map[atomicbucket.Tag]*Plan{atomicbucket.Live: table.Plan(), atomicbucket.Second: ticksOf(t, 2, after...)}
	if before != nil {
		before.make(w, new(uint64))
	}
	for _, p := range w.words {
		w.origin = append(w.origin, p.Peek())
	}
	for _, c := range calls {
		if c.adopts {
			w.adopted = w.plans[atomicbucket.Second]
		}
		th := &priceThread{call: c}
		th.Thread = interleave.NewThread(func() {
			th.call.make(w, &th.admitted)
			th.finished = true
		})
		w.threads = append(w.threads, th)
	}
	return w
}

func (c priceCall) make(w *priceWorld, admitted *uint64) {
	t := w.table
	if c.adopts {
		t.Adopt(w.adopted, clockAt(noon))
		return
	}
	p, q, hit := t.Find(1+interleave.Bit(c.other)), TierQuota(uint8(c.quota-tiers+1)), (*Table).HitTier
	if c.charges {
		o, n := Outcome{}, uint64(c.n)
		if _, _, o.Verdict = t.HitCharge(p, noon, n, q); o.Verdict == Undecided { // as a limiter does
			o, n = t.Charge(p, noon, noon, n, q, nil)
		}
		*admitted += n * interleave.Bit(o.Verdict == Admitted)
		return
	}
	if c.quota < tiers {
		q, hit = t.Plan().NewQuota(explored[c.quota]), (*Table).HitQuota
	}
	ends := t.Ends(p)
	o := Outcome{At: noon}
	if o.State, o.Plan, o.Verdict = hit(t, p, noon, uint64(c.n), q); o.Verdict == Undecided { // as a limiter does
		o = t.MissQuota(p, noon, uint64(c.n), q, nil)
	}
	if o.Verdict == Admitted {
		*admitted += uint64(c.n)
		var receipt Receipt
		receipt.Enter(&o, uint64(c.n), q, ends)
		if c.back > 0 {
			t.RefundOf(p, func() int64 { return noon }, uint64(c.back), &receipt)
			*admitted -= uint64(c.back)
		}
	}
}

// owes returns the debt of a record and the price of its tokens.
func (w *priceWorld) owes() (owed [2]uint64) {
	sl := w.table.first
	s := atomicbucket.State((*word.Word)(unsafe.Pointer(&sl.state)).Peek())
	if !s.IsLive() {
		return owed
	}
	word := w.table.priceWord(sl, s).Peek()
	price := word>>13 + 1
	if !atomicbucket.PriceIs(word, s, price) {
		price = 0
	}
	bucket := &w.plans[s.Tag()].bucket
	return [2]uint64{bucket.Debt(s.Record(), bucket.Ticks(noon)), price}
}

func (w *priceWorld) Restart() {
	for _, th := range w.threads {
		th.Rewind()
		*th = priceThread{Thread: th.Thread, call: th.call}
	}
	for i, p := range w.words {
		p.Poke(w.origin[i])
	}
	for _, th := range w.threads {
		th.Resume()
	}
}

func (w *priceWorld) Unfinished() (threads uint64) {
	for i, th := range w.threads {
		threads |= (1 - interleave.Bit(th.finished)) << i
	}
	return threads
}

func (w *priceWorld) Outcomes(int) int { return 1 }

func (w *priceWorld) Step(thread, _ int) error {
	th := w.threads[thread]
	a := th.Pending
	from, to := th.Thread.Step()
	owes := w.owes()
	if w.trace != nil {
		w.trace(fmt.Sprintf("thread %d: %v of %p: %#x -> %#x, owes %d at a price of %d", thread, a.Op, a.Word, from, to, owes[0], owes[1]))
	}
	spare := uint64(0) // ticks are added if an offer is for the previous plan
	if w.adopted != nil {
		spare = owes[1] / 2
	}
	if owes[0] > 0 && (owes[1] == 0 || owes[0]%owes[1] > spare) {
		return fmt.Errorf("I2: the record owes %d ticks at a price of %d", owes[0], owes[1])
	}
	return nil
}

func (w *priceWorld) Hash() (h uint64) {
	for i, p := range w.words {
		h += interleave.Mix(uint64(i)+1, p.Peek())
	}
	for i, th := range w.threads {
		h += interleave.Mix(interleave.Mix(uint64(i)+1<<32, th.History), interleave.Bit(th.finished))
	}
	return h
}

// CheckEnd checks that the record owes exactly the tokens that were admitted and not given back. Only a refund after
// takes at another price may have given back nothing.
func (w *priceWorld) CheckEnd() error {
	kept, given := uint64(0), uint64(0)
	for _, th := range w.threads {
		kept += th.admitted
		given += uint64(th.call.back)
	}
	owes, one := w.owes(), uint64(0)
	if w.origin[0] != 0 {
		one = 1
	}
	if tokens := owes[0] / max(owes[1], 1); tokens < kept+one || tokens > kept+one+given || tokens > 6 {
		return fmt.Errorf("I1: %d tokens were admitted, and the record owes %d", kept+one, tokens)
	}
	if w.adopted == nil || owes[0] == 0 {
		return nil
	}
	if s := atomicbucket.State((*word.Word)(unsafe.Pointer(&w.table.first.state)).Peek()); s.Tag() != w.adopted.live {
		return fmt.Errorf("R9: the record is %v, and follows a plan that is not the present one", s)
	}
	// If two calls race, the record may have the price of one call and the tier of the other. Its debt then still takes
	// the same time to come back. So the price is checked only for one call next to the change of the plan.
	if th := w.threads[0]; len(w.threads) == 2 && th.admitted > 0 && th.call.quota >= tiers {
		if want := w.adopted.Quota(uint8(th.call.quota - tiers + 1)).Token; owes[1] != want {
			return fmt.Errorf("R24: a token costs %d, and %d by the tier of the last take", owes[1], want)
		}
	}
	return nil
}

func (w *priceWorld) Trace(tell func(string)) { w.trace = tell }

// TestPricesInEveryOrder (I1, I2, I5): calls with several prices are made on one key in every order of their steps.
// After each step the record owes a whole number of tokens at its price, and at the end the admitted tokens.
func TestPricesInEveryOrder(t *testing.T) {
	one := &priceCall{quota: 0, n: 1}
	for name, of := range map[string]struct {
		before *priceCall
		calls  []priceCall
	}{
		"two prices":         {one, []priceCall{{quota: 1, n: 1}, {quota: 2, n: 1}}},
		"the price before":   {one, []priceCall{{quota: 0, n: 1}, {quota: 1, n: 2}}},
		"the same new price": {one, []priceCall{{quota: 1, n: 1}, {quota: 1, n: 2}}},
		// None of these three calls waits for another.
		"three prices":               {one, []priceCall{{quota: 0, n: 1}, {quota: 1, n: 1}, {quota: 2, n: 1}}},
		"two prices, no record":      {nil, []priceCall{{quota: 0, n: 1}, {quota: 1, n: 1}}},
		"given back":                 {one, []priceCall{{quota: 0, n: 2, back: 2}, {quota: 1, n: 1}}},
		"given back at a new price":  {one, []priceCall{{quota: 1, n: 2, back: 1}, {quota: 0, n: 1}}},
		"given back at two prices":   {one, []priceCall{{quota: 1, n: 2, back: 2}, {quota: 2, n: 1, back: 1}}},
		"two tiers":                  {&priceCall{quota: tiers, n: 1}, []priceCall{{quota: tiers + 1, n: 1}, {quota: tiers, n: 2}}},
		"the same other tier":        {&priceCall{quota: tiers, n: 1}, []priceCall{{quota: tiers + 1, n: 1}, {quota: tiers + 1, n: 2}}},
		"two tiers, no record":       {nil, []priceCall{{quota: tiers, n: 1}, {quota: tiers + 1, n: 1}}},
		"a tier and a quota":         {one, []priceCall{{quota: tiers, n: 1}, {quota: 2, n: 1}}},
		"a tier that is given back":  {&priceCall{quota: tiers + 1, n: 1}, []priceCall{{quota: tiers + 1, n: 2, back: 2}, {quota: tiers, n: 1}}},
		"the last tokens of a tier":  {&priceCall{quota: tiers, n: 1}, []priceCall{{quota: tiers, n: 3}, {quota: tiers + 1, n: 4}}},
		"the last tokens of a limit": {&priceCall{quota: 0, n: 1}, []priceCall{{quota: 0, n: 3}, {quota: 1, n: 4}}},
	} {
		interleave.Test(t, name, false, func() (interleave.Report, error) {
			interleave.Intercept(nil)
			return interleave.Explore(newPriceWorld(t, of.before, of.calls...))
		})
	}
}

// TestAPlanOfPricesInEveryOrder (I1, I2, I5, I7): the calls run concurrently with a change of the ticks and rates.
// Afterwards the record has the price of the tier under which its key was last charged.
func TestAPlanOfPricesInEveryOrder(t *testing.T) {
	first, adopts := &priceCall{quota: tiers, n: 1}, priceCall{adopts: true}
	for name, of := range map[string]struct {
		before *priceCall
		calls  []priceCall
	}{
		"a tier":                  {first, []priceCall{{quota: tiers, n: 2}, adopts}},
		"another tier":            {first, []priceCall{{quota: tiers + 1, n: 2}, adopts}},
		"another tier, no record": {nil, []priceCall{{quota: tiers + 1, n: 2}, adopts}},
		"a charge of a tier":      {first, []priceCall{{quota: tiers + 1, n: 2, charges: true}, adopts}},
		"a quota":                 {&priceCall{quota: 0, n: 1}, []priceCall{{quota: 0, n: 2}, adopts}},
		"a tier and a quota":      {&priceCall{quota: 0, n: 1}, []priceCall{{quota: tiers + 2, n: 2}, adopts}},
		"another key":             {&priceCall{quota: tiers, n: 1, other: true}, []priceCall{{quota: tiers, n: 1}, adopts}},
	} {
		interleave.Test(t, name, false, func() (interleave.Report, error) {
			interleave.Intercept(nil)
			return interleave.Explore(newPriceWorld(t, of.before, of.calls...))
		})
	}
}
