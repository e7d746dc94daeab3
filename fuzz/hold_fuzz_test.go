package fuzz

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/reference"
)

// A holder is a model of a key, with the calls that these tests need.
type holder interface {
	Take(nanos int64, n uint64) bool
	Charge(nanos int64, n, bound uint64) (charged uint64)
	Remaining(nanos int64) uint64
	Mark() reference.Mark
	GiveBack(nanos int64, of reference.Mark, n uint64)
}

// heldLimit is the limit of every policy in the tests of holds. All of its tokens come back within heldWindow.
const (
	heldLimit  = 10
	heldWindow = 10 * time.Second
)

// heldPolicies has the policies in the tests of holds, with the number of tokens that a key may owe.
var heldPolicies = []struct {
	policy engine.Policy
	most   uint64
	model  func() holder
}{
	{engine.TokenBucket(engine.Per(heldLimit, heldWindow), heldLimit), 10 * heldLimit, func() holder { return reference.NewOwed(uint64(heldWindow/heldLimit), heldLimit) }},
	{engine.FixedWindow(heldLimit, heldWindow), heldLimit, func() holder { return reference.NewFixedWindow(heldLimit, heldWindow, false) }},
	{engine.FixedWindow(heldLimit, heldWindow).Aligned(), heldLimit, func() holder { return reference.NewFixedWindow(heldLimit, heldWindow, true) }},
	{engine.SlidingWindow(heldLimit, heldWindow), heldLimit, func() holder { return reference.NewSlidingWindow(heldLimit, heldWindow) }},
	{engine.SlidingLog(heldLimit, heldWindow), heldLimit, func() holder { return reference.NewSlidingLog(heldLimit, heldWindow) }},
	{engine.BatchRefill(3, heldWindow/4, heldLimit), 10 * heldLimit, func() holder { return reference.NewOwedBatches(3, heldWindow/4, heldLimit) }},
	{engine.Concurrency(heldLimit, heldWindow), heldLimit, func() holder { return reference.NewConcurrency(heldLimit, heldWindow) }},
}

const heldKeys = 2

// A cashier makes holds and settlements with a limiter and a model of each key.
type cashier struct {
	limiter *engine.Limiter
	keys    [heldKeys]engine.Key
	models  [heldKeys]holder
	most    uint64
	now     func() int64
}

func newCashier(t *testing.T, which int, clock *hand) *cashier {
	p := heldPolicies[which%len(heldPolicies)]
	l, err := engine.New(p.policy, engine.MaxKeys(100), engine.Shards(1), engine.ClockFunc(clock.now), engine.SweepInterval(24*time.Hour))
	require.NoError(t, err)
	c := &cashier{limiter: l, most: p.most, now: clock.nanos.Load}
	for i := range heldKeys {
		c.keys[i], c.models[i] = l.KeyUint64(uint64(i)), p.model()
	}
	return c
}

// A deal is a hold with what the model knows about it.
type deal struct {
	hold  *engine.Receipt
	with  *cashier
	key   int
	taken uint64
	mark  reference.Mark
}

func (c *cashier) take(key int, estimate uint64) (d deal, ok bool) {
	d = deal{with: c, key: key, taken: min(estimate, heldLimit)}
	if d.taken > 0 {
		ok = c.models[key].Take(c.now(), d.taken)
		d.mark = c.models[key].Mark()
		return d, ok
	}
	return d, true
}

// settle settles a hold in the model, and returns how many tokens are lost at the bound of the key's debt.
func (d deal) settle(actual uint64) (lost uint64) {
	m, now := d.with.models[d.key], d.with.now()
	if actual < d.taken {
		m.GiveBack(now, d.mark, d.taken-actual)
		return 0
	}
	more := actual - d.taken
	return more - m.Charge(now, more, d.with.most)
}

// FuzzHold (I1, I2): the fuzzer chooses the bytes for replayHolds.
func FuzzHold(f *testing.F) {
	f.Add([]byte{0, 4})
	f.Fuzz(func(t *testing.T, data []byte) { replayHolds(t, data) })
}

