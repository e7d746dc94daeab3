package fuzz

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/shard"
)

// These are the kinds of calls in a history.
const (
	callTake = iota
	callReset
	callPeek
	callCharge
)

// A call describes one call that a goroutine makes for a key.
type call struct {
	what  int
	key   uint64
	now   uint64 // in ticks, which in these tests are nanoseconds
	cost  uint64 // in ticks
	limit uint64 // the limit of a take under a quota, in ticks; 0 means the limit of the table
}

type answer struct {
	unknown   bool          // the call does not return what is left
	verdict   shard.Verdict // the verdict of a take or a charge
	charged   uint64        // what a charge took, in ticks
	at        uint64        // the time at which a take or a peek was decided
	debt      uint64        // the debt at that time of the record that the call returned, in ticks
	had       bool          // whether a reset found a record
	watermark uint64        // the watermark after a reset
}

// bucketModel returns the model of one key's bucket. The state is the time at which the bucket is full. Every call,
// even a refusal, must be possible at a moment between its start and its return.
func bucketModel(burst uint64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return uint64(0) },
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts, of := [][]porcupine.Operation{}, map[uint64]int{}
			for _, op := range history {
				key := op.Input.(call).key
				i, ok := of[key]
				if !ok {
					i = len(parts)
					of[key], parts = i, append(parts, nil)
				}
				parts[i] = append(parts[i], op)
			}
			return parts
		},
		Step: func(state, input, output any) (bool, any) {
			full, in, out := state.(uint64), input.(call), output.(answer)
			debt, burst := max(full, out.at)-out.at, burst
			if in.limit > 0 {
				burst = in.limit
			}
			switch in.what {
			case callPeek:
				return out.debt == debt, full
			case callReset:
				if out.had {
					return full > 0, uint64(0)
				}
				// The reset found no record: nothing was taken, or the record was forgotten because it was idle at the
				// watermark.
				return full <= out.watermark, full
			}
			if in.what == callCharge && out.verdict <= shard.Admitted {
				bound := shard.DefaultMaxDebt * burst
				fits := min(in.cost, (bound-min(debt, bound))/second*second)
				if fits == 0 {
					return out.charged == 0 && out.debt == debt, full
				}
				return out.charged == fits && out.debt == debt+fits, out.at + debt + fits
			}
			switch out.verdict {
			case shard.Admitted:
				return debt+in.cost <= burst && out.debt == debt+in.cost, out.at + debt + in.cost
			case shard.Refused:
				return debt+in.cost > burst && out.debt == debt, full
			case shard.NoRoom:
				// The call took nothing, but saw that the key has no record. So the bucket must be full.
				return debt == 0, full
			}
			return false, full
		},
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%+v: %+v", input, output)
		},
	}
}

// A recorder makes calls on a table and records the history. Stamps come from a counter, so a call that returns before
// another call starts has the smaller stamp.
type recorder struct {
	table *shard.Table
	stamp atomic.Int64
	clock atomic.Int64 // the latest time given to a call
}

func (r *recorder) make(c call, client int) porcupine.Operation {
	algorithm, place := bucketOf(r.table), r.table.Find(c.key)
	a, op := answer{}, porcupine.Operation{ClientId: client, Input: c, Call: r.stamp.Add(1)}
	switch c.what {
	case callTake:
		quota, plan := shard.TierQuota(0), r.table.Plan()
		if token := algorithm.Cost(1); c.limit > 0 {
			quota = plan.NewQuota(atomicbucket.Quota{Token: token, Tokens: c.limit / token})
		}
		o := r.table.TakeAt(place, int64(c.now), int64(c.now), c.cost/algorithm.Cost(1), quota, nil)
		s, at, v := o.State, o.At, o.Verdict
		a = answer{verdict: v, at: uint64(at), debt: algorithm.Debt(s.Record(), algorithm.Ticks(at))}
	case callCharge:
		n, quota := c.cost/algorithm.Cost(1), shard.TierQuota(0)
		s, plan, v := r.table.HitCharge(place, int64(c.now), n, quota) // as a limiter does
		o, charged := shard.Outcome{State: s, Plan: plan, At: int64(c.now), Verdict: v}, n
		if v == shard.Undecided {
			o, charged = r.table.Charge(place, int64(c.now), int64(c.now), n, quota, nil)
		}
		a = answer{verdict: o.Verdict, at: uint64(o.At), debt: algorithm.Debt(o.State.Record(), algorithm.Ticks(o.At)),
			charged: algorithm.Cost(charged)}
	case callPeek:
		o, _ := r.table.Peek(place, int64(c.now), 0, 0)
		s, at := o.State, o.At
		a = answer{at: uint64(at), debt: algorithm.Debt(s.Record(), algorithm.Ticks(at))}
	case callReset:
		a = answer{had: r.table.Reset(place), watermark: uint64(r.table.Watermark())}
	}
	op.Output, op.Return = a, r.stamp.Add(1)
	return op
}

