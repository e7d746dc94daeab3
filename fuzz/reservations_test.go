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

	"github.com/weir-go/weir/shard"
)

// These are the kinds of calls in a history of reservations. A history also has the kind callTake and the kinds after
// it.
const (
	callReserve = callPeek + 2 + iota
	callCancel
)

type granted struct {
	key, cost uint64
	at        uint64 // when it was decided, in ticks
	full      uint64 // the tick at which the bucket is full after it
	version   uint64 // the version of the record after it
	receipt   shard.Receipt
	cancelled bool
}

// The method starts returns the tick at which a grant's request may continue.
func (g granted) starts(burst uint64) uint64 { return max(g.at, g.full-min(burst, g.full)) }

type booking struct {
	call
	of granted
}

type booked struct {
	answer
	version uint64 // the version of the record
}

// A reservedBucket is the model's state of one key's bucket: when it is full, the record's version, and when the last
// reservation is due. The version grows whenever tokens are given back after a later take.
type reservedBucket struct{ full, version, promised uint64 }

// refunded returns how much of a grant is given back. The refund is calculated at the tick latest, and the bucket is
// full at the tick full. The flag changed says whether other calls have given back tokens since the grant. See
// atomicbucket.TokenBucket.Refund for the reasons.
func refunded(of granted, full, latest uint64, changed bool) uint64 {
	back := min(max(full, latest)-latest, of.cost)
	if changed {
		return min(back, of.cost-min(of.cost, latest-of.at))
	}
	return min(back, max(of.full, latest)-latest)
}

// reservations returns the model of a bucket for calls that can wait for patience ticks. A refund is calculated at the
// time at which the last reservation nearby is due (R25). This may be a reservation of another key, or of a refused
// call. So a refund may be calculated at any time up to the tick latest.
func reservations(burst, patience, latest uint64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return reservedBucket{} },
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			of := map[uint64][]porcupine.Operation{}
			for _, op := range history {
				of[op.Input.(booking).key] = append(of[op.Input.(booking).key], op)
			}
			for _, part := range of {
				parts = append(parts, part)
			}
			return parts
		},
		Step: func(state, input, output any) (bool, any) {
			is, in, out := state.(reservedBucket), input.(booking), output.(booked)
			owed, limit := max(is.full, out.at)-out.at, burst
			switch in.what {
			case callPeek:
				return out.debt == owed, is
			case callCancel:
				changed := is.version != in.of.version
				if !changed && is.full == in.of.full { // nothing was taken after the grant
					is.full -= min(owed, in.cost)
					return out.debt == max(is.full, out.at)-out.at && out.version == is.version, is
				}
				most := refunded(in.of, is.full, max(out.at, is.promised), changed)
				least := refunded(in.of, is.full, max(out.at, latest), changed)
				back := owed - min(owed, out.debt)
				is.full, is.version = out.at+owed-back, is.version+1
				return out.debt == owed-back && back >= least && back <= most && out.version == is.version, is
			case callReserve:
				limit += patience
			}
			if out.verdict == shard.Refused {
				return owed+in.cost > limit && out.debt == owed, is
			}
			if is.version == 0 { // the first take or reservation begins the tenure, in any slot
				is.version = out.version
			}
			is.full = out.at + owed + in.cost
			if wait := owed + in.cost - min(owed+in.cost, burst); wait > 0 {
				is.promised = max(is.promised, out.at+wait)
			}
			return owed+in.cost <= limit && out.debt == owed+in.cost && out.version == is.version, is
		},
	}
}

// bookings runs a history: goroutines take, reserve, peek, and give back earlier takes.
func bookings(t *testing.T, burst, keys uint64, step int64, patience time.Duration, seed uint64) (history []porcupine.Operation, grants [][]*granted) {
	algorithm := numbers{1, time.Second, burst}.algorithm(t)
	tb, err := shard.New(shard.Config{Plan: planOf(t, algorithm), Slots: 8, Shards: 1, ProbeWindow: 8, Overflow: shard.Refuse, Start: start})
	require.NoError(t, err)
	var clock, stamp atomic.Int64
	clock.Store(start)
	histories := make([][]porcupine.Operation, historyClients)
	grants = make([][]*granted, historyClients)
	var all sync.WaitGroup
	var ready atomic.Int32
	for client := range historyClients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			for ready.Add(1); ready.Load() < historyClients; { // all goroutines begin at the same time
				runtime.Gosched()
			}
			for range historyCalls {
				n := 1 + random.Uint64N(burst)
				in := booking{call: call{what: []int{callTake, callReserve, callReserve, callCancel, callCancel, callPeek}[random.IntN(6)], key: random.Uint64N(keys), cost: algorithm.Cost(n)}}
				var own []*granted // the grants that this goroutine may give back
				for _, g := range grants[client] {
					if !g.cancelled {
						own = append(own, g)
					}
				}
				var g *granted
				if in.what == callCancel {
					if len(own) == 0 {
						continue
					}
					g = own[random.IntN(len(own))]
					g.cancelled = true
					in.of, in.key, in.cost = *g, g.key, g.cost
					n = g.cost / algorithm.Cost(1)
				}
				now := int64(start)
				if step > 0 {
					now = clock.Add(random.Int64N(step))
				}
				if random.IntN(3) == 0 {
					runtime.Gosched()
				}
				in.now = uint64(now)
				place, op := tb.Find(in.key), porcupine.Operation{ClientId: client, Input: in, Call: stamp.Add(1)}
				var o shard.Outcome
				ends := tb.Ends(place)
				switch in.what {
				case callTake:
					o = tb.Take(place, now, n, 0)
				case callReserve:
					o = tb.Reserve(place, now, n, 0, patience)
				case callCancel:
					o = tb.RefundBy(place, clock.Load, n, 0, g.receipt)
				case callPeek:
					o, _ = tb.Peek(place, now, 0, 0)
				}
				out := booked{answer{verdict: o.Verdict, at: uint64(o.At), debt: algorithm.Debt(o.State.Record(), algorithm.Ticks(o.At))}, o.State.Version()}
				op.Output, op.Return = out, stamp.Add(1)
				histories[client] = append(histories[client], op)
				if o.Verdict == shard.Admitted && in.what != callCancel {
					grants[client] = append(grants[client], &granted{in.key, in.cost, out.at, out.at + out.debt, out.version, o.Receipt(n, 0, ends), false})
				}
			}
		})
	}
	all.Wait()
	for _, calls := range histories {
		history = append(history, calls...)
	}
	return history, grants
}

