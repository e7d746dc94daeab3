//go:build explore

package spread

import (
	"cmp"
	"fmt"
	"slices"
)

// A verb is a method of a bucket. The verb pass is not a method, but lets time pass.
type verb uint8

const (
	take verb = iota
	refund
	settle // the refund or charge for a take that has cost less or more
	reset
	peek
	replace
	pass
)

// A call is one call of a verb with n tokens, by the processor of a cell.
type call struct {
	verb verb
	n    uint64
	cell int
}

func (c call) String() string {
	return fmt.Sprintf("%s %d", [...]string{"take", "refund", "settle", "reset", "peek", "replace", "wait"}[c.verb], c.n)
}

// A scenario is what one exploration runs. First it makes the calls in the field before, one by one. Then it
// interleaves the calls of the threads in every possible way.
type scenario struct {
	name    string
	burst   uint64 // 0 means 8 tokens
	share   uint64 // of a cell; 0 means 4
	cells   int    // 0 means 2
	before  []call
	threads [][]call
	large   bool
	rests   bool // before contains a long rest, so the word changedAt is explored, too
	slow    bool // a token takes a sixteenth of the circle of times, and cells hold nothing
}

func (s scenario) limit() uint64    { return cmp.Or(s.burst, 8) }
func (s scenario) most() uint64     { return cmp.Or(s.share, 4) }
func (s scenario) processors() int  { return cmp.Or(s.cells, 2) }
func takes(cell int, n uint64) call { return call{take, n, cell} }

func times(n int, c call) (calls []call) {
	for range n {
		calls = append(calls, c)
	}
	return calls
}

func together(calls ...call) (threads [][]call) {
	for _, c := range calls {
		threads = append(threads, []call{c})
	}
	return threads
}

var (
	here, there = takes(0, 1), takes(1, 1)
	draws       = times(2, here) // the next take at cell 0 draws two tokens
	holds       = times(3, here) // one token is in cell 0
	bothDraw    = slices.Concat(times(2, there), draws)
	bothHold    = slices.Concat(times(3, there), holds) // with a burst of 10, two more tokens are left in the bucket
	drained     = slices.Concat(holds, times(2, there)) // with a burst of 6, nothing is left
	replaces    = call{verb: replace}
	refunds     = call{verb: refund, n: 1}
	resets      = call{verb: reset}
	peeks       = call{verb: peek, n: 1}
)

// settles returns the call that settles an earlier take of one token whose cost was n.
func settles(n uint64) call { return call{verb: settle, n: n} }

// rests lets three quarters of the circle of times pass. Without rule S9, an earlier debt would then seem to be owed
// again.
var rests = waits(3 << (timeBits - 2) / (uint64(Ahead) / 8))

// waits returns a call that lets the time pass in which n tokens come back.
func waits(n uint64) call { return call{verb: pass, n: n} }

