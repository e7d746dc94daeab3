//go:build explore

package explore

import "github.com/weir-go/weir/shard"

// Threads compete for key1 and key2. The other keys only fill slots. The fingerprint of other0 is 0, like the key word
// of a slot that was never used.
const (
	other0 = iota
	key1
	key2
	other3
	other4
)

// days is a time shorter than a skew. No real clock is that far ahead.
const days = 1 << 49

// far is a key whose home is the last one.
const far = (1<<64 - 1) &^ shard.TierMask

// concurrent returns threads with one call each.
func concurrent(calls ...call) (threads [][]call) {
	for _, c := range calls {
		threads = append(threads, []call{c})
	}
	return threads
}

var (
	take1 = takes(key1, 1)
	take2 = takes(key1, 2)

	// These calls make records of other keys that are idle at the time past.
	idle3, idle4 = takes(other3, 1), takes(other4, 1)
	past         = int64(10)
)

// nearSlots is the number of slots among which an insert looks for the best slot.
const nearSlots = 8

// indebted returns calls that make records of n keys. At the time past, these keys still owe tokens.
func indebted(n int) (calls []call) {
	for i := range n {
		calls = append(calls, takes(uint64(10+i), 4).at(past-1))
	}
	return calls
}

var scenarios = []scenario{
	// In these scenarios a key has no record at first.
	{name: "one taker", probeWindow: 3, threads: concurrent(take1)},
	{name: "one taker of another order", probeWindow: 4, threads: concurrent(takes(far, 1))},
	{name: "two takers, four slots, another order", probeWindow: 4, before: []call{takes(far-1, 1)}, threads: concurrent(takes(far, 1), takes(far, 1))},
	{name: "two takers each of keys of two orders, evict", probeWindow: 4, burst: 2, before: []call{idle3, idle4.at(past), takes(far-1, 1)}, threads: [][]call{{take1.at(past)}, {takes(far, 1).at(past), take1.at(past)}}, large: true},
	{name: "two takers, one slot", probeWindow: 1, threads: concurrent(take1, take1)},
	{name: "two takers, two slots", probeWindow: 2, threads: concurrent(take1, take1)},
	{name: "two takers, three slots", probeWindow: 3, threads: concurrent(take1, take1)},
	{name: "two takers, four slots, fingerprint 0", probeWindow: 4, threads: concurrent(takes(other0, 1), takes(other0, 1))},
	{name: "two takers of 2 and 1, burst 2", probeWindow: 2, burst: 2, threads: concurrent(take2, take1)},
	{name: "two takers twice, burst 3", probeWindow: 2, burst: 3, threads: [][]call{{take1, take1}, {take1, take1}}},
	{name: "three takers, one slot", probeWindow: 1, threads: concurrent(take1, take1, take1)},
	{name: "three takers, one slot, burst 2", probeWindow: 1, burst: 2, threads: concurrent(take1, take1, take1)},
	{name: "three takers, two slots", probeWindow: 2, threads: concurrent(take1, take1, take1), large: true},

	// In these scenarios a key has a record at first.
	{name: "three takers of a record, burst 3", probeWindow: 2, burst: 3, before: []call{take1}, threads: concurrent(take1, take1, take1)},
	{name: "three takers of a record, last token", probeWindow: 2, burst: 2, before: []call{take1}, threads: concurrent(take1, take1, take1)},
	{name: "two takers of a record behind a freed slot", probeWindow: 3, burst: 2, before: []call{idle3, take1, resets(other3)}, threads: concurrent(take1, take1)},
	{name: "two takers of an idle record", probeWindow: 2, burst: 2, before: []call{take2}, threads: concurrent(take2.at(past), take1.at(past))},
	{name: "two takers, rounded ticks", rate: 3e8, probeWindow: 2, burst: 3, before: []call{take1}, threads: concurrent(take1, take1)},

	// In these scenarios the probe window has records of other keys.
	{name: "two takers, idle probe window", probeWindow: 2, before: []call{idle3, idle4}, threads: concurrent(take1.at(past), take1.at(past))},
	{name: "two takers, half idle probe window", probeWindow: 2, before: []call{idle3, idle4.at(past)}, threads: concurrent(take1.at(past), take1.at(past))},
	{name: "two takers, freed slots", probeWindow: 3, before: []call{idle3, idle4, resets(other3), resets(other4)}, threads: concurrent(take1, take1)},
	{name: "two takers, full probe window, refuse", probeWindow: 2, overflow: shard.Refuse, before: []call{idle3, idle4}, threads: concurrent(take1, take1)},
	{name: "two takers, full probe window, admit", probeWindow: 2, overflow: shard.Admit, before: []call{idle3, idle4}, threads: concurrent(take1, take1)},
	{name: "two takers, full probe window, evict", probeWindow: 2, burst: 2, before: []call{idle3, takes(other4, 2)}, threads: concurrent(take1, take1)},

	// In these scenarios calls should prefer some slots: idle for longer, free, or never used.
	{name: "two takers, idle slots beside one that was never used", probeWindow: 3, before: []call{idle3, idle4}, threads: concurrent(take1.at(past), take1.at(past))},
	{name: "two takers, an idle slot before a free one", probeWindow: 2, before: []call{idle3, idle4, resets(other4)}, threads: concurrent(take1.at(past), take1.at(past))},
	{name: "two takers, one idle slot longer than the other", probeWindow: 2, before: []call{idle3.at(3), idle4}, threads: concurrent(take1.at(past), take1.at(past))},
	{name: "two keys, idle slots and a free one", probeWindow: 3, before: []call{idle3, idle4, take1, resets(key1)}, threads: concurrent(take1.at(past), takes(key2, 1).at(past))},

	// In these scenarios two keys have too few slots.
	{name: "two keys, one slot, evict", probeWindow: 1, threads: concurrent(take1, takes(key2, 1))},
	{name: "a taker beside one that comes and goes, refuse", probeWindow: 3, overflow: shard.Refuse, before: []call{idle3, idle4}, threads: [][]call{{take1}, {resets(other3), idle3}}},
	{name: "two keys, one slot, refuse", probeWindow: 1, overflow: shard.Refuse, threads: concurrent(take1, takes(key2, 1))},
	{name: "two keys, one slot, admit", probeWindow: 1, overflow: shard.Admit, threads: concurrent(take1, takes(key2, 1))},
	{name: "two keys, one idle slot", probeWindow: 1, before: []call{idle3}, threads: concurrent(take1.at(past), takes(key2, 1).at(past))},
	{name: "two keys twice, one slot, evict", probeWindow: 1, burst: 2, threads: [][]call{{take1, take1}, {takes(key2, 1), takes(key2, 1)}}},
	{name: "two takers and another key, two slots", probeWindow: 2, threads: concurrent(take1, take1, takes(key2, 1)), large: true},
	{name: "two keys, two slots", probeWindow: 2, threads: [][]call{{take1, takes(key2, 1)}, {takes(key2, 1), take1}}, large: true},
	{name: "two keys, two slots, crossed evictions", probeWindow: 2, burst: 2, before: []call{idle3, takes(other4, 2)}, threads: [][]call{{take1, take1}, {takes(key2, 2)}}},

	// In these scenarios a slot gets the record of another key, and then again a record of the first key.
	{name: "a key comes back", probeWindow: 1, burst: 2, before: []call{take1, resets(key1)}, threads: [][]call{{take1}, {takes(key2, 2), resets(key2), take1}}},
	{name: "a key comes back twice", probeWindow: 1, burst: 2, before: []call{take1}, threads: [][]call{{take1}, {resets(key1), takes(key2, 2), resets(key2), take1}}},
	{name: "a key comes back elsewhere", probeWindow: 2, burst: 2, before: []call{idle3, take1, resets(other3)}, threads: [][]call{{take1}, {resets(key1), take1, takes(key2, 2)}}},

	// In these scenarios Reset, Sweep and Peek are concurrent with takes.
	{name: "reset beside two takers", probeWindow: 2, burst: 2, before: []call{take1}, threads: concurrent(take1, take2, resets(key1))},
	{name: "reset beside two inserts", probeWindow: 2, threads: concurrent(take1, take1, resets(key1))},
	{name: "reset of the slot before two inserts", probeWindow: 3, before: []call{idle3}, threads: concurrent(take1, take1, resets(other3))},
	{name: "two resets of a stranger's slot", probeWindow: 1, burst: 2, before: []call{take1}, threads: [][]call{{resets(key1)}, {resets(key1), takes(key2, 1), take1}}},
	{name: "peek beside two takers", probeWindow: 2, burst: 3, before: []call{take1}, threads: concurrent(take1, take1, peeks(key1))},
	{name: "peek beside an insert", probeWindow: 2, burst: 2, threads: concurrent(take1, take1, peeks(key1))},
	{name: "peek at a slot that changes hands", probeWindow: 1, burst: 3, before: []call{take1, resets(key1)}, threads: [][]call{{peeks(key1)}, {takes(key2, 3), resets(key2), take1}}},
	{name: "sweep beside two takers of an idle record", probeWindow: 2, burst: 2, before: []call{take2}, threads: concurrent(take2.at(past), take1.at(past), sweeps().at(past)), large: true},
	{name: "sweep beside an insert", probeWindow: 2, before: []call{idle3, idle4}, threads: concurrent(take1.at(past), sweeps().at(past))},
	{name: "two sweeps", probeWindow: 2, before: []call{idle3, idle4.at(past)}, threads: concurrent(sweeps().at(past), sweeps().at(1)), large: true},
	{name: "sweep of an epoch beside a taker of an idle record", probeWindow: 2, burst: 2, before: []call{take2, sweeps()}, threads: concurrent(take2.at(past), sweepsEpoch().at(past))},
	{name: "sweep of an epoch beside an insert", probeWindow: 2, before: []call{idle3, idle4, sweeps()}, threads: concurrent(take1.at(past), sweepsEpoch().at(past))},
	{name: "two sweeps of an epoch beside a late taker", probeWindow: 1, burst: 4, before: []call{takes(key1, 4)}, threads: [][]call{{takes(key1, 4).at(2)}, {sweepsEpoch().at(past), sweepsEpoch().at(past + 1), takes(key1, 4).at(past + 1)}}},
	{name: "peek at an idle record beside a sweep", probeWindow: 1, burst: 4, before: []call{takes(key1, 4)}, threads: concurrent(peeks(key1).at(2), sweeps().at(past))},

	// In these scenarios there are refunds.
	{name: "refund beside two takers", probeWindow: 2, burst: 3, before: []call{take2}, threads: concurrent(take1, take2, refunds(key1, 1))},
	{name: "refund beside an insert", probeWindow: 2, burst: 2, threads: concurrent(take2, take1, refunds(key1, 1))},
	{name: "refund to a slot that changes hands", probeWindow: 1, burst: 2, before: []call{take1}, threads: [][]call{{refunds(key1, 1)}, {resets(key1), takes(key2, 2)}}},
	{name: "two refunds of more than was taken", probeWindow: 1, burst: 3, before: []call{take1}, threads: concurrent(refunds(key1, 2), refunds(key1, 1), take2)},
	{name: "refund to an idle record beside a sweep", probeWindow: 1, burst: 4, before: []call{takes(key1, 4)}, threads: concurrent(refunds(key1, 1).at(2), sweeps().at(past))},

	// These scenarios have reservations, and takes that are given back by receipts.
	{name: "reserve: three in line", probeWindow: 1, threads: concurrent(reserves(key1, 1), reserves(key1, 1), take1)},
	{name: "reserve: two in line, the first goes away", probeWindow: 1, threads: [][]call{{reserves(key1, 1), cancels(key1, 1)}, {reserves(key1, 1), reserves(key1, 1)}}},
	{name: "reserve: three behind a take, one goes away", probeWindow: 1, burst: 2, before: []call{take2}, threads: [][]call{{reserves(key1, 2), cancels(key1, 2)}, {reserves(key1, 1)}, {reserves(key1, 1)}}},
	{name: "reserve: two that both go away", probeWindow: 1, threads: [][]call{{reserves(key1, 1), cancels(key1, 1)}, {reserves(key1, 1), cancels(key1, 1)}}},
	{name: "reserve: a late one beside a refusal", probeWindow: 1, burst: 10, before: []call{takes(key1, 10)}, threads: [][]call{{reserves(key1, 10)}, {sweeps().at(10), takes(key1, 10).at(10)}}},
	{name: "reserve: time leaps meanwhile", probeWindow: 1, burst: 2, before: []call{take2}, threads: [][]call{{reserves(key1, 1)}, {take2.at(7 << 49), take2.at(7 << 49)}}},
	{name: "reserve: a key comes back", probeWindow: 1, burst: 2, before: []call{take2}, threads: [][]call{{reserves(key1, 2)}, {resets(key1), reserves(key2, 2), reserves(key2, 2), resets(key2), take1}}},
	{name: "take and give back beside takers", probeWindow: 1, burst: 2, threads: [][]call{{take1, cancels(key1, 1)}, {take1, take1}}},
	{name: "take and give back, both of two", probeWindow: 1, burst: 3, threads: [][]call{{take1, cancels(key1, 1), take1}, {take2, cancels(key1, 2), take1}}},
	{name: "take and give back later", probeWindow: 1, burst: 10, threads: [][]call{{takes(key1, 5), cancels(key1, 5).at(5), takes(key1, 5).at(5)}, {takes(key1, 5).at(2), takes(key1, 5).at(6)}}},
	{name: "take and give back by the clock", probeWindow: 1, burst: 10, threads: [][]call{{takes(key1, 5), cancels(key1, 5).byClock()}, {peeks(key1), takes(key1, 5).at(5), takes(key1, 10).at(5)}}},
	{name: "take and give back, a bucket that looks the same", probeWindow: 1, burst: 10, threads: [][]call{{takes(key1, 5), cancels(key1, 5), takes(key1, 5).at(4)}, {takes(key1, 5), cancels(key1, 5).at(5), takes(key1, 10).at(5)}}},
	{name: "log: take and give back beside takers", log: 2, probeWindow: 1, before: []call{take1}, threads: [][]call{{take1.at(600), cancels(key1, 1).at(600)}, {take1.at(600), take1.at(600)}}},
	{name: "log: take and give back the older of two", log: 4, probeWindow: 1, before: []call{take1, take1.at(300)}, threads: [][]call{{take1.at(600), cancels(key1, 1).at(600)}, {take1.at(700)}}},
	{name: "log: take and give back, and a slot that changes hands", log: 3, probeWindow: 1, before: []call{take1}, threads: [][]call{{take1.at(600), cancels(key1, 1).at(600)}, {resets(key1), takes(key2, 1).at(500), takes(key2, 1).at(500), takes(key2, 1).at(500)}}, large: true},
	{name: "log: take and give back two behind others", log: 5, probeWindow: 1, before: []call{take1, take1.at(100)}, threads: [][]call{{take2.at(600), cancels(key1, 2).at(700)}, {take1.at(650)}}},
	{name: "log: take and give back beside a refusal", log: 3, probeWindow: 1, before: []call{take1, take1.at(300)}, threads: [][]call{{take1.at(600), cancels(key1, 1).at(600)}, {take2.at(1100).withRetry()}}},
	{name: "log: take and give back beside a peek", log: 3, probeWindow: 1, before: []call{take1}, threads: [][]call{{take2.at(600), cancels(key1, 2).at(600)}, {peeks(key1).at(600)}}},

	// These scenarios have receipts of evicted or reset records, and refunds concurrent with requests ahead of their
	// clock (R15).
	{name: "receipt: a reset", probeWindow: 1, burst: 2, threads: [][]call{{take1, cancels(key1, 1)}, {resets(key1), take2}}},
	{name: "receipt: a reset, then another takes", probeWindow: 1, burst: 2, before: []call{take1}, threads: [][]call{{take1, cancels(key1, 1)}, {resets(key1)}, {take2}}},
	{name: "receipt: two resets", probeWindow: 1, burst: 2, threads: [][]call{{take1, cancels(key1, 1)}, {resets(key1), take1}, {resets(key1)}}},
	{name: "receipt: an eviction", probeWindow: 1, burst: 2, threads: [][]call{{take1, cancels(key1, 1)}, {takes(key2, 1), take2}}},
	{name: "receipt: a take that evicts another key", probeWindow: 1, burst: 2, before: []call{takes(key2, 1)}, threads: [][]call{{take1, cancels(key1, 1)}, {resets(key1), take2}}},
	{name: "receipt: two takes that evict each other", probeWindow: 1, burst: 2, before: []call{take1}, threads: [][]call{{take1, cancels(key1, 1)}, {takes(key2, 1), take2}}},
	{name: "receipt: the limit shrinks", probeWindow: 1, burst: 4, plans: [2]uint64{2}, threads: [][]call{{take2, cancels(key1, 2)}, {adopts(1), take1}}},
	{name: "receipt: the limit shrinks and grows", probeWindow: 1, burst: 4, plans: [2]uint64{2}, threads: [][]call{{take2, cancels(key1, 2)}, {adopts(1), adopts(0)}}},
	{name: "receipt: an idle record", probeWindow: 1, burst: 2, threads: [][]call{{take1, cancels(key1, 1).at(past)}, {sweeps().at(past), take2.at(past)}}},
	{name: "fixed: receipt, a reset", fixed: 3, probeWindow: 1, threads: [][]call{{take1, cancels(key1, 1)}, {resets(key1), take2}}},
	{name: "fixed: receipt, a reset beside a refund", fixed: 3, probeWindow: 1, before: []call{take1}, threads: [][]call{{take1, cancels(key1, 1)}, {refunds(key1, 1)}, {resets(key1), take1}}},
	{name: "hold: two that cost less", probeWindow: 1, burst: 4, threads: [][]call{{take2, cancels(key1, 1)}, {take2, cancels(key1, 1)}, {take2}}, large: true},
	{name: "hold: two that cost less later", probeWindow: 1, burst: 6, threads: [][]call{{takes(key1, 3), cancels(key1, 2).at(6), take2.at(6)}, {takes(key1, 3), cancels(key1, 3).at(6), takes(key1, 6).at(6)}}},
	{name: "hold: a late clock", probeWindow: 1, burst: 4, threads: [][]call{{takes(key1, 4), cancels(key1, 4)}, {sweeps().at(2), take1.at(2), takes(key1, 4).at(2)}}},
	{name: "hold: a leap of time", probeWindow: 1, burst: 2, threads: [][]call{{take1, cancels(key1, 1).at(14 << 50)}, {take1}}},
	{name: "hold: another bucket that looks the same", probeWindow: 2, burst: 2, threads: [][]call{{take1, cancels(key1, 1)}, {resets(key1), takes(key2, 1), take1}}},
	{name: "hold: a bucket that looks the same a circle later", probeWindow: 2, burst: 2, threads: [][]call{{take1, sweeps().at(1 << 54), charges(key2, 1).at(1 << 54), charges(key1, 1).at(1 << 54), cancels(key1, 1).at(1 << 54)}}},
	{name: "fixed: hold, two that cost less", fixed: 4, probeWindow: 1, threads: [][]call{{take2, cancels(key1, 1)}, {take2, cancels(key1, 1)}, {take2}}, large: true},
	{name: "log: hold, two that cost less", log: 4, probeWindow: 1, threads: [][]call{{take2, cancels(key1, 1)}, {take2, cancels(key1, 1), take1}}},
	{name: "log: receipt, a reset", log: 3, probeWindow: 1, threads: [][]call{{take1, cancels(key1, 1)}, {resets(key1), take2}}},
	{name: "ahead: a take beside a refund", probeWindow: 1, burst: 2, threads: [][]call{{take1, cancels(key1, 1)}, {take2.leads(1), take1.at(1)}}},
	{name: "ahead: two takes beside a refund", probeWindow: 1, burst: 2, before: []call{take1}, threads: [][]call{{take1, cancels(key1, 1)}, {take1.leads(1)}, {take1.leads(2), take1.at(2)}}},

	// These scenarios have quotas: the limit comes with the call, but the debt belongs to the key.
	{name: "quota: takers of three limits", probeWindow: 1, burst: 2, before: []call{take1.withLimit(3)}, threads: concurrent(take1.withLimit(3), take1, take2.withLimit(4))},
	{name: "quota: two takers, two slots", probeWindow: 2, threads: concurrent(take2.withLimit(2), take1.withLimit(3))},
	{name: "quota: a limit below what is owed", probeWindow: 1, burst: 4, before: []call{takes(key1, 3)}, threads: [][]call{{take1.withLimit(2), take1.withLimit(2).at(2)}, {take1, refunds(key1, 2)}}},
	{name: "quota: two keys twice, one slot, evict", probeWindow: 1, threads: [][]call{{take1.withLimit(2), take1.withLimit(2)}, {takes(key2, 1).withLimit(3), takes(key2, 1).withLimit(3)}}},
	{name: "quota: a key comes back", probeWindow: 1, burst: 2, before: []call{take1.withLimit(2), resets(key1)}, threads: [][]call{{take1.withLimit(2)}, {takes(key2, 2), resets(key2), take1.withLimit(2)}}},
	{name: "quota: two takers that are behind the watermark", probeWindow: 1, burst: 4, before: []call{takes(key1, 4).at(8), sweeps().at(past)}, threads: concurrent(take2.at(2).withLimit(4), take1.at(3).withLimit(4))},
	{name: "quota: a taker after a leap of a circle", rate: 4e8, probeWindow: 1, before: []call{take1.withLimit(1)}, threads: concurrent(take1.at(1 << 53).withLimit(1))},
	{name: "quota: the limit grows beside two takers", probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take1}, threads: concurrent(take1.withLimit(3), take2.withLimit(3), adopts(1))},
	{name: "quota: of another table", probeWindow: 1, burst: 2, before: []call{take1.withLimit(3)}, threads: concurrent(take1.withOtherLimit(5), take1)},
	{name: "quota: of another table, without a record", probeWindow: 1, burst: 2, threads: concurrent(take1.withOtherLimit(5), take1)},
	{name: "quota: a tier beside a change of plan", probeWindow: 1, burst: 8, plans: [2]uint64{8}, before: []call{takes(key1, 3)}, threads: concurrent(take2.withLimit(8), adopts(1))},
	{name: "quota: a charge of a tier beside a change of plan", probeWindow: 1, burst: 8, plans: [2]uint64{8}, before: []call{takes(key1, 3)}, threads: concurrent(charges(key1, 2).withLimit(8), adopts(1))},
	{name: "quota: the limit grows and shrinks beside a taker", probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take1}, threads: [][]call{{take2.withLimit(3)}, {adopts(1), adopts(0)}}},
	{name: "fixed: takers of two limits", fixed: 3, probeWindow: 1, before: []call{take1}, threads: concurrent(take1.withLimit(2), take2, take1.withLimit(2))},
	{name: "log: takers of two limits", log: 3, probeWindow: 1, before: []call{take1}, threads: concurrent(take1.withLimit(2), take2)},

	// These scenarios have charges for costs that have already occurred, up to twice the limit.
	{name: "charge: beside two takers", probeWindow: 1, burst: 3, before: []call{take1}, threads: concurrent(take1, take2, charges(key1, 4))},
	{name: "charge: two of more than there is", probeWindow: 1, burst: 2, before: []call{take1}, threads: concurrent(charges(key1, 2), charges(key1, 3), take1)},
	{name: "charge: two, two slots", probeWindow: 2, burst: 2, threads: concurrent(charges(key1, 5), take1)},
	{name: "charge: two, one slot", probeWindow: 1, burst: 2, threads: concurrent(charges(key1, 5), charges(key1, 1), take1)},
	{name: "charge: a key that owes all that it may", probeWindow: 1, burst: 1, before: []call{charges(key1, 2)}, threads: [][]call{{charges(key1, 1)}, {refunds(key1, 1), take1}}},
	{name: "charge: a slot that changes hands", probeWindow: 1, burst: 2, before: []call{charges(key1, 4)}, threads: [][]call{{charges(key1, 1)}, {resets(key1), takes(key2, 2), resets(key2), take1}}},
	{name: "charge: two keys, one slot, evict", probeWindow: 1, threads: [][]call{{charges(key1, 2), take1}, {charges(key2, 1), charges(key2, 2)}}},
	{name: "charge: two keys twice, one slot, evict", probeWindow: 1, burst: 2, threads: [][]call{{charges(key1, 1), charges(key1, 1)}, {charges(key2, 1), charges(key2, 1)}}},
	{name: "charge: a key comes back", probeWindow: 1, burst: 1, before: []call{take1}, threads: [][]call{{charges(key1, 1)}, {resets(key1), charges(key2, 2), resets(key2), take1}}},
	{name: "charge: full probe window, refuse", probeWindow: 1, overflow: shard.Refuse, before: []call{idle3}, threads: concurrent(charges(key1, 1), charges(key1, 2))},
	{name: "charge: full probe window, admit", probeWindow: 1, overflow: shard.Admit, before: []call{idle3}, threads: concurrent(charges(key1, 1), take1)},
	{name: "charge: two that are behind the watermark", probeWindow: 1, burst: 4, before: []call{takes(key1, 4).at(8), sweeps().at(past)}, threads: concurrent(charges(key1, 2).at(2), charges(key1, 9).at(3))},
	{name: "charge: behind the watermark, of an idle record", probeWindow: 1, burst: 10, before: []call{takes(key1, 1).at(8), sweepsEpoch().at(past)}, threads: concurrent(charges(key1, 2).at(2), take1.at(past))},
	{name: "charge: after a leap of a circle", rate: 4e8, probeWindow: 1, before: []call{take1}, threads: concurrent(charges(key1, 2).at(1 << 53))},
	{name: "charge: the limit grows meanwhile", probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take1}, threads: concurrent(charges(key1, 2), adopts(1))},
	{name: "charge: beside a reservation", probeWindow: 1, burst: 2, before: []call{take2}, threads: [][]call{{charges(key1, 1)}, {reserves(key1, 1), cancels(key1, 1)}}},
	{name: "fixed: charges beside a taker", fixed: 3, probeWindow: 1, before: []call{take1}, threads: concurrent(charges(key1, 2), charges(key1, 5), take1)},
	{name: "fixed: a charge where a key comes back", fixed: 2, probeWindow: 1, before: []call{charges(key1, 2)}, threads: [][]call{{charges(key1, 1)}, {resets(key1), takes(key2, 2), resets(key2), take1}}},
	{name: "counter: charges beside a taker", counter: 3, probeWindow: 1, before: []call{take1}, threads: concurrent(charges(key1, 2), charges(key1, 5), take1)},
	{name: "log: charges beside a taker", log: 3, probeWindow: 1, before: []call{take1}, threads: concurrent(charges(key1, 1), charges(key1, 5), take1)},
	{name: "log: a charge beside a taker left behind by a ring", log: 2, probeWindow: 1, before: []call{take1}, threads: [][]call{{charges(key1, 1).at(100)}, {take1.at(500), take1.at(1000), take1.at(1500), take1.at(1600)}}},

	// These scenarios have takes of a variable number of tokens.
	{name: "up to: two takers of the rest", probeWindow: 1, burst: 4, before: []call{take1}, threads: concurrent(takesUpTo(key1, 2, 9), takesUpTo(key1, 2, 2), take1)},
	{name: "up to: a key without a record", probeWindow: 2, burst: 3, threads: concurrent(takesUpTo(key1, 2, 2), takesUpTo(key1, 1, 9))},
	{name: "up to: one slot", probeWindow: 1, burst: 2, threads: concurrent(takesUpTo(key1, 1, 5), takesUpTo(key1, 2, 2), take1)},
	{name: "up to: beside a charge", probeWindow: 1, burst: 3, before: []call{take1}, threads: concurrent(takesUpTo(key1, 1, 9), charges(key1, 2))},
	{name: "up to: a key comes back", probeWindow: 1, burst: 1, before: []call{take1}, threads: [][]call{{takesUpTo(key1, 1, 1)}, {resets(key1), takes(key2, 1), resets(key2), take1}}},
	{name: "up to: two keys, one slot, evict", probeWindow: 1, burst: 2, threads: [][]call{{takesUpTo(key1, 1, 2), take1}, {takesUpTo(key2, 1, 1), take2}}},
	{name: "up to: full probe window, refuse", probeWindow: 1, overflow: shard.Refuse, before: []call{idle3}, threads: concurrent(takesUpTo(key1, 1, 1), take1)},
	{name: "up to: full probe window, admit", probeWindow: 1, overflow: shard.Admit, before: []call{idle3}, threads: concurrent(takesUpTo(key1, 1, 1), take1)},
	{name: "up to: given back", probeWindow: 1, burst: 3, before: []call{take1}, threads: [][]call{{takesUpTo(key1, 1, 9), cancels(key1, 1)}, {takesUpTo(key1, 2, 2), take1}}},
	{name: "up to: behind the watermark", probeWindow: 1, burst: 4, before: []call{takes(key1, 4).at(8), sweeps().at(past)}, threads: concurrent(takesUpTo(key1, 1, 9).at(2), take1.at(3))},
	{name: "up to: the limit grows meanwhile", probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take1}, threads: concurrent(takesUpTo(key1, 1, 9), adopts(1))},
	{name: "fixed: up to, beside a taker", fixed: 4, probeWindow: 1, before: []call{take1}, threads: concurrent(takesUpTo(key1, 2, 9), takesUpTo(key1, 2, 2), take1)},
	{name: "counter: up to, beside a taker", counter: 4, probeWindow: 1, before: []call{take1}, threads: concurrent(takesUpTo(key1, 2, 9), takesUpTo(key1, 2, 2), take1)},
	{name: "log: up to, beside a taker", log: 4, probeWindow: 1, before: []call{take1}, threads: concurrent(takesUpTo(key1, 2, 9), takesUpTo(key1, 2, 2))},
	{name: "log: up to, left behind by a ring", log: 2, probeWindow: 1, before: []call{take1}, threads: [][]call{{takesUpTo(key1, 1, 2).at(100)}, {take1.at(500), take1.at(1000), take1.at(1500), take1.at(1600)}}},
	{name: "in flight: up to, beside a taker", inFlight: 4, probeWindow: 1, before: []call{take1}, threads: concurrent(takesUpTo(key1, 2, 9), takesUpTo(key1, 2, 2), take1)},

	// In these scenarios refusals are charged.
	{name: "the rest: two takers, one token", refusals: shard.TheRest, probeWindow: 1, burst: 3, before: []call{take2}, threads: concurrent(take2, take1, take2)},
	{name: "the rest: beside a refund", refusals: shard.TheRest, probeWindow: 1, burst: 2, before: []call{take2}, threads: concurrent(take2, refunds(key1, 2), take1)},
	{name: "the rest: a slot that changes hands", refusals: shard.TheRest, probeWindow: 1, burst: 2, before: []call{take1}, threads: [][]call{{take2}, {resets(key1), takes(key2, 1), resets(key2), take1}}},
	{name: "penalty: three takers", refusals: shard.Penalty, probeWindow: 1, burst: 2, before: []call{take1}, threads: concurrent(take2, take2, take1)},
	{name: "penalty: an insert", refusals: shard.Penalty, probeWindow: 1, burst: 1, threads: concurrent(take1, take1, take1)},
	{name: "penalty: more than the limit", refusals: shard.Penalty, probeWindow: 2, burst: 2, threads: concurrent(takes(key1, 3), take1)},
	{name: "penalty: a reservation pays nothing", refusals: shard.Penalty, probeWindow: 1, burst: 1, before: []call{take1}, threads: concurrent(reserves(key1, 1), reserves(key1, 1))},
	{name: "penalty: a key that owes all that it may", refusals: shard.Penalty, probeWindow: 1, burst: 1, before: []call{charges(key1, 2)}, threads: [][]call{{take1}, {resets(key1), takes(key2, 1), resets(key2), take1}}},
	{name: "log: the rest, two takers", refusals: shard.TheRest, log: 3, probeWindow: 1, before: []call{take1}, threads: concurrent(take2, take2)},
	{name: "fixed: the rest, two takers", refusals: shard.TheRest, fixed: 3, probeWindow: 1, before: []call{take1}, threads: concurrent(take2, take2, take1)},

	// In these scenarios the plan changes to another burst or rate. The key must owe the same tokens.
	{name: "the limit grows beside two takers", probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take1}, threads: concurrent(take1, take2, adopts(1))},
	{name: "the limit shrinks beside two takers", probeWindow: 1, burst: 4, plans: [2]uint64{2}, before: []call{take2}, threads: concurrent(take1, take1, adopts(1))},
	{name: "the limit grows beside two inserts", probeWindow: 1, burst: 1, plans: [2]uint64{2}, threads: concurrent(take1, take1, adopts(1)), large: true},
	{name: "the limit shrinks beside an insert", probeWindow: 2, burst: 4, plans: [2]uint64{2}, threads: concurrent(take2, adopts(1))},
	{name: "the limit shrinks and grows beside an insert", probeWindow: 1, burst: 4, plans: [2]uint64{2}, threads: [][]call{{take2}, {adopts(1), adopts(0)}}},
	{name: "the limit grows and shrinks beside a taker", probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take1}, threads: [][]call{{take2}, {adopts(1), adopts(0)}}},
	{name: "the limit grows and shrinks beside a refusal", probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take2}, threads: [][]call{{take1}, {adopts(1), resets(key1), take1, adopts(0)}}},
	{name: "the limit grows twice beside a taker", probeWindow: 1, burst: 2, plans: [2]uint64{4, 8}, before: []call{take1}, threads: [][]call{{take1}, {adopts(1), adopts(2)}}},
	{name: "the limit grows, shrinks and grows more beside a taker", probeWindow: 1, burst: 2, plans: [2]uint64{4, 8}, before: []call{take1}, threads: [][]call{{take1}, {adopts(1), adopts(0), adopts(2)}}},
	{name: "the limit grows beside another key", probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{idle3}, threads: concurrent(take2, adopts(1))},
	{name: "the limit grows beside an idle slot", probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{idle3}, threads: concurrent(take2.at(past), adopts(1).at(past))},
	{name: "the limit grows beside a reset and a peek", probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take1}, threads: concurrent(resets(key1), peeks(key1), adopts(1))},
	{name: "the limit grows beside a sweep", probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{idle3}, threads: [][]call{{sweeps().at(past)}, {adopts(1)}}},
	{name: "the limit grows beside a refund", probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take2}, threads: concurrent(refunds(key1, 1), take1, adopts(1))},

	// In these scenarios the algorithm is a sliding log.
	{name: "log: two takers of a record", log: 2, probeWindow: 1, before: []call{take1}, threads: concurrent(take1, take1)},
	{name: "log: three takers of a record", log: 3, probeWindow: 1, before: []call{take1}, threads: concurrent(take1, take1, take1)},
	{name: "log: takers of 2 and 1", log: 3, probeWindow: 1, before: []call{take1}, threads: [][]call{{take2}, {take1, take1}}},
	{name: "log: two takers, one slot", log: 1, probeWindow: 1, threads: concurrent(take1, take1)},
	{name: "log: two takers, two slots", log: 2, probeWindow: 2, threads: concurrent(take2, take1)},
	{name: "log: one request leaves the window", log: 2, probeWindow: 1, before: []call{take1, take1.at(500)}, threads: concurrent(take1.at(1000), take1.at(1200))},
	{name: "log: a late and an early taker", log: 2, probeWindow: 1, before: []call{take1, take1.at(500)}, threads: concurrent(take1.at(600), take1.at(1100), take1.at(1600))},
	{name: "log: two takers of an idle record", log: 2, probeWindow: 1, before: []call{take2}, threads: concurrent(take2.at(3000), take1.at(3000))},
	{name: "log: a key comes back", log: 2, probeWindow: 1, before: []call{take1, resets(key1)}, threads: [][]call{{take1}, {takes(key2, 2), resets(key2), take1}}},
	{name: "log: a slot that changes hands, a taker in between", log: 2, probeWindow: 1, before: []call{take1}, threads: [][]call{{take1}, {resets(key1), takes(key2, 1), takes(key2, 1)}}},
	{name: "log: two keys, one slot, evict", log: 2, probeWindow: 1, threads: [][]call{{take1, take1}, {takes(key2, 2)}}},
	{name: "log: refund beside two takers", log: 2, probeWindow: 1, before: []call{take1}, threads: concurrent(take1, take1, refunds(key1, 1))},
	{name: "log: refund of more than one", log: 3, probeWindow: 1, before: []call{take1, take2}, threads: concurrent(refunds(key1, 2), take1, take1)},
	{name: "log: refund and request beside a taker", log: 2, probeWindow: 1, before: []call{take1}, threads: [][]call{{take1}, {refunds(key1, 1), take1}}},
	{name: "log: two refunds after a refund", log: 1, probeWindow: 1, before: []call{take1, refunds(key1, 1), take1}, threads: [][]call{{refunds(key1, 1)}, {refunds(key1, 1), peeks(key1)}}},
	{name: "log: a refund beside takers of a tick", log: 4, probeWindow: 1, before: []call{take1}, threads: [][]call{{refunds(key1, 1)}, {take1, take1, take1, take1}}},
	{name: "log: a refund to a slot that changes hands", log: 2, probeWindow: 1, before: []call{take1}, threads: [][]call{{refunds(key1, 1)}, {resets(key1), takes(key2, 1), takes(key2, 1)}}},
	{name: "log: a refund beside a late taker", log: 4, probeWindow: 1, before: []call{take1, take1.at(300), take1.at(600)}, threads: [][]call{{refunds(key1, 1).at(1200)}, {take1.at(1250), take1.at(900)}}},
	{name: "log: a late refund beside a taker", log: 3, probeWindow: 1, before: []call{take1, take1.at(300), take1.at(600)}, threads: [][]call{{refunds(key1, 2).at(700)}, {take1.at(1100), take1.at(1250)}}},
	{name: "log: two refunds beside a taker", log: 3, probeWindow: 1, before: []call{take2, take1}, threads: concurrent(refunds(key1, 2), refunds(key1, 2), take2), large: true},
	{name: "log: two refunds beside two takers", log: 2, probeWindow: 1, before: []call{take1}, threads: [][]call{{refunds(key1, 1), take1}, {take1, refunds(key1, 1)}}},
	{name: "log: a refund beside a change of plan", log: 2, probeWindow: 1, plans: [2]uint64{1}, before: []call{take1}, threads: [][]call{{refunds(key1, 1)}, {take1, adopts(1), take1}}},
	{name: "log: a slot with a past", log: 3, probeWindow: 1, before: []call{take1, take1, take1, resets(key1)}, threads: [][]call{{takes(key2, 1), takes(key2, 1), takes(key2, 1)}}},
	{name: "log: a taker left behind by a ring", log: 2, probeWindow: 1, before: []call{take1}, threads: [][]call{{take1.at(100)}, {take1.at(500), take1.at(1000), take1.at(1500), take1.at(1600)}}},
	{name: "log: a taker left behind by a tenure", log: 3, probeWindow: 1, before: []call{take1, take1}, threads: [][]call{{take1}, {resets(key1), takes(key2, 1), takes(key2, 1)}}},
	{name: "log: a taker left behind by refunds", log: 3, probeWindow: 1, before: []call{takes(key1, 3), refunds(key1, 3), take1}, threads: [][]call{{take1}, {take1, refunds(key1, 1), take1}}},
	{name: "log: peek beside two takers", log: 3, probeWindow: 1, before: []call{take1}, threads: concurrent(take1, take2, peeks(key1))},
	{name: "log: sweep beside a taker", log: 2, probeWindow: 1, before: []call{take2}, threads: concurrent(take2.at(3000), sweeps().at(3000))},
	{name: "log: sweep beside two takers", log: 2, probeWindow: 1, before: []call{take2}, threads: concurrent(take2.at(3000), take1.at(3000), sweeps().at(3000)), large: true},
	{name: "log: peek at a slot that changes hands", log: 2, probeWindow: 1, before: []call{take1, take1}, threads: [][]call{{peeks(key1)}, {resets(key1), takes(key2, 1)}}},
	{name: "log: peek at an idle record beside a sweep", log: 2, probeWindow: 1, before: []call{take2}, threads: concurrent(peeks(key1).at(100), sweeps().at(3000))},
	{name: "log: refund to an idle record beside a sweep", log: 2, probeWindow: 1, before: []call{take2}, threads: concurrent(refunds(key1, 1).at(100), sweeps().at(3000))},

	// In these scenarios the algorithm is a fixed window or a sliding window counter. Their search and payloads differ
	// from the search and payloads of token buckets.
	{name: "fixed: three takers of a record", fixed: 3, probeWindow: 2, before: []call{take1}, threads: concurrent(take1, take2, peeks(key1))},
	{name: "fixed: two takers, two slots", fixed: 2, probeWindow: 2, threads: concurrent(take2, take1)},
	{name: "fixed: a key comes back", fixed: 2, probeWindow: 1, before: []call{take1, resets(key1)}, threads: [][]call{{take1}, {takes(key2, 2), resets(key2), take1}}},
	{name: "fixed: two keys twice, one slot, evict", fixed: 2, probeWindow: 1, threads: [][]call{{take1, take1}, {takes(key2, 1), takes(key2, 1)}}},
	{name: "fixed: refund beside two takers", fixed: 3, probeWindow: 1, before: []call{take2}, threads: concurrent(take1, take2, refunds(key1, 1))},
	{name: "counter: three takers of a record", counter: 3, probeWindow: 2, before: []call{take1}, threads: concurrent(take1, take2, peeks(key1))},
	{name: "counter: two takers, two slots", counter: 2, probeWindow: 2, threads: concurrent(take2, take1)},
	{name: "counter: a key comes back", counter: 2, probeWindow: 1, before: []call{take1, resets(key1)}, threads: [][]call{{take1}, {takes(key2, 2), resets(key2), take1}}},
	{name: "counter: refund beside two takers", counter: 3, probeWindow: 1, before: []call{take2}, threads: concurrent(take1, take2, refunds(key1, 1))},

	// These scenarios have limits on requests in flight. Periods start at the scenario's start and at 1000.
	{name: "in flight: two enter, limit 1, two slots", inFlight: 1, probeWindow: 2, threads: concurrent(take1, take1)},
	{name: "in flight: three takers of a record", inFlight: 3, probeWindow: 2, before: []call{take1}, threads: concurrent(take1, take2, peeks(key1))},
	{name: "in flight: two enter and leave, limit 1", inFlight: 1, probeWindow: 1, threads: [][]call{{take1, cancels(key1, 1)}, {take1, cancels(key1, 1)}, {take1}}},
	{name: "in flight: one enters and leaves beside a sweep", inFlight: 1, probeWindow: 2, threads: [][]call{{take1, cancels(key1, 1), take1}, {sweeps(), take1}}},
	{name: "in flight: one leaves as a period ends", inFlight: 2, probeWindow: 1, threads: [][]call{{take1, cancels(key1, 1).at(1000)}, {take1.at(999), take2.at(1000)}, {peeks(key1).at(1000)}}},
	{name: "in flight: one leaves in the next period", inFlight: 3, probeWindow: 1, before: []call{take1.at(10)}, threads: [][]call{{take1.at(20), cancels(key1, 1).at(1500)}, {take2.at(1400), take1.at(2000)}}},
	{name: "in flight: one leaves that is forgotten", inFlight: 2, probeWindow: 1, threads: [][]call{{take1, cancels(key1, 1).at(2000)}, {take1.at(1000), take2.at(2000)}}},
	{name: "in flight: one leaves that is forgotten, beside a sweep", inFlight: 2, probeWindow: 1, threads: [][]call{{take1, cancels(key1, 1).at(2000)}, {sweeps().at(2000), take2.at(2000)}}},
	{name: "in flight: a late one enters", inFlight: 2, probeWindow: 1, before: []call{take1}, threads: concurrent(take1.at(900), take2.at(2000), take1.at(1100))},
	{name: "in flight: one leaves after a reset", inFlight: 1, probeWindow: 1, threads: [][]call{{take1, cancels(key1, 1)}, {resets(key1), take1.at(10)}}},
	{name: "in flight: one leaves after an eviction", inFlight: 1, probeWindow: 1, threads: [][]call{{take1, cancels(key1, 1)}, {takes(key2, 1).at(5), take1.at(10)}}},
	{name: "in flight: one leaves after a reset, and two slots", inFlight: 1, probeWindow: 2, threads: [][]call{{take1, cancels(key1, 1)}, {resets(key1)}, {take1.at(10)}}},
	{name: "in flight: one leaves beside an eviction of another", inFlight: 2, probeWindow: 2, before: []call{takes(other4, 1)}, threads: [][]call{{take2, cancels(key1, 2)}, {takes(key2, 2)}}},
	{name: "in flight: one leaves beside a change of the limit", inFlight: 2, plans: [2]uint64{1}, probeWindow: 1, threads: [][]call{{take2, cancels(key1, 2)}, {adopts(1), take1.at(10)}}},
	{name: "in flight: one leaves after two changes of the limit", inFlight: 1, plans: [2]uint64{2, 1}, probeWindow: 1, threads: [][]call{{take1, cancels(key1, 1)}, {adopts(1), adopts(2), take1.at(10)}}},
	{name: "in flight: one leaves after a reset and a change of the limit", inFlight: 1, plans: [2]uint64{2}, probeWindow: 1, threads: [][]call{{take1, cancels(key1, 1)}, {resets(key1), adopts(1), take1.at(10)}}},
	{name: "in flight: a refund beside a sweep", inFlight: 2, probeWindow: 1, before: []call{take2}, threads: concurrent(refunds(key1, 1).at(1500), take1.at(1500), sweeps().at(1500))},
	{name: "in flight: a key comes back", inFlight: 2, probeWindow: 1, before: []call{take1, resets(key1)}, threads: [][]call{{take1}, {takes(key2, 2), resets(key2), take1}}},
	{name: "in flight: forgotten for another key", inFlight: 1, probeWindow: 1, before: []call{take1}, threads: [][]call{{takes(key2, 1).at(2000)}, {take1.at(2000)}}},
	{name: "in flight: two keys, one slot, evict", inFlight: 2, probeWindow: 1, threads: [][]call{{take1, take1}, {takes(key2, 2)}}},
	{name: "in flight: charges beside a taker", inFlight: 3, probeWindow: 1, before: []call{take1}, threads: concurrent(charges(key1, 2), charges(key1, 5), take1)},

	// In these scenarios clocks differ. A bucket of 4 that was drained at 0 is half full at 2, and full again at 10.
	{name: "a late and an early taker", probeWindow: 2, burst: 4, before: []call{takes(key1, 4)}, threads: concurrent(take2.at(2), take2.at(past))},
	{name: "a late taker of a record that a sweep forgets", probeWindow: 1, burst: 4, before: []call{takes(key1, 4)}, threads: [][]call{{takes(key1, 4).at(2)}, {sweeps().at(past), takes(key1, 4).at(past)}}},
	{name: "a late taker of a record that another key replaces", probeWindow: 1, burst: 4, before: []call{takes(key1, 4)}, threads: [][]call{{takes(key1, 4).at(2)}, {takes(key2, 1).at(past), takes(key1, 4).at(past + 1)}}},

	{name: "a late taker of a record that another key claims", probeWindow: nearSlots + 1, burst: 4, before: append([]call{takes(key1, 4)}, indebted(nearSlots-1)...), threads: [][]call{{takes(key1, 4).at(2)}, {takes(key2, 1).at(past)}}},
	{name: "a late taker that a take and a sweep overtake", probeWindow: 2, burst: 4, threads: [][]call{{takes(key1, 4).at(2)}, {takes(key1, 4).at(5), sweeps().at(past)}}},
	{name: "two takers that are behind the watermark", probeWindow: 1, burst: 4, before: []call{takes(key1, 4).at(8), sweeps().at(past)}, threads: concurrent(take2.at(2), take1.at(3))},

	// In these scenarios clocks leap by the skew, by the payload's circle of 2^53 ns, or by more. A tick is half a
	// nanosecond here.
	{name: "a taker after a leap of a circle", rate: 4e8, probeWindow: 1, before: []call{take1}, threads: concurrent(take1.at(1 << 53))},
	{name: "two takers after a leap of a circle", rate: 4e8, probeWindow: 1, before: []call{take1}, threads: concurrent(take1.at(1<<53), take1.at(1<<53)), large: true},
	{name: "a taker that a leap of a circle overtakes", rate: 4e8, probeWindow: 1, threads: concurrent(take1, sweeps().at(1<<53))},
	{name: "two takers, of which a leap of a circle overtakes one", rate: 4e8, probeWindow: 1, threads: [][]call{{take1}, {sweeps().at(1 << 53), take1.at(1 << 53)}}},
	{name: "a taker beside a leap of a circle", rate: 4e8, probeWindow: 1, threads: concurrent(take1, take1.at(1<<53))},
	{name: "a taker of a record beside a leap of a circle", rate: 4e8, probeWindow: 1, burst: 2, before: []call{take1}, threads: concurrent(take1, take1.at(1<<53))},
	{name: "peek beside a leap of two skews", rate: 4e8, probeWindow: 1, before: []call{take1}, threads: concurrent(peeks(key1), take1.at(1<<50))},
	{name: "peek beside a leap of a circle", rate: 4e8, probeWindow: 1, before: []call{take1}, threads: concurrent(peeks(key1), sweeps().at(1<<53-2))},
	{name: "sweeps of epochs in a full table for a circle", rate: 4e8, probeWindow: 4, before: []call{idle3, idle4, takes(key2, 1), take1, sweeps()}, threads: [][]call{{sweepsEpoch().at(1 << 51), sweepsEpoch().at(2 << 51), sweepsEpoch().at(3 << 51), take1.at(4<<51 - 100)}}},
	{name: "sweeps of epochs in an empty table for a circle", rate: 4e8, probeWindow: 4, before: []call{take1, sweeps()}, threads: [][]call{{sweepsEpoch().at(1 << 51), sweepsEpoch().at(2 << 51), sweepsEpoch().at(3 << 51), take1.at(4<<51 - 100)}}},
	{name: "time leaps while an insert is under way", rate: 4e8, probeWindow: 1, overflow: shard.Refuse, threads: concurrent(takes(key2, 1), take1.at(1<<51))},
	{name: "time leaps twice while a sweep is under way", rate: 4e8, probeWindow: 1, threads: [][]call{{sweeps()}, {sweeps().at(1 << 50), take1.at(1 << 51), take1.at(1 << 51)}}},

	// In these scenarios the plans have different skews. The circle of the second plan is 2^50 ns, which is a skew of
	// the first plan. A sweep makes a leap of time in steps. With a replacement, these steps have too many states. So
	// in one scenario a peek makes the leap, because a peek visits no slots.
	{name: "skews: a smaller one beside a peek that leaps", fine: 16, probeWindow: 1, burst: 2, plans: [2]uint64{2}, threads: [][]call{{peeks(key1).at(1 << 50)}, {adopts(1), take1}}, large: true},
	{name: "skews: a smaller one beside a leap", fine: 16, probeWindow: 1, burst: 2, plans: [2]uint64{2}, threads: [][]call{{sweeps().at(1 << 50)}, {adopts(1), take1}}, endless: true},
	{name: "skews: a larger one beside a leap", fine: 16, probeWindow: 1, burst: 2, plans: [2]uint64{2}, before: []call{adopts(1), take2}, threads: [][]call{{adopts(0)}, {sweeps().at(1 << 50)}}, endless: true},
	{name: "skews: a smaller one beside an insert ahead", fine: 16, probeWindow: 1, burst: 16, plans: [2]uint64{1}, threads: [][]call{{take1.at(1 << 48)}, {adopts(1)}}},
	{name: "skews: to and fro beside a leap", fine: 16, probeWindow: 1, burst: 2, plans: [2]uint64{2}, before: []call{take1}, threads: [][]call{{sweeps().at(1 << 50)}, {adopts(1), adopts(0)}}, endless: true},
	{name: "ticks: finer ones beside another key", fine: 16, probeWindow: 1, burst: 2, plans: [2]uint64{2}, overflow: shard.Refuse, before: []call{idle3}, threads: concurrent(take1, adopts(1))},

	// In these scenarios probe bounds change. A sweep first lowers the bounds, so that there are free slots beyond
	// them.
	{name: "probe bound: one taker", probeBound: true, probeWindow: 3, before: []call{idle3}, threads: concurrent(take1)},
	{name: "probe bound: two takers, two slots", probeBound: true, probeWindow: 2, threads: concurrent(take1, take1)},
	{name: "probe bound: two takers, freed slots", probeBound: true, probeWindow: 2, before: []call{idle3, idle4, resets(other3), resets(other4), sweeps()}, threads: concurrent(take1, take1)},
	{name: "probe bound: two takers behind a record", probeBound: true, probeWindow: 3, before: []call{idle3, idle4, takes(key2, 1), resets(other4), resets(key2), sweeps()}, threads: concurrent(take1, take1)},
	{name: "probe bound: two takers behind a record that is reset", probeBound: true, probeWindow: 2, before: []call{idle3}, threads: concurrent(take1, take1, resets(other3)), large: true},
	{name: "probe bound: a sweep beside an insert", probeBound: true, probeWindow: 2, before: []call{idle3, idle4, resets(other4)}, threads: [][]call{{take1}, {sweeps(), take1}}},
	{name: "probe bound: a sweep of an epoch beside an insert", probeBound: true, probeWindow: 2, before: []call{idle3, idle4}, threads: [][]call{{take1.at(past)}, {sweepsEpoch().at(past), sweepsEpoch().at(past), takes(other4, 1).at(past)}}},
	{name: "probe bound: two sweeps beside an insert", probeBound: true, probeWindow: 2, before: []call{idle3, idle4, resets(other4)}, threads: [][]call{{take1}, {sweeps(), sweeps(), take1}}},
	{name: "probe bound: a sweep beside two inserts", probeBound: true, probeWindow: 2, before: []call{idle3, idle4, resets(other4)}, threads: concurrent(take1, take1, sweeps()), large: true},
	{name: "probe bound: a record at the end of the probe window", probeBound: true, probeWindow: 3, before: []call{idle3, idle4, takes(key2, 1), resets(other4)}, threads: concurrent(take1)},
	{name: "probe bound: a sweep beside two sweeps", probeBound: true, probeWindow: 2, before: []call{idle3, take1}, threads: [][]call{{sweeps()}, {sweeps(), sweeps()}}},
	{name: "probe bound: a peek beside a sweep and an insert", probeBound: true, probeWindow: 2, burst: 2, before: []call{idle3, take1}, threads: [][]call{{peeks(key1)}, {resets(other3), sweeps(), take1}}},
	{name: "probe bound: a sweep beside a taker of an idle record", probeBound: true, burst: 2, probeWindow: 2, before: []call{idle3, take1}, threads: concurrent(take2.at(past), sweeps().at(past))},
	{name: "probe bound: a sweep beside a change of plan", probeBound: true, burst: 2, probeWindow: 2, plans: [2]uint64{3}, before: []call{idle3, take1}, threads: concurrent(adopts(1), sweeps())},
	{name: "probe bound: a sweep beside an eviction", probeBound: true, burst: 2, probeWindow: 2, before: []call{idle3, takes(other4, 2)}, threads: [][]call{{take1}, {sweeps(), takes(key2, 1)}}},
	{name: "probe bound: a sweep beside a reset", probeBound: true, burst: 2, probeWindow: 2, before: []call{idle3, take1}, threads: [][]call{{take1}, {resets(other3), sweeps(), resets(key1), take1}}},
	{name: "probe bound: a sweep beside a refund", probeBound: true, burst: 2, probeWindow: 2, before: []call{idle3, take1}, threads: [][]call{{refunds(key1, 1)}, {resets(other3), sweeps(), take1}}},
	{name: "probe bound: a sweep beside an insert in a log", probeBound: true, log: 2, probeWindow: 2, before: []call{idle3, idle4, resets(other4)}, threads: [][]call{{take1}, {sweeps(), take1}}},
	{name: "probe bound: a sweep that gives up", pages: true, probeBound: true, probeWindow: 8, slots: 256, before: []call{takes(far-1, 1), takes(far-2, 1), takes(far-3, 1), takes(far-4, 1)}, threads: [][]call{{takes(far, 1)}, {sweepsPart(), peeks(far)}}},
	{name: "probe bound: two homes in a byte", probeBound: true, probeWindow: 6, slots: 8, before: []call{idle3, takes(1<<63|5, 1), takes(1<<63|6, 1), takes(1<<63|7, 1)}, threads: [][]call{{take1}, {sweeps(), takes(1<<63|1, 1)}}, large: true},
	{name: "probe bound: a search ends short of an order", probeBound: true, probeWindow: 4, burst: 3, before: []call{takes(far-1, 1), takes(far-2, 1), takes(far, 1), resets(far - 1), resets(far - 2)}, threads: [][]call{{takes(far, 1)}, {sweeps(), takes(far, 1)}}},
	{name: "probe bound: takers behind two records of an order", probeBound: true, probeWindow: 4, before: []call{takes(far-1, 1), takes(far-2, 1), sweeps()}, threads: [][]call{{takes(far, 1)}, {resets(far - 1), takes(far, 1)}}},
	{name: "probe bound: two homes in a word", probeBound: true, probeWindow: 2, slots: 12, before: []call{idle3, takes(far-1, 1)}, threads: concurrent(take1, takes(far, 1))},

	// In these scenarios each thread is a process that is attached to a shared table. The first process may die at any
	// step.
	{name: "mortal: a taker dies beside a taker", mortal: true, probeWindow: 2, threads: concurrent(take1, take1)},
	{name: "mortal: a taker dies beside a taker and a sweep", mortal: true, probeWindow: 2, threads: [][]call{{take1}, {sweeps(), take1}}},
	{name: "mortal: a taker dies, one slot", mortal: true, probeWindow: 1, threads: [][]call{{take1}, {takes(key2, 1), sweeps(), takes(key2, 1)}}},
	{name: "mortal: a taker of an idle record dies", mortal: true, probeWindow: 2, before: []call{idle3, idle4}, threads: concurrent(take1.at(past), take1.at(past))},
	{name: "mortal: an eviction dies", mortal: true, probeWindow: 1, burst: 2, before: []call{idle3}, threads: concurrent(take1, takes(other3, 1))},
	{name: "mortal: a reset dies", mortal: true, probeWindow: 2, burst: 2, before: []call{take1}, threads: concurrent(resets(key1), take1)},
	{name: "mortal: a refund dies", mortal: true, probeWindow: 2, burst: 2, threads: [][]call{{take1, cancels(key1, 1)}, {take1}}},
	{name: "mortal: a sweep dies beside a sweep and a taker", mortal: true, probeBound: true, probeWindow: 2, before: []call{idle3, take1}, threads: [][]call{{sweeps()}, {sweeps(), take1}}},
	{name: "mortal: a sweep dies beside an insert", mortal: true, probeBound: true, probeWindow: 2, before: []call{idle3, idle4, resets(other4)}, threads: [][]call{{sweeps(), sweeps()}, {take1, sweeps()}}},
	{name: "mortal: a change of plan dies", mortal: true, probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take1}, threads: [][]call{{adopts(1)}, {peeks(key1)}}},
	{name: "mortal: a change of plan dies beside a taker", mortal: true, probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take1}, threads: concurrent(adopts(1), take2)},
	{name: "mortal: a change of plan dies beside an insert", mortal: true, probeWindow: 2, burst: 4, plans: [2]uint64{2}, threads: concurrent(adopts(1), take2)},
	{name: "mortal: a taker dies beside two changes of plan", mortal: true, probeWindow: 1, burst: 2, plans: [2]uint64{4, 1}, before: []call{take1}, threads: [][]call{{take1}, {adopts(1), adopts(2)}}, large: true},
	{name: "mortal: a taker beside two changes of plan", mortal: true, probeWindow: 1, burst: 8, plans: [2]uint64{16, 4}, before: []call{take2}, threads: [][]call{{takes(key1, 4).at(3)}, {adopts(1), adopts(2)}}, large: true},
	{name: "mortal: a taker of a drained key beside two changes of plan", mortal: true, probeWindow: 1, burst: 8, plans: [2]uint64{16, 4}, before: []call{takes(key1, 8)}, threads: [][]call{{takes(key1, 4).at(3)}, {adopts(1), adopts(2)}}, large: true},
	{name: "mortal: two changes of plan to and fro, beside a taker", mortal: true, probeWindow: 1, burst: 4, plans: [2]uint64{2}, before: []call{take1}, threads: [][]call{{adopts(1), adopts(0)}, {take2}}, large: true},
	{name: "mortal: a change of plan dies beside another", mortal: true, probeWindow: 1, burst: 2, plans: [2]uint64{4, 8}, before: []call{take1}, threads: concurrent(adopts(1), adopts(2)), large: true},
	{name: "mortal: a taker dies beside three changes of plan", mortal: true, probeWindow: 1, plans: [2]uint64{2, 3}, threads: [][]call{{takes(key1, 3)}, {adopts(1), adopts(1), adopts(2)}}},
	{name: "mortal: a change of plan dies beside a sweep", mortal: true, probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take1}, threads: [][]call{{adopts(1)}, {sweeps(), take1}}},
	{name: "mortal: a change of plan dies beside a leap", mortal: true, fine: 16, probeWindow: 1, burst: 2, plans: [2]uint64{2}, before: []call{take1}, threads: [][]call{{adopts(1)}, {sweeps().at(1 << 50)}}, large: true},
	{name: "mortal: another key beside two changes to longer ticks", mortal: true, fine: 16, probeWindow: 1, burst: 8, plans: [2]uint64{8}, overflow: shard.Refuse, before: []call{adopts(1), takes(other3, 8)}, threads: [][]call{{take1.at(5)}, {adopts(0), adopts(0)}}, large: true},
	{name: "mortal: a change of plan dies beside a take and a sweep later", mortal: true, probeWindow: 1, burst: 2, plans: [2]uint64{4}, threads: [][]call{{adopts(1)}, {take2.at(5), sweeps().at(6)}}, large: true},
	{name: "mortal: a change of plan dies beside a take and a claim later", mortal: true, probeWindow: 2, burst: 2, plans: [2]uint64{4}, before: []call{idle3}, threads: [][]call{{adopts(1)}, {take2.at(5), takes(key2, 1).at(6)}}, large: true},
	{name: "mortal: a change of plan by the clock beside a take later", mortal: true, probeWindow: 1, burst: 2, plans: [2]uint64{4}, threads: [][]call{{adopts(1).byClock()}, {peeks(key1), take2.at(5)}}},
	{name: "mortal: two changes of plan at once", mortal: true, probeWindow: 1, burst: 2, plans: [2]uint64{4, 8}, threads: concurrent(adopts(1), adopts(2))},
	{name: "mortal: a taker whose clock is far ahead", mortal: true, probeWindow: 2, burst: 2, threads: [][]call{{take1.withClockAhead(days), take1.withClockAhead(days)}, {take1, take1}}},
	{name: "mortal: a sweep whose clock is ahead", mortal: true, probeWindow: 1, burst: 2, before: []call{take1}, threads: [][]call{{sweeps().withClockAhead(past), sweepsEpoch().withClockAhead(days)}, {take1}}},
	{name: "mortal: a change of plan whose clock is far ahead", mortal: true, probeWindow: 1, burst: 2, plans: [2]uint64{4}, before: []call{take1}, threads: [][]call{{adopts(1).withClockAhead(days)}, {peeks(key1)}}},
	{name: "mortal: a claim whose clock is ahead", mortal: true, probeWindow: 1, burst: 4, overflow: shard.Refuse, before: []call{takes(other3, 4)}, threads: [][]call{{take1.withClockAhead(past)}, {takes(other3, 1)}}},
	{name: "mortal: the first taker of a page dies", mortal: true, pages: true, probeWindow: 1, threads: [][]call{{take1}, {sweeps()}}},

	// In these scenarios a page is not marked at first (R12). In the table of the first scenario, this is the second of
	// two pages.
	{name: "pages: a sweep beside an insert", pages: true, probeBound: true, probeWindow: 8, slots: 256, before: []call{takes(far-1, 1), takes(far-2, 1), takes(far-3, 1), takes(far-4, 1)}, threads: concurrent(takes(far, 1), sweeps()), large: true},
	{name: "pages: an insert beside a change of plan", pages: true, burst: 2, probeWindow: 1, plans: [2]uint64{3, 2}, threads: [][]call{{take1}, {adopts(1), adopts(2), peeks(key1)}}},
	{name: "pages: a take after a leap of a circle", pages: true, rate: 4e8, probeWindow: 1, threads: [][]call{{take1, take1.at(1 << 53)}}},
	{name: "pages: a taker beside a leap of a circle", pages: true, rate: 4e8, probeWindow: 1, threads: concurrent(take1, take1.at(1<<53))},
	{name: "pages: a sweep beside an insert in a log", pages: true, log: 2, probeWindow: 1, threads: [][]call{{take1}, {sweeps(), take1}}},
}
