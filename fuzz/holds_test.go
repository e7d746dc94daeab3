package fuzz

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// These are the kinds of calls in a history of holds.
const (
	callHold = iota
	callSettle
	callLook
	callEnd // peeks, after all other calls
)

// A holding is one call in the history of one key. The call makes a hold with an estimate, settles a hold with a cost,
// or peeks.
type holding struct {
	what, hold int
	n, taken   uint64
	from       int64  // what the clock read before the call
	twice      bool   // other calls also settle the hold
	all        uint64 // for callEnd: a bit for each hold that was settled
}

type told struct {
	allowed   bool
	remaining uint64
	lost      uint64
	to        int64 // what the clock read after the call
}

// A heldWindowState is the model's state of one key's window: the number of the window, its tokens and, for each hold,
// the number of the window of the hold. A hold that was not made has the number 0. A settled hold has the constant
// settled.
type heldWindowState struct {
	window int64
	taken  uint64
	holds  [historyClients * historyCalls]int64
}

const settled = -1

// holdings returns the model of an aligned window. A call may have been decided at any time during the call at which
// its answer is right. This time must not be in a window before the window of the record. If several calls settle one
// hold, one of them takes effect, and it may return after the other calls.
func holdings(limit uint64, length int64) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{heldWindowState{}} },
		Step: func(state, input, output any) (next []any) {
			is, in, out := state.(heldWindowState), input.(holding), output.(told)
			first, last := max(is.window, in.from/length), max(is.window, out.to/length)
			for window := first; window <= last; window++ {
				after, taken := is, is.taken
				if window > is.window {
					taken = 0
				}
				write := func(taken uint64) { after.window, after.taken = window, taken }
				explained := false
				switch in.what {
				case callLook:
					explained = out.remaining == limit-taken
				case callEnd:
					explained = out.remaining == limit-taken
					for i, of := range is.holds {
						explained = explained && (of == settled) == (in.all>>i&1 == 1)
					}
				case callHold:
					if explained = out.allowed == (taken+in.n <= limit); out.allowed {
						write(taken + in.n)
						after.holds[in.hold] = window
						taken += in.n
					}
					explained = explained && out.remaining == limit-taken
				case callSettle:
					if in.twice && out.lost == 0 {
						next = append(next, is)
					}
					of := is.holds[in.hold]
					if of == settled {
						continue
					}
					after.holds[in.hold] = settled
					lost := uint64(0)
					switch {
					case in.n < in.taken:
						if of == window && window == is.window {
							after.taken -= in.taken - in.n
						}
					default:
						more := in.n - in.taken
						fits := min(more, limit-taken)
						if lost = more - fits; fits > 0 {
							write(taken + fits)
						}
					}
					explained = out.lost == lost
				}
				if explained {
					next = append(next, after)
				}
			}
			return next
		},
	}
	return m.ToModel()
}

// dealings runs a history of holds that any goroutine may settle, once, twice or never.
func dealings(t *testing.T, limit uint64, length time.Duration, step int64, seed uint64) (history []porcupine.Operation, dropped int) {
	var clock, stamp atomic.Int64
	clock.Store(noon)
	l, err := engine.New(engine.FixedWindow(limit, length).Aligned(), engine.MaxKeys(8), engine.Shards(1),
		engine.ClockFunc(func() time.Time { return time.Unix(0, clock.Load()) }), engine.SweepInterval(24*time.Hour))
	require.NoError(t, err)
	defer l.Close()
	k := l.Key("tenant")
	type held struct {
		number int
		taken  uint64
		hold   *engine.Receipt
	}
	var (
		lock    sync.Mutex
		open    []held
		numbers atomic.Int64
		all     sync.WaitGroup
		ready   atomic.Int32
		done    [historyClients][]porcupine.Operation
	)
	for client := range historyClients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			for ready.Add(1); ready.Load() < historyClients; { // all goroutines begin at the same time
				runtime.Gosched()
			}
			for range historyCalls {
				in := holding{what: []int{callHold, callHold, callSettle, callSettle, callSettle, callLook}[random.IntN(6)], n: 1 + random.Uint64N(limit)}
				var h held
				if in.what == callSettle {
					lock.Lock()
					if len(open) > 0 {
						h = open[random.IntN(len(open))]
					}
					lock.Unlock()
					if h.hold == nil {
						continue
					}
					in.hold, in.taken = h.number, h.taken
				}
				if step > 0 {
					clock.Add(random.Int64N(step))
				}
				if random.IntN(3) == 0 {
					runtime.Gosched()
				}
				if in.what == callHold {
					h = held{int(numbers.Add(1)) - 1, in.n, new(engine.Receipt)}
					in.hold = h.number
				}
				op := porcupine.Operation{ClientId: client, Call: stamp.Add(1)}
				in.from = clock.Load()
				var out told
				switch in.what {
				case callHold:
					var d engine.Decision
					d, *h.hold = l.Hold(k, in.n)
					out.allowed, out.remaining = d.Allowed, d.Remaining
				case callSettle:
					out.lost = h.hold.Settle(in.n)
				case callLook:
					out.remaining = l.Peek(k, 0).Remaining
				}
				out.to = clock.Load()
				op.Input, op.Output, op.Return = in, out, stamp.Add(1)
				done[client] = append(done[client], op)
				if out.allowed {
					lock.Lock()
					open = append(open, h)
					lock.Unlock()
				}
			}
		})
	}
	all.Wait()
	for _, calls := range done {
		history = append(history, calls...)
	}
	return ended(history, l.Peek(k, 0).Remaining, clock.Load(), stamp.Add(2)), len(open) - len(settledBy(history))
}