var scenarios = []scenario{
	{name: "two takers of a full bucket", threads: together(here, there)},
	{name: "two takers of the last token", burst: 1, threads: together(here, there)},
	{name: "two takers of the last token that wait for one", burst: 1, threads: [][]call{{here, here}, {there}, {waits(1)}}},
	{name: "a draw beside a taker", before: draws, threads: together(here, there)},
	{name: "a draw beside a taker of the same cell", before: draws, threads: together(here, here)},
	{name: "a draw beside three takes", before: draws, threads: [][]call{{here}, times(3, there)}},
	{name: "two draws of two cells", before: bothDraw, burst: 16, threads: together(here, there)},
	{name: "two draws of two cells, twice", before: bothDraw, burst: 16, threads: [][]call{times(4, here), times(2, there)}},
	{name: "a late call beside three draws", share: 2, burst: 32, before: draws, threads: [][]call{times(5, here), {there}}},
	{name: "two draws of one cell", before: draws, burst: 16, threads: [][]call{times(2, here), times(2, here)}},
	{name: "three takers, two of one cell", before: draws, threads: together(here, here, there)},
	{name: "three takers of three cells", cells: 4, burst: 24, before: slices.Concat(times(2, takes(2, 1)), bothDraw),
		threads: together(here, there, takes(2, 1)), large: true},
	{name: "a draw of a share", share: 2, burst: 32, before: times(8, here), threads: together(here, there)},
	{name: "one taker of everything after a rest", burst: 33, before: slices.Concat(times(5, here), times(5, there), []call{waits(100)}),
		threads: [][]call{times(50, here)}},
	{name: "draws beside takers of three cells", cells: 4, burst: 16, share: 2, before: bothDraw,
		threads: [][]call{times(2, here), {there}, {takes(2, 1)}}, large: true},

	{name: "a taker of what another cell holds", burst: 6, before: drained, threads: together(there)},
	{name: "a taker of what another cell holds beside its owner", burst: 6, before: drained, threads: together(here, there)},
	{name: "three takers of what a cell holds", burst: 6, before: drained, threads: together(here, there, there)},
	{name: "a refusal beside a draw", burst: 6, before: draws, threads: [][]call{times(2, here), times(4, there)}},
	{name: "a refusal beside a draw and a taker", burst: 6, before: draws, threads: [][]call{{here}, times(3, there), {there}}, large: true},
	{name: "a large taker of what two cells hold", burst: 10, before: bothHold, threads: together(takes(1, 4))},
	{name: "a large taker beside an owner", burst: 10, before: bothHold, threads: together(here, takes(1, 3))},
	{name: "a large taker beside both owners", burst: 10, before: bothHold, threads: together(here, there, takes(1, 3))},
	{name: "a large taker beside a large one", burst: 10, before: bothHold, threads: together(takes(0, 3), takes(1, 4))},
	{name: "two large takers", burst: 10, before: bothHold, threads: together(takes(0, 2), takes(1, 2))},
	{name: "two large takers beside an owner", burst: 10, before: bothHold, threads: together(takes(0, 2), takes(1, 3), here), large: true},
	{name: "a large taker gives its own cell back first", burst: 32, before: times(5, here),
		threads: [][]call{{takes(0, 2), takes(0, 2)}, {there}}},
	{name: "two spendings of two tokens", burst: 32, before: times(5, here), threads: together(takes(0, 2), takes(0, 2))},
	{name: "a large taker beside a draw", burst: 10, before: bothDraw, threads: [][]call{times(2, here), {takes(1, 5)}}},
	{name: "more than the limit", burst: 6, before: holds, threads: together(takes(1, 7), here)},

	{name: "a refund beside takers", burst: 6, before: drained, threads: together(refunds, there, here)},
	{name: "a refund beside a draw", before: draws, threads: together(refunds, here, there)},
	{name: "a refund beside a large taker", burst: 10, before: bothHold, threads: together(refunds, takes(1, 4))},
	{name: "a hold that cost nothing beside a draw", before: draws, threads: together(settles(0), here, there)},
	{name: "a hold that cost more beside takers", burst: 8, before: holds, threads: together(settles(3), here, there)},
	{name: "a reset beside a draw", before: draws, threads: together(resets, here, there)},
	{name: "a reset beside a large taker", burst: 10, before: bothHold, threads: together(resets, takes(1, 4))},
	{name: "a look beside a draw", burst: 6, before: draws, threads: [][]call{{peeks}, {here}, times(3, there)}},
	{name: "a look beside a large taker", burst: 10, before: bothHold, threads: together(peeks, takes(1, 4))},
	{name: "a look for all beside a large taker", burst: 10, before: bothHold, threads: together(call{verb: peek, n: 4}, takes(1, 4))},

	{name: "a change beside a draw", burst: 16, before: times(4, here), threads: together(replaces, here)},
	{name: "a change beside a draw and a taker", before: draws, threads: together(replaces, here, there), large: true},
	{name: "a change beside a refund", before: draws, threads: together(replaces, refunds)},
	{name: "a change beside what is held", before: drained, burst: 6, threads: together(replaces, here, there)},
	{name: "a change beside a large taker", burst: 10, before: bothHold, threads: together(replaces, takes(1, 4))},
	{name: "two changes beside a taker", before: draws, threads: [][]call{{replaces, replaces}, {here}}},
	{name: "a change beside draws of two cells", burst: 16, before: bothDraw, threads: together(replaces, here, there), large: true},

	{name: "two takers after a long rest", burst: 1, before: []call{here, rests}, threads: together(here, there), rests: true},
	{name: "three takers after a long rest", burst: 2, before: []call{here, rests}, threads: together(here, there, here), rests: true},
	{name: "a large taker of what cells hold after a long rest", burst: 10, before: slices.Concat(bothHold, []call{rests}),
		threads: together(takes(1, 10), here), rests: true},
	{name: "a look after a long rest", burst: 1, before: []call{here, rests}, threads: together(peeks, there, here), rests: true},
	{name: "a change that changedAt does not say beside a rest", burst: 2, before: []call{here, waits(4)},
		threads: [][]call{{takes(0, 2)}, {takes(1, 2)}, {waits(1)}}, rests: true, slow: true},
	{name: "a change after a long rest", before: slices.Concat(drained, []call{rests}), burst: 6,
		threads: together(replaces, there), rests: true},

	{name: "time passes beside a draw", burst: 6, before: draws, threads: [][]call{{here}, {there, there}, {waits(1), waits(2)}}},
	{name: "time passes beside what is held", burst: 6, before: drained, threads: [][]call{{here, here}, {there}, {waits(1)}}},
	{name: "time passes beside a refund", burst: 6, before: drained, threads: [][]call{{refunds}, {there}, {waits(1)}}},
}