// A scene describes the table of a history, and the calls of its goroutines.
type scene struct {
	keys, slots uint64
	probeWindow int
	burst       uint64
	step        int64 // the largest time by which a call moves the clock; 0 means that the clock stands still
	costs       uint64
	resets      bool
	noRoom      bool // there is not room for all keys
}

const (
	historyClients = 4
	historyCalls   = 7 // calls of each client
)

func (s scene) history(t *testing.T, seed uint64) (*shard.Table, []porcupine.Operation) {
	algorithm := numbers{1, time.Second, s.burst}.algorithm(t)
	tb, err := shard.New(shard.Config{Plan: planOf(t, algorithm), Slots: s.slots, Shards: 1, ProbeWindow: s.probeWindow, Overflow: shard.Refuse, Start: start})
	require.NoError(t, err)
	r := &recorder{table: tb}
	r.clock.Store(start)
	cost := bucketOf(r.table).Cost(1)
	var histories [historyClients][]porcupine.Operation
	var all sync.WaitGroup
	var ready atomic.Int32
	for client := range historyClients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			calls := make([]porcupine.Operation, 0, historyCalls)
			for ready.Add(1); ready.Load() < historyClients; { // all goroutines begin at the same time
				runtime.Gosched()
			}
			for range historyCalls {
				c := call{key: random.Uint64N(s.keys), cost: cost * (1 + random.Uint64N(s.costs))}
				if random.IntN(3) == 0 { // under a quota
					c.limit = max(c.cost, cost*(1+random.Uint64N(2*s.burst)))
				}
				now := int64(start)
				if s.step > 0 {
					now = r.clock.Add(random.Int64N(s.step))
				}
				switch random.IntN(12) {
				case 0, 1:
					c.what = callPeek
				case 2:
					if s.resets {
						c.what = callReset
					}
				case 3:
					now -= random.Int64N(3*s.step + 1) // a late call
				case 4:
					r.table.Sweep(now, nil)
				case 5:
					c.what, c.limit, c.cost = callCharge, 0, cost*(1+random.Uint64N(12*s.burst))
				}
				if random.IntN(3) == 0 {
					runtime.Gosched()
				}
				c.now = uint64(now)
				calls = append(calls, r.make(c, client))
			}
			histories[client] = calls
		})
	}
	all.Wait()
	var history []porcupine.Operation
	for _, calls := range histories {
		history = append(history, calls...)
	}
	return r.table, history
}

// requireLinearizable checks that a history is linearizable. It also checks that no call except a reset was decided
// before its own time, or after the latest time of any call.
func requireLinearizable(t *testing.T, s scene, seed uint64, table *shard.Table, history []porcupine.Operation) (admitted, refused, noRoom int) {
	latest := uint64(start)
	for _, op := range history {
		latest = max(latest, op.Input.(call).now)
	}
	for _, op := range history {
		in, out := op.Input.(call), op.Output.(answer)
		if in.what == callReset {
			continue
		}
		require.GreaterOrEqual(t, out.at, in.now, "round %d: %+v", seed, op)
		if in.now < latest {
			require.LessOrEqual(t, out.at, latest, "round %d: %+v", seed, op)
		}
		if in.what == callTake {
			switch out.verdict {
			case shard.Admitted:
				admitted++
			case shard.Refused:
				refused++
			case shard.NoRoom:
				noRoom++
			}
		}
	}
	model := bucketModel(bucketOf(table).Cost(s.burst))
	if !porcupine.CheckOperations(model, history) {
		for _, op := range history {
			t.Logf("%d: %2d-%2d %s", op.ClientId, op.Call, op.Return, model.DescribeOperation(op.Input, op.Output))
		}
		require.Failf(t, "I9", "round %d: no order of these calls explains their answers", seed)
	}
	return admitted, refused, noRoom
}

const second = 1_000_000_000 // the cost of a token in these tests, in ticks