func settledBy(history []porcupine.Operation) map[int]int {
	by := map[int]int{}
	for _, op := range history {
		if in := op.Input.(holding); in.what == callSettle {
			by[in.hold]++
		}
	}
	return by
}

// The function ended adds a last peek, and records for each settlement whether other calls settle the same hold.
func ended(history []porcupine.Operation, remaining uint64, clock, stamp int64) []porcupine.Operation {
	end := holding{what: callEnd, from: clock}
	by := settledBy(history)
	for i := range history {
		in := history[i].Input.(holding)
		if in.what == callSettle {
			in.twice = by[in.hold] > 1
			end.all |= 1 << in.hold
		}
		history[i].Input = in
	}
	return append(history, porcupine.Operation{Call: stamp, Return: stamp + 1, Input: end, Output: told{remaining: remaining, to: clock}})
}

// TestHoldsAreLinearizable (I9, I1, I2): goroutines make holds, peek, and settle each other's holds, even twice or
// never. The answers must be possible in some order of the calls.
func TestHoldsAreLinearizable(t *testing.T) {
	n := uint64(1500)
	if testing.Short() {
		n = 150
	}
	for name, step := range map[string]int64{"the clock stands": 0, "the clock runs": second / 4, "the clock runs faster": second} {
		t.Run(name, func(t *testing.T) {
			const limit = 5
			seen := map[int]int{}
			dropped := 0
			for seed := range n {
				history, never := dealings(t, limit, time.Second, step, seed)
				dropped += never
				for _, op := range history {
					seen[op.Input.(holding).what]++
				}
				if !porcupine.CheckOperations(holdings(limit, second), history) {
					for _, op := range history {
						t.Logf("%d: %2d-%2d %+v: %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
					}
					require.Failf(t, "I9", "round %d: no order of these calls explains their answers", seed)
				}
			}
			assert.Positive(t, dropped)
			assert.Positive(t, seen[callSettle])
			t.Logf("%v, %d never settled", seen, dropped)
		})
	}
}

// TestBrokenHoldsAreFound (I9): the check of the test above accepts possible histories, and rejects others.
func TestBrokenHoldsAreFound(t *testing.T) {
	call := func(from, to int64, in holding, out told) porcupine.Operation {
		in.from, out.to = in.from*second, out.to*second
		return porcupine.Operation{Call: from, Return: to, Input: in, Output: out}
	}
	hold := func(from, to int64, number int, n, remaining uint64, at int64) porcupine.Operation {
		return call(from, to, holding{what: callHold, hold: number, n: n, from: at}, told{allowed: true, remaining: remaining, to: at})
	}
	settle := func(from, to int64, number int, taken, n, lost uint64, at int64) porcupine.Operation {
		return call(from, to, holding{what: callSettle, hold: number, n: n, taken: taken, from: at}, told{lost: lost, to: at})
	}
	look := func(from, to int64, remaining uint64, at int64) porcupine.Operation {
		return call(from, to, holding{what: callLook, from: at}, told{remaining: remaining, to: at})
	}
	for name, c := range map[string]struct {
		want    bool
		history []porcupine.Operation
	}{
		"settled for less":                       {true, []porcupine.Operation{hold(1, 2, 0, 4, 1, 7), settle(3, 4, 0, 4, 1, 0, 7), look(5, 6, 4, 7)}},
		"given back twice":                       {false, []porcupine.Operation{hold(1, 2, 0, 2, 3, 7), hold(3, 4, 1, 2, 1, 7), settle(5, 6, 0, 2, 0, 0, 7), settle(7, 8, 0, 2, 0, 0, 7), look(9, 10, 5, 7)}},
		"settled twice, at one time":             {true, []porcupine.Operation{hold(1, 2, 0, 2, 3, 7), settle(3, 6, 0, 2, 1, 0, 7), settle(4, 5, 0, 2, 5, 0, 7), look(7, 8, 4, 7)}},
		"settled twice, and both count":          {false, []porcupine.Operation{hold(1, 2, 0, 2, 3, 7), settle(3, 6, 0, 2, 3, 0, 7), settle(4, 5, 0, 2, 4, 0, 7), look(7, 8, 0, 7)}},
		"nothing comes back to the next window":  {true, []porcupine.Operation{hold(1, 2, 0, 4, 1, 7), hold(3, 4, 1, 3, 2, 8), settle(5, 6, 0, 4, 1, 0, 8), look(7, 8, 2, 8)}},
		"given back to the next window":          {false, []porcupine.Operation{hold(1, 2, 0, 4, 1, 7), hold(3, 4, 1, 3, 2, 8), settle(5, 6, 0, 4, 1, 0, 8), look(7, 8, 5, 8)}},
		"a dropped one has cost its estimate":    {true, []porcupine.Operation{hold(1, 2, 0, 4, 1, 7), look(3, 4, 1, 7)}},
		"a dropped one comes back by itself":     {false, []porcupine.Operation{hold(1, 2, 0, 4, 1, 7), look(3, 4, 5, 7)}},
		"more than the limit is held":            {false, []porcupine.Operation{hold(1, 3, 0, 4, 1, 7), hold(2, 4, 1, 4, 1, 7)}},
		"what it cost more is charged":           {true, []porcupine.Operation{hold(1, 2, 0, 4, 1, 7), settle(3, 4, 0, 4, 9, 4, 7), look(5, 6, 0, 7)}},
		"what it cost more is charged, not lost": {false, []porcupine.Operation{hold(1, 2, 0, 4, 1, 7), settle(3, 4, 0, 4, 9, 5, 7), look(5, 6, 0, 7)}},
	} {
		last := c.history[len(c.history)-1].Output.(told)
		history := ended(c.history, last.remaining, last.to, 100)
		assert.Equal(t, c.want, porcupine.CheckOperations(holdings(5, second), history), name)
	}
}
