//go:build explore

package shard

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/interleave"
)

type inFlightVerb uint8

const (
	enters inFlightVerb = iota
	leaves              // gives back take n of those that its process still has, or the last one if n is 0
	reaps
	sweepsAll
	resetsKey
	refundsKey // without a receipt
	charges
)

// An inFlightCall is one call of a scenario. The field late is the time of the call, counted from the start.
type inFlightCall struct {
	verb   inFlightVerb
	key, n uint64
	late   time.Duration
}

func (c inFlightCall) String() string {
	return fmt.Sprintf("%s %d of key %d at %v", [...]string{"enter", "leave", "reap", "sweep", "reset", "refund", "charge"}[c.verb], c.n, c.key, c.late)
}

// An earlierCall is made before the threads start, by the process of the thread with the given number.
type earlierCall struct {
	of int
	inFlightCall
}

// An inFlightScenario describes processes whose calls the explorer interleaves in every order. The first process may
// die before any of its steps, or stop forever if hangs is set.
type inFlightScenario struct {
	name    string
	limit   uint64
	entries uint64
	window  int
	before  []earlierCall
	threads [][]inFlightCall
	hangs   bool          // the first process stops, but is not dead
	timed   bool          // time passes, so a read of the watermark is a step
	end     time.Duration // the time of the last call of Reap, after all threads have finished
	large   bool
}

func in(n uint64) inFlightCall { return inFlightCall{verb: enters, key: 1 << 40, n: n} }
func other(n uint64) inFlightCall {
	return inFlightCall{verb: enters, key: 2 << 40, n: n}
}

var (
	out       = inFlightCall{verb: leaves}
	first     = inFlightCall{verb: leaves, n: 1} // gives back the first take of its process
	reap      = inFlightCall{verb: reaps}
	sweep     = inFlightCall{verb: sweepsAll}
	clear     = inFlightCall{verb: resetsKey, key: 1 << 40}
	charge    = inFlightCall{verb: charges, key: 1 << 40, n: 1}
	back      = inFlightCall{verb: refundsKey, key: 1 << 40, n: 1}
	late      = inFlightCall{verb: reaps, late: lifetime}
	sweepLate = inFlightCall{verb: sweepsAll, late: lifetime}
	otherLate = inFlightCall{verb: enters, key: 2 << 40, n: 1, late: lifetime}
)