var scenes = map[string]scene{
	// No token comes back, so all admitted tokens stay in the records.
	"the clock stands": {keys: 3, slots: 8, probeWindow: 8, burst: 4, costs: 3, resets: true},
	// Records become idle after some calls, and are forgotten.
	"the clock runs": {keys: 3, slots: 8, probeWindow: 8, burst: 3, costs: 2, resets: true, step: second / 2},
	// The clock runs faster than keys can spend, so most records are idle.
	"idle records": {keys: 4, slots: 4, probeWindow: 4, burst: 2, costs: 2, step: 3 * second},
	// Three keys share two slots, so the slots change hands.
	"recycled slots": {keys: 3, slots: 2, probeWindow: 2, burst: 2, costs: 2, resets: true, step: second, noRoom: true},
	// With one slot for two keys and a burst of one, every admitted take drains its bucket.
	"one slot": {keys: 2, slots: 1, probeWindow: 1, burst: 1, costs: 1, resets: true, step: second, noRoom: true},
}

// TestHistoriesAreLinearizable (I9, I1, I2, I3, I7, I8): goroutines take, peek and reset keys, while sweeps run and
// slots change hands. The answers must be possible in an order that agrees with real time. The answers include the
// key's debt and, with running clocks and late calls, the time of each decision.
func TestHistoriesAreLinearizable(t *testing.T) {
	n := 1500
	if testing.Short() {
		n = 250
	}
	for name, s := range scenes {
		t.Run(name, func(t *testing.T) {
			admitted, refused, noRoom := 0, 0, 0
			for seed := range uint64(n) {
				table, history := s.history(t, seed)
				a, r, none := requireLinearizable(t, s, seed, table, history)
				admitted, refused, noRoom = admitted+a, refused+r, noRoom+none
				require.Zero(t, table.Stats().Evictions)
			}
			t.Logf("%d admitted, %d refused, %d without room", admitted, refused, noRoom)
			assert.Positive(t, admitted)
			assert.Positive(t, refused)
			if s.noRoom {
				assert.Positive(t, noRoom)
			}
		})
	}
}