// TestReservationsAreLinearizable (I9, I1, I2): goroutines take, reserve, peek and give back by receipts. The answers
// must be possible in some order, and remaining takes and reservations must not be due sooner than the limit allows.
func TestReservationsAreLinearizable(t *testing.T) {
	n := uint64(1200)
	if testing.Short() {
		n = 150
	}
	for name, s := range map[string]struct {
		burst, keys uint64
		step        int64
		patience    time.Duration
	}{
		"the clock stands":      {2, 1, 0, 4 * time.Second},
		"the clock runs":        {3, 2, second / 2, 3 * time.Second},
		"the clock runs faster": {2, 1, 2 * second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			kept, cancelled := 0, 0
			for seed := range n {
				history, grants := bookings(t, s.burst, s.keys, s.step, s.patience, seed)
				latest := uint64(0)
				for _, op := range history {
					if in := op.Input.(booking); in.what == callReserve {
						latest = max(latest, in.now+uint64(s.patience))
					}
				}
				model := reservations(s.burst*second, uint64(s.patience), latest)
				if !porcupine.CheckOperations(model, history) {
					for _, op := range history {
						t.Logf("%d: %2d-%2d %+v: %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
					}
					require.Failf(t, "I9", "round %d: no order of these calls explains their answers", seed)
				}
				var all []granted
				for _, of := range grants {
					for _, g := range of {
						if g.cancelled {
							cancelled++
						} else {
							all, kept = append(all, *g), kept+1
						}
					}
				}
				for _, first := range all {
					for _, last := range all {
						from, to, sum := first.starts(s.burst*second), last.starts(s.burst*second), uint64(0)
						for _, g := range all {
							if at := g.starts(s.burst * second); g.key == first.key && at >= from && at <= to {
								sum += g.cost
							}
						}
						require.LessOrEqual(t, sum, s.burst*second+max(to, from)-from, "I1: round %d, key %d", seed, first.key)
					}
				}
			}
			assert.Positive(t, kept)
			assert.Positive(t, cancelled)
			t.Logf("%d kept, %d given back", kept, cancelled)
		})
	}
}

// TestBrokenReservationsAreFound (I9): the check of the test above accepts possible histories, and rejects others.
func TestBrokenReservationsAreFound(t *testing.T) {
	take := func(from, to int64, what int, full, version uint64) porcupine.Operation {
		return porcupine.Operation{
			Call: from, Return: to, Input: booking{call: call{what: what, key: 1, cost: second}},
			Output: booked{answer{verdict: shard.Admitted, at: start, debt: full - start}, version},
		}
	}
	cancel := func(from, to int64, of, full, version uint64) porcupine.Operation {
		op := take(from, to, callCancel, full, version)
		op.Input = booking{call{what: callCancel, key: 1, cost: second}, granted{cost: second, at: start, full: of, version: 1}}
		return op
	}
	for name, c := range map[string]struct {
		want    bool
		history []porcupine.Operation
	}{
		"the last of two in line goes": {true, []porcupine.Operation{
			take(1, 2, callTake, start+second, 1), take(3, 4, callReserve, start+2*second, 1), cancel(5, 6, start+2*second, start+second, 1),
		}},
		"the first of two in line goes, and nothing comes back": {true, []porcupine.Operation{
			take(1, 2, callTake, start+second, 1), take(3, 4, callReserve, start+2*second, 1), cancel(5, 6, start+second, start+2*second, 2),
		}},
		"the first of two in line goes, and its place is taken twice": {false, []porcupine.Operation{
			take(1, 2, callTake, start+second, 1), take(3, 4, callReserve, start+2*second, 1), cancel(5, 6, start+second, start+second, 2),
		}},
		"two that both went to the same place": {false, []porcupine.Operation{
			take(1, 3, callTake, start+second, 1), take(2, 4, callReserve, start+second, 1),
		}},
	} {
		assert.Equal(t, c.want, porcupine.CheckOperations(reservations(second, 3*second, start+4*second), c.history), name)
	}
}