// TestHoldsAgainstTheirModels (I1, I2): replayHolds with random bytes, for every pair of algorithms.
func TestHoldsAgainstTheirModels(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 4
	}
	random := rand.New(rand.NewPCG(19, 19))
	for first := range heldPolicies {
		for second := range heldPolicies {
			for range rounds {
				data := []byte{byte(first), byte(second)}
				for range 600 {
					data = append(data, byte(random.Uint32()))
				}
				replayHolds(t, data)
			}
		}
	}
}

// replayHolds makes the calls that a tape of bytes encodes, and compares their results with exact models. The calls are
// takes, holds of one or two limits, and settlements in time, late, twice or never. Two bytes choose the algorithms.
// Each call has a byte for its kind, its hold or key, and the amount.
func replayHolds(t *testing.T, data []byte) {
	b := tape(data)
	clock := new(hand)
	clock.nanos.Store(noon)
	both := [2]*cashier{newCashier(t, int(b.byte()), clock), newCashier(t, int(b.byte()), clock)}
	var open, closed []deal
	for _, c := range both {
		defer c.limiter.Close()
	}
	for calls := 0; len(b) > 0 && calls < 300; calls++ {
		what, which, much := b.byte(), int(b.byte()), uint64(b.byte())
		c, key := both[which&1], which>>1%heldKeys
		switch what % 8 {
		case 0, 1:
			got, h := c.limiter.Hold(c.keys[key], much%16)
			d, want := c.take(key, much%16)
			require.Equal(t, want, got.Allowed, "I1: a hold of %d", much%16)
			if d.hold = &h; want {
				open = append(open, d)
			}
		case 2, 3:
			if len(open) == 0 {
				continue
			}
			i := which % len(open)
			d := open[i]
			open = append(open[:i:i], open[i+1:]...)
			if what%8 == 3 && much < 32 { // the hold is never settled
				continue
			}
			closed = append(closed, d)
			require.Equal(t, d.settle(much%32), d.hold.Settle(much%32), "I2: %d of %d", much%32, d.taken)
		case 4:
			if len(closed) > 0 {
				require.Zero(t, closed[which%len(closed)].hold.Settle(much), "it is settled")
			}
		case 5:
			clock.set(clock.nanos.Load() + int64(heldWindow)/64*int64(much))
		case 6:
			require.Equal(t, c.models[key].Take(c.now(), 1+much%4), c.limiter.TakeKey(c.keys[key], 1+much%4).Allowed, "I1")
		case 7:
			open = append(open, holdBoth(t, both, key, much)...)
		}
		for _, c := range both {
			for key, m := range c.models {
				require.Equal(t, m.Remaining(c.now()), c.limiter.Peek(c.keys[key], 0).Remaining, "I2: after call %d, %d", calls, what%8)
			}
		}
	}
}

func holdBoth(t *testing.T, both [2]*cashier, key int, much uint64) []deal {
	estimates := [2]uint64{1 + much&7, 1 + much>>4}
	var requests []engine.Request
	answers := make([]engine.Answer, len(both))
	for i, c := range both {
		requests = append(requests, engine.Request{Limiter: c.limiter, Key: c.keys[key], N: estimates[i], Hold: true})
	}
	got, err := engine.TakeAll(requests, answers)
	require.NoError(t, err)
	var deals []deal
	want := true
	for i, c := range both {
		d, ok := c.take(key, estimates[i])
		if !ok {
			want = false
			break
		}
		d.hold = &answers[i].Receipt
		deals = append(deals, d)
	}
	require.Equal(t, want, got, "I1: %d and %d", estimates[0], estimates[1])
	if !want {
		for _, d := range deals {
			require.Zero(t, d.settle(0))
		}
		return nil
	}
	if much%3 > 0 {
		return deals
	}
	require.Equal(t, deals[0].settle(much%32), answers[0].Receipt.Settle(much%32), "I2: the first of both")
	require.Equal(t, deals[1].settle(much%8), answers[1].Receipt.Settle(much%8), "I2: the second of both")
	return nil
}