// TestBrokenHistoriesAreFound (I9): the check of the test above rejects wrong histories, each with one thing that a
// table must not do. Next to each wrong history is a variant in which this thing is allowed.
func TestBrokenHistoriesAreFound(t *testing.T) {
	const burst = 2 * second
	take := func(from, to int64, now, at, cost uint64, v shard.Verdict, debt uint64) porcupine.Operation {
		return porcupine.Operation{
			Call: from, Return: to,
			Input:  call{what: callTake, key: 1, now: now, cost: cost},
			Output: answer{verdict: v, at: at, debt: debt},
		}
	}
	under := func(limit uint64, op porcupine.Operation) porcupine.Operation {
		in := op.Input.(call)
		in.limit = limit
		op.Input = in
		return op
	}
	charge := func(from, to int64, at, cost, charged, debt uint64) porcupine.Operation {
		v := shard.Admitted
		if charged == 0 {
			v = shard.Refused
		}
		return porcupine.Operation{Call: from, Return: to, Input: call{what: callCharge, key: 1, now: at, cost: cost},
			Output: answer{verdict: v, at: at, debt: debt, charged: charged}}
	}
	look := func(from, to int64, at, debt uint64) porcupine.Operation {
		return porcupine.Operation{Call: from, Return: to, Input: call{what: callPeek, key: 1, now: at}, Output: answer{at: at, debt: debt}}
	}
	reset := func(from, to int64, had bool, watermark uint64) porcupine.Operation {
		return porcupine.Operation{Call: from, Return: to, Input: call{what: callReset, key: 1}, Output: answer{had: had, watermark: watermark}}
	}
	for name, c := range map[string]struct {
		want    bool
		history []porcupine.Operation
	}{
		"two at once within the burst": {true, []porcupine.Operation{
			take(1, 3, start, start, second, shard.Admitted, burst),
			take(2, 4, start, start, second, shard.Admitted, second),
		}},
		"two at once that both saw the other's tokens": {false, []porcupine.Operation{
			take(1, 3, start, start, burst, shard.Admitted, burst),
			take(2, 4, start, start, burst, shard.Admitted, burst),
		}},
		"two charges that show as one": {false, []porcupine.Operation{
			take(1, 3, start, start, second, shard.Admitted, second),
			take(2, 4, start, start, second, shard.Admitted, second),
		}},
		"refused beside the take that drained it": {true, []porcupine.Operation{
			take(1, 3, start, start, burst, shard.Admitted, burst),
			take(2, 4, start, start, second, shard.Refused, burst),
		}},
		"refused before the take that drained it": {false, []porcupine.Operation{
			take(1, 2, start, start, second, shard.Refused, burst),
			take(3, 4, start, start, burst, shard.Admitted, burst),
		}},
		"refused after the reset": {false, []porcupine.Operation{
			take(1, 2, start, start, burst, shard.Admitted, burst),
			reset(3, 4, true, start),
			take(5, 6, start, start, second, shard.Refused, burst),
		}},
		"refused beside the reset": {true, []porcupine.Operation{
			take(1, 2, start, start, burst, shard.Admitted, burst),
			reset(3, 6, true, start),
			take(4, 5, start, start, second, shard.Refused, burst),
		}},
		"charged twice": {false, []porcupine.Operation{
			take(1, 2, start, start, second, shard.Admitted, second),
			look(3, 4, start, burst),
		}},
		"refused although its own limit is higher": {false, []porcupine.Operation{
			take(1, 2, start, start, burst, shard.Admitted, burst),
			under(2*burst, take(3, 4, start, start, second, shard.Refused, burst)),
		}},
		"admitted although its own limit is lower": {false, []porcupine.Operation{
			take(1, 2, start, start, second, shard.Admitted, second),
			under(second, take(3, 4, start, start, second, shard.Admitted, burst)),
		}},
		"a charge that took all": {true, []porcupine.Operation{
			take(1, 2, start, start, burst, shard.Admitted, burst),
			charge(3, 5, start, 3*second, 3*second, burst+3*second),
			take(4, 6, start, start, second, shard.Refused, burst+3*second),
		}},
		"a charge that did not say what was lost": {false, []porcupine.Operation{
			charge(1, 2, start, 30*second, 30*second, 20*second),
		}},
		"a charge that is bounded": {true, []porcupine.Operation{
			charge(1, 2, start, 30*second, 20*second, 20*second),
			charge(3, 4, start, second, 0, 20*second),
		}},
		"admitted beside what a charge owes": {false, []porcupine.Operation{
			charge(1, 2, start, 3*second, 3*second, 3*second),
			take(3, 4, start+second, start+second, second, shard.Admitted, 3*second),
		}},
		"a look at what was there before": {false, []porcupine.Operation{
			take(1, 2, start, start, second, shard.Admitted, second),
			look(3, 4, start, 0),
		}},
		"a look at what was there a moment later": {true, []porcupine.Operation{
			take(1, 2, start, start, second, shard.Admitted, second),
			look(3, 4, start+second/2, second/2),
		}},
		"a record forgotten too soon": {false, []porcupine.Operation{
			take(1, 2, start, start, second, shard.Admitted, second),
			reset(3, 4, false, start+second-1),
		}},
		"a record forgotten in time": {true, []porcupine.Operation{
			take(1, 2, start, start, second, shard.Admitted, second),
			reset(3, 4, false, start+second),
		}},
		"a full bucket in the past": {false, []porcupine.Operation{
			take(1, 2, start, start, burst, shard.Admitted, burst),
			take(3, 4, start+1, start+1, burst, shard.Admitted, burst),
		}},
		"a full bucket at the watermark": {true, []porcupine.Operation{
			take(1, 2, start, start, burst, shard.Admitted, burst),
			take(3, 4, start+1, start+burst, burst, shard.Admitted, burst),
		}},
		"no room although there is a record": {false, []porcupine.Operation{
			take(1, 2, start, start, burst, shard.Admitted, burst),
			take(3, 4, start, start, second, shard.NoRoom, second),
		}},
		"no room": {true, []porcupine.Operation{
			take(1, 2, start, start, second, shard.NoRoom, second),
			take(3, 4, start+burst, start+burst, burst, shard.Admitted, burst),
		}},
	} {
		assert.Equal(t, c.want, porcupine.CheckOperations(bucketModel(burst), c.history), name)
	}

	// This history of the real table has a refusal that did not happen.
	s := scenes["the clock stands"]
	table, history := s.history(t, 1)
	s.resets = false
	requireLinearizable(t, s, 1, table, history)
	last := history[0].Return
	for _, op := range history {
		last = max(last, op.Return)
	}
	fresh := uint64(99)
	history = append(history, porcupine.Operation{
		Call: last + 1, Return: last + 2,
		Input:  call{key: fresh, now: start, cost: second},
		Output: answer{verdict: shard.Refused, at: start, debt: 4 * second},
	})
	assert.False(t, porcupine.CheckOperations(bucketModel(bucketOf(table).Cost(s.burst)), history))
}
