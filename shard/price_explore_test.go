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

// The prices of these quotas have no common divisor, so a debt that is read by another price is no number of tokens.
var explored = []atomicbucket.Quota{{Token: 7, Tokens: 4}, {Token: 11, Tokens: 5}, {Token: 13, Tokens: 6}}

// A priceCall takes n tokens of the one key, by the quota of a number, and gives back some of them. The quota is a
// value, or from tiers on, a tier of the same numbers.
type priceCall struct{ quota, n, back int }

const tiers = 3

// A priceWorld is calls under several quotas beside each other, at one moment, on one record.
type priceWorld struct {
	table   *Table
	words   []*word.Word
	origin  []uint64
	threads []*priceThread
	trace   func(string)
}

type priceThread struct {
	*interleave.Thread
	call     priceCall
	admitted uint64 // and not given back
	finished bool
}

func newPriceWorld(t *testing.T, before *priceCall, calls ...priceCall) *priceWorld {
	algorithm, err := atomicbucket.NewTicks(20 * 24 * time.Hour)
	require.NoError(t, err)
	require.Equal(t, uint64(1), algorithm.Ticks(1))
	plan, err := NewPlan(&algorithm, 0, explored...)
	require.NoError(t, err)
	table, err := New(Config{Plan: plan, Slots: 1, Shards: 1, ProbeWindow: 1, Start: start})
	require.NoError(t, err)
	table.MarkPages()
	w := &priceWorld{table: table, words: table.Words()}
	if before != nil {
		before.make(w.table, new(uint64))
	}
	for _, p := range w.words {
		w.origin = append(w.origin, p.Peek())
	}
	for _, c := range calls {
		th := &priceThread{call: c}
		th.Thread = interleave.NewThread(func() {
			th.call.make(w.table, &th.admitted)
			th.finished = true
		})
		w.threads = append(w.threads, th)
	}
	return w
}

func (c priceCall) make(t *Table, admitted *uint64) {
	p, q, hit := t.Find(1), TierQuota(uint8(c.quota-tiers+1)), (*Table).HitTier
	if c.quota < tiers {
		q, hit = t.Plan().NewQuota(explored[c.quota]), (*Table).HitQuota
	}
	ends := t.Ends(p)
	o := Outcome{At: start}
	if o.State, o.Plan, o.Verdict = hit(t, p, start, uint64(c.n), q); o.Verdict == Undecided { // as a limiter does
		o = t.MissQuota(p, start, uint64(c.n), q, nil)
	}
	if o.Verdict == Admitted {
		*admitted += uint64(c.n)
		var receipt Receipt
		receipt.Enter(&o, uint64(c.n), q, ends)
		if c.back > 0 {
			t.RefundOf(p, func() int64 { return start }, uint64(c.back), &receipt)
			*admitted -= uint64(c.back)
		}
	}
}

// owes returns what a record owes, and what a token of it costs.
func (t *Table) owes() (owed [2]uint64) {
	sl := t.first
	s := atomicbucket.State((*word.Word)(unsafe.Pointer(&sl.state)).Peek())
	if !s.IsLive() {
		return owed
	}
	w := t.priceWord(sl, s).Peek()
	price := w>>13 + 1
	if !atomicbucket.PriceIs(w, s, price) {
		price = 0
	}
	return [2]uint64{t.Plan().bucket.Debt(s.Record(), uint64(start)), price}
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

func (w *priceWorld) Ways(int) int { return 1 }

func (w *priceWorld) Step(thread, _ int) error {
	th := w.threads[thread]
	a := th.Pending
	from, to := th.Thread.Step()
	owes := w.table.owes()
	if w.trace != nil {
		w.trace(fmt.Sprintf("thread %d: %v of %p: %#x -> %#x, owes %d at a price of %d", thread, a.Op, a.Word, from, to, owes[0], owes[1]))
	}
	if owes[0] > 0 && (owes[1] == 0 || owes[0]%owes[1] != 0) {
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

// CheckEnd: the record owes what was admitted and not given back, in tokens. A take that was given back when others of
// another price came behind it may have given back nothing.
func (w *priceWorld) CheckEnd() error {
	kept, given := uint64(0), uint64(0)
	for _, th := range w.threads {
		kept += th.admitted
		given += uint64(th.call.back)
	}
	owes, one := w.table.owes(), uint64(0)
	if w.origin[0] != 0 {
		one = 1
	}
	if tokens := owes[0] / max(owes[1], 1); tokens < kept+one || tokens > kept+one+given || tokens > 6 {
		return fmt.Errorf("I1: %d tokens were admitted, and the record owes %d", kept+one, tokens)
	}
	return nil
}

func (w *priceWorld) Trace(tell func(string)) { w.trace = tell }

// TestPricesInEveryOrder (I1, I2, I5): calls of several prices on one key, with a record and without one, in every
// order of their steps. At each step the record owes a number of tokens at the price that it says, and in the end it
// owes what was admitted.
func TestPricesInEveryOrder(t *testing.T) {
	one := &priceCall{0, 1, 0}
	for name, of := range map[string]struct {
		before *priceCall
		calls  []priceCall
	}{
		"two prices":         {one, []priceCall{{1, 1, 0}, {2, 1, 0}}},
		"the price before":   {one, []priceCall{{0, 1, 0}, {1, 2, 0}}},
		"the same new price": {one, []priceCall{{1, 1, 0}, {1, 2, 0}}},
		// None of these waits for another.
		"three prices":               {one, []priceCall{{0, 1, 0}, {1, 1, 0}, {2, 1, 0}}},
		"two prices, no record":      {nil, []priceCall{{0, 1, 0}, {1, 1, 0}}},
		"given back":                 {one, []priceCall{{0, 2, 2}, {1, 1, 0}}},
		"given back at a new price":  {one, []priceCall{{1, 2, 1}, {0, 1, 0}}},
		"given back at two prices":   {one, []priceCall{{1, 2, 2}, {2, 1, 1}}},
		"two tiers":                  {&priceCall{tiers, 1, 0}, []priceCall{{tiers + 1, 1, 0}, {tiers, 2, 0}}},
		"the same other tier":        {&priceCall{tiers, 1, 0}, []priceCall{{tiers + 1, 1, 0}, {tiers + 1, 2, 0}}},
		"two tiers, no record":       {nil, []priceCall{{tiers, 1, 0}, {tiers + 1, 1, 0}}},
		"a tier and a quota":         {one, []priceCall{{tiers, 1, 0}, {2, 1, 0}}},
		"a tier that is given back":  {&priceCall{tiers + 1, 1, 0}, []priceCall{{tiers + 1, 2, 2}, {tiers, 1, 0}}},
		"the last tokens of a tier":  {&priceCall{tiers, 1, 0}, []priceCall{{tiers, 3, 0}, {tiers + 1, 4, 0}}},
		"the last tokens of a limit": {&priceCall{0, 1, 0}, []priceCall{{0, 3, 0}, {1, 4, 0}}},
	} {
		interleave.Test(t, name, false, func() (interleave.Report, error) {
			interleave.Intercept(nil)
			return interleave.Explore(newPriceWorld(t, of.before, of.calls...))
		})
	}
}