// inFlightScenarios are explored by TestScenarios.
var inFlightScenarios = []inFlightScenario{
	{name: "one enters and leaves", limit: 1, entries: 2, window: 1, threads: [][]inFlightCall{{in(1), out, in(1)}}},
	{name: "two enter, limit 1", limit: 1, entries: 2, window: 1, threads: [][]inFlightCall{{in(1)}, {in(1)}}},
	{name: "two enter a record, limit 2", limit: 2, entries: 3, window: 1, before: []earlierCall{{1, in(1)}}, threads: [][]inFlightCall{{in(1)}, {in(1)}}},
	{name: "two leave", limit: 2, entries: 3, window: 1, before: []earlierCall{{0, in(1)}, {1, in(1)}}, threads: [][]inFlightCall{{out}, {out}}},
	{name: "one leaves as one enters", limit: 2, entries: 3, window: 1, before: []earlierCall{{0, in(2)}}, threads: [][]inFlightCall{{out}, {in(1), out}}},
	{name: "one enters and dies beside one that reaps", limit: 2, entries: 3, window: 1, before: []earlierCall{{1, in(1)}}, threads: [][]inFlightCall{{in(1)}, {reap, in(1)}}},
	{name: "one leaves and dies beside one that reaps", limit: 2, entries: 3, window: 1, before: []earlierCall{{1, in(1)}, {0, in(1)}}, threads: [][]inFlightCall{{out}, {reap, in(1)}}},
	{name: "one dies beside one that enters and leaves", limit: 3, entries: 3, window: 1, before: []earlierCall{{1, in(1)}}, threads: [][]inFlightCall{{in(2), out}, {in(1), out}}},
	{name: "one dies beside two that reap", limit: 2, entries: 3, window: 1, before: []earlierCall{{0, in(1)}}, threads: [][]inFlightCall{{out}, {reap}, {reap}}},
	{name: "one dies beside a reaper and one that enters", limit: 2, entries: 3, window: 1, before: []earlierCall{{0, in(2)}}, threads: [][]inFlightCall{{out}, {reap}, {in(1)}}, large: true},
	{name: "an entry comes back to the record", limit: 3, entries: 2, window: 1, before: []earlierCall{{0, in(1)}}, threads: [][]inFlightCall{{out, in(1)}, {in(1)}}},
	{name: "two keys, one slot", limit: 2, entries: 2, window: 1, threads: [][]inFlightCall{{in(1)}, {other(1)}}},
	{name: "the last entry", limit: 3, entries: 1, window: 1, threads: [][]inFlightCall{{in(1), out}, {in(1)}}},
	{name: "an entry of another slot by now", limit: 2, entries: 1, window: 2, before: []earlierCall{{0, in(1)}}, threads: [][]inFlightCall{{out}, {other(1), in(1)}}},
	{name: "an entry goes to another slot and comes back", limit: 2, entries: 1, window: 2, before: []earlierCall{{1, in(1)}, {1, out}, {1, other(1)}}, threads: [][]inFlightCall{{in(1)}, {out, in(1)}}},
	{name: "a record is swept as its last one leaves", limit: 2, entries: 2, window: 1, before: []earlierCall{{0, in(1)}}, threads: [][]inFlightCall{{out}, {sweep, in(1)}}},
	{name: "a record is swept as one enters", limit: 2, entries: 2, window: 1, before: []earlierCall{{1, in(1)}, {1, out}}, threads: [][]inFlightCall{{in(1)}, {sweep}}},
	{name: "an idle record is claimed", limit: 2, entries: 2, window: 1, before: []earlierCall{{0, in(1)}}, threads: [][]inFlightCall{{out}, {other(1)}}},
	{name: "an idle record is claimed by one that dies", limit: 2, entries: 2, window: 1, before: []earlierCall{{1, in(1)}}, threads: [][]inFlightCall{{other(1)}, {out, in(1)}}},
	{name: "a reset beside one that leaves", limit: 2, entries: 3, window: 1, before: []earlierCall{{0, in(1)}, {1, in(1)}}, threads: [][]inFlightCall{{out}, {clear, out}}},
	{name: "a reset beside one that enters", limit: 2, entries: 3, window: 1, before: []earlierCall{{1, in(1)}}, threads: [][]inFlightCall{{in(1)}, {clear, in(1)}}},
	{name: "a reset as the slot becomes another key's", limit: 2, entries: 3, window: 1, before: []earlierCall{{1, in(1)}}, threads: [][]inFlightCall{{clear}, {out, other(1)}}},
	{name: "a refund of no take as the slot becomes another key's", limit: 2, entries: 3, window: 1, before: []earlierCall{{1, in(1)}}, threads: [][]inFlightCall{{back}, {out, other(1)}}},
	{name: "a reset of one key of two", limit: 2, entries: 3, window: 2, before: []earlierCall{{1, in(1)}, {1, other(1)}}, threads: [][]inFlightCall{{clear}, {first}}},
	{name: "one enters and dies, and its entry is taken again beside a reaper", limit: 2, entries: 1, window: 1, threads: [][]inFlightCall{{in(1)}, {reap}, {reap, in(1)}}, large: true},
	{name: "two charge, room for one", limit: 2, entries: 3, window: 1, before: []earlierCall{{1, in(1)}}, threads: [][]inFlightCall{{charge}, {charge}}},
	{name: "one hangs beside one that enters", limit: 1, entries: 2, window: 1, hangs: true, end: lifetime, threads: [][]inFlightCall{{in(1), out}, {in(1), out}}},
	{name: "one hangs beside a reset", limit: 2, entries: 3, window: 1, hangs: true, end: lifetime, threads: [][]inFlightCall{{in(1), out}, {clear, in(2), out}}},
	{name: "one is forgotten as it leaves", limit: 2, entries: 2, window: 1, timed: true, end: lifetime, before: []earlierCall{{0, in(1)}}, threads: [][]inFlightCall{{out}, {late}}},
	{name: "a slot is tentative again as one leaves late", limit: 2, entries: 2, window: 1, timed: true, before: []earlierCall{{1, in(1)}}, threads: [][]inFlightCall{{late, sweepLate, otherLate}, {out}}},
	{name: "one is forgotten, and its entry taken again, as it leaves", limit: 2, entries: 1, window: 1, timed: true, before: []earlierCall{{1, in(1)}}, threads: [][]inFlightCall{{late}, {in(1), first}}},
}

// TestScenarios (I1, I2, I4, I5, I7) explores limits in flight of several processes, and prints what was explored.
func TestScenarios(t *testing.T) {
	for _, s := range inFlightScenarios {
		interleave.Test(t, s.name, s.large, func() (interleave.Report, error) {
			return interleave.Explore(newInFlightWorld(t, s))
		})
	}
}
