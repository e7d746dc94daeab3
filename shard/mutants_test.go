//go:build explore

package shard

import (
	"testing"

	"github.com/weir-go/weir/internal/interleave"
)

// mutants are versions of the code, each of which breaks one rule. No scenario of fuzz/explore can show these failures:
// they need several concurrent replacements of the plan or more slots, or they concern entries or prices.
var mutants = []interleave.Mutant{
	{"R22", "a step towards the next plan does not look whether that is present by then", "TestAStepTowardsAPlanThatIsPresentByThen", "R22", []interleave.Edit{
		{"shard/sharedplan.go", "if t.planned.Load() != n { // after", "if false { // after"},
	}},
	{"R22", "a step towards the next plan looks for it before the watermark", "TestAStepTowardsAPlanThatIsPresentByThen", "R22", []interleave.Edit{
		{"shard/sharedplan.go", "\twatermark, step := t.watermark.Load(), uint64(1)\n", "\tplanned := t.planned.Load()\n\twatermark, step := t.watermark.Load(), uint64(1)\n"},
		{"shard/sharedplan.go", "if t.planned.Load() != n { // after", "if planned != n { // after"},
	}},
	{"R9", "the first search does not look which plan a record follows", "TestTheFirstSearchPassesRecordsInDebt", "R9", []interleave.Edit{
		{"shard/candidate.go", "if t.plan.Load() != plan || s.Tag() != plan.live {", "if t.plan.Load() != plan || !s.IsLive() {"},
	}},
	{"R9", "the first search does not look for the plan after the state", "TestTheFirstSearchKnowsItsPlan", "R9", []interleave.Edit{
		{"shard/candidate.go", "if t.plan.Load() != plan || s.Tag() != plan.live {", "if s.Tag() != plan.live {"},
	}},
	{"R5", "the first search passes the record of its own key", "TestTheFirstSearchPassesRecordsInDebt", "R5", []interleave.Edit{
		{"shard/candidate.go", "if sl.key.Load()&^tierMask == p.fingerprint {", "if false {"},
	}},
	{"R7", "the first search passes an idle record", "TestTheFirstSearchPassesRecordsInDebt", "R7", []interleave.Edit{
		{"shard/candidate.go", "if owed == 0 {", "if false {"},
	}},
	{"R7", "the first search prefers the record that owes the most", "TestTheFirstSearchPassesRecordsInDebt", "I7", []interleave.Edit{
		{"shard/candidate.go", "if owed < leastOwed {", "if owed > leastOwed || i == 0 {"},
	}},
	{"R26", "a take changes a record before the entry of the last change is marked", "an entry comes back to the record", "R26", []interleave.Edit{
		{entriesGo, "	t.markLastChange(sl, s)\n	if r.number == 0 {", "	if r.number == 0 {"},
	}},
	{"R26", "an entry that leaves changes a record before that of the last change is marked", "one dies beside two that reap", "I2", []interleave.Edit{
		{entriesGo, "		if !t.markLastChange(sl, s) {\n			continue\n		}\n		if atomicbucket", "		if atomicbucket"},
	}},
	{"R26", "a claim takes an idle record before the entry of its last change is marked", "an idle record is claimed", "R26", []interleave.Edit{
		{"shard/insert.go", "if t.entries != nil && !t.markLastChange(best.slot, best.state) { // R26", "if false {"},
	}},
	{"R26", "a sweep frees an idle record before the entry of its last change is marked", "a record is swept as its last one leaves", "R26", []interleave.Edit{
		{"shard/sweep.go", "case (t.entries == nil || t.markLastChange(sl, s)) && sl.state.Free(s): // R26", "case sl.state.Free(s):"},
	}},
	{"R26", "an entry is marked that is another slot's by now", "an entry of another slot by now", "I2", []interleave.Edit{
		{entriesGo, "|| e.slotTokens.Load()&slotMask != t.number(sl) {", "{"},
	}},
	{"R26", "a tentative record names an entry", "a slot is tentative again as one leaves late", "I2", []interleave.Edit{
		{entriesGo, "if t.entries == nil || !s.IsLive() {", "if t.entries == nil {"},
	}},
	{"R26", "an entry is marked for a state that is past", "an entry comes back to the record", "R26", []interleave.Edit{
		{entriesGo, "		if sl.state.Load() != s {\n			return false\n		}\n", ""},
	}},
	{"R26", "changes are not counted", "an entry comes back to the record", "R26", []interleave.Edit{
		{"atomicbucket/entries.go", "s.Payload()&^(changeUnit-1) + changeUnit", "s.Payload()&^(changeUnit-1)"},
	}},
	{"R26", "an entry leaves twice", "one dies beside two that reap", "I2", []interleave.Edit{
		{entriesGo, "if atomicbucket.Entry(e.holder.Load()) != h { // after the state", "if false {"},
	}},
	{"R26", "an entry is looked at before its record", "one dies beside two that reap", "I2", []interleave.Edit{
		{entriesGo, "		s := sl.state.Load()\n		if !t.markLastChange(sl, s) {\n			continue", "		now := e.holder.Load()\n		s := sl.state.Load()\n		if !t.markLastChange(sl, s) {\n			continue"},
		{entriesGo, "if atomicbucket.Entry(e.holder.Load()) != h { // after the state", "if atomicbucket.Entry(now) != h {"},
	}},
	{"R26", "an entry stays when it has left", "two leave", "R26", []interleave.Edit{
		{entriesGo, "			e.setState(h, atomicbucket.NoEntry)\n			return n, after", "			return n, after"},
	}},
	{"R26", "an entry counts before its take", "two enter, limit 1", "I2", []interleave.Edit{
		{"atomicbucket/entries.go", "| Pending | Entry", "| Counted | Entry"},
	}},
	{"R26", "a pending entry of the dead is freed without a look at the record", "one enters and dies beside one that reaps", "R26", []interleave.Edit{
		{entriesGo, "		t.markEntry(e)\n		if e.setState", "		if e.setState"},
	}},
	{"R26", "what a dead process has in flight stays", "one enters and dies beside one that reaps", "R26", []interleave.Edit{
		{entriesGo, "isDead = t.isDeserted(h.Claimant())", "isDead = false"},
	}},
	{"R26", "what the living have in flight is freed", "one dies beside two that reap", "R26", []interleave.Edit{
		{entriesGo, "isDead = t.isDeserted(h.Claimant())", "isDead = true"},
	}},
	{"R26", "a receipt is for whoever has the entry by now", "one is forgotten, and its entry taken again, as it leaves", "I2", []interleave.Edit{
		{entriesGo, " && e.useNumber(h) == receipt.ends {", " {"},
	}},
	{"R26", "what a process that hangs has in flight is not forgotten", "one hangs beside one that enters", "R26", []interleave.Edit{
		{entriesGo, "			t.markEntry(e)\n			h = atomicbucket", "			h = atomicbucket"},
	}},
	{"R26", "a reset passes an entry that is pending", "one hangs beside a reset", "I7", []interleave.Edit{
		{entriesGo, "	t.markLastChange(sl, s)\n	for number", "	for number"},
	}},
	{"R26", "a reset is of the key that has the slot by now", "a reset as the slot becomes another key's", "I2", []interleave.Edit{
		{entriesGo, "if sl.key.Load()&^tierMask == p.fingerprint { // after", "if true { // after"},
	}},
	{"R26", "a reset is of all slots", "a reset of one key of two", "I2", []interleave.Edit{
		{entriesGo, "|| slotTokens&slotMask != t.number(sl) || slotTokens>>", "|| slotTokens>>"},
	}},
	{"R26", "an entry of the dead is freed that another process has by now", "one enters and dies, and its entry is taken again beside a reaper", "R26", []interleave.Edit{
		{entriesGo, "if current != h.As(atomicbucket.Counted) {", "if current.What() != atomicbucket.Counted {"},
	}},
	{"R26", "a refused charge keeps its entry", "two charge, room for one", "R26", []interleave.Edit{
		{"shard/charge.go", "	} else {\n		t.concludeEntry(&r, &o)\n", "	} else {\n"},
	}},
	{"R26", "a charge names no entry", "two charge, room for one", "I2", []interleave.Edit{
		{"shard/charge.go", "if payload, ok = t.prepareEntry(r, sl, view.slotState, payload, d.Cost); !ok {", "if _, ok = t.prepareEntry(r, sl, view.slotState, payload, d.Cost); !ok {"},
	}},
	{"R26", "a reset forgets a record that has changed", "a reset beside one that enters", "I7", []interleave.Edit{
		{entriesGo, "sl.state.Free(record.State)", "sl.state.Free(sl.state.Load())"},
	}},
	{"R26", "what is in flight is evicted", "two keys, one slot", "I7", []interleave.Edit{
		{"shard/overflow.go", "|| sl == nil || t.entries != nil {", "|| sl == nil {"},
	}},
	{"R26", "a refused request keeps its entry", "two enter, limit 1", "R26", []interleave.Edit{
		{entriesGo, "		t.entries.list[r.number-1].setState(r.holder, atomicbucket.NoEntry)\n", ""},
	}},
	{"R24", "a conversion takes every record for one of tier 0", "TestAPlanOfPricesInEveryOrder", "R24", []interleave.Edit{
		{"shard/adopt.go", "plan.changes[key&tierMask>>tierShift]", "plan.changes[0]"},
	}},
	{"R24", "a conversion knows the highest limit of the last take's tier", "TestAConversionKnowsEveryLimit", "R24", []interleave.Edit{
		{"shard/label.go", "Highest: max(highest, oldQuota.limit)", "Highest: oldQuota.limit"},
	}},
	{"R28", "a conversion knows no quota that is larger than all tiers", "TestAConversionKnowsEveryLimit", "R28", []interleave.Edit{
		{"shard/adopt.go", "max(change.Highest, plan.product(t.largest.Load(), change.Before))", "change.Highest"},
	}},
	{"R28", "a smaller quota takes the place of a larger one", "TestAConversionKnowsEveryLimit", "R28", []interleave.Edit{
		{"shard/sharedplan.go", "if t.owner == nil {\n\t\tt.largest.Store(max(t.largest.Load(), n))", "if t.owner == nil {\n\t\tt.largest.Store(n)"},
	}},
	{"R28", "the number of a quota overflows in a conversion", "TestAConversionKnowsEveryLimit", "R28", []interleave.Edit{
		{"shard/adopt.go", "plan.product(t.largest.Load(), change.Before)", "t.largest.Load()*change.Before"},
	}},
	{"R27", "the price of another call is counted at this call's time", "TestAnotherCallsPriceKeepsWhatIsAhead", "I1", []interleave.Edit{
		{"shard/price.go", "bucket.Repriced(v.slotState, v.earliest, t.latestCharge(v.place, now), price, next, tick)", "bucket.Repriced(v.slotState, now, t.latestCharge(v.place, now), price, next, tick)"},
	}},
	{"R27", "this call's tokens are scaled with what was owed before", "TestAnotherCallsPriceKeepsWhatIsAhead", "I1", []interleave.Edit{
		{"shard/price.go", "owed += added", "owed = added"},
	}},
	{"R27", "a debt for which there is no room is cut off where it is counted", "TestADebtForWhichThereIsNoRoom", "I1", []interleave.Edit{
		{"atomicbucket/price.go", "maxBurstTicks+maxSkew-min(ahead, maxSkew)", "maxBurstTicks-min(ahead, maxSkew)"},
	}},
	{"R27", "a higher price leaves the watermark behind", "TestALateCallAfterAHigherPrice", "I1", []interleave.Edit{
		{"shard/price.go", "\t\t\tt.raise(v.earliest) // what has come back later", "\t\t\t// what has come back later"},
	}},
	{"R27", "a higher price that another offers leaves the watermark behind", "TestALateCallAfterAnothersHigherPrice", "I1", []interleave.Edit{
		{"shard/price.go", "\t\t\tt.raise(v.earliest) // as move does\n", ""},
	}},
	{"R27", "a price that another offers is not entered", "TestAPriceThatAnotherOffersIsEntered", "R27", []interleave.Edit{
		{"shard/price.go", "\t\tt.storeLowestPrice(plan, min(price, next))\n", ""},
	}},
	{"R27", "an offer looks like one for every other state", "TestALateOffer", "I2", []interleave.Edit{
		{"atomicbucket/price.go", ">> (64 - markBits) }", ">> 63 }"},
	}},
	{"R11", "a sweep covers a record by its address", "TestASweepCoversEveryOrder", "R11", []interleave.Edit{
		{"shard/sweep.go", "if i := p.index(sl); i < t.probeWindow {", "if i := p.index(sl) ^ p.order(); i < t.probeWindow {"},
	}},
	{"R27", "an offer for which there is no room stays one for that state", "TestAnOfferForWhichThereIsNoRoom", "I5", []interleave.Edit{
		{"shard/price.go", "\t\tsl.state.Move(v.slotState, v.slotState.Payload()+1) // a tick more, so that the offer is one for another state\n", ""},
	}},
	{"R27", "an offer does not look at the state again", "TestPricesInEveryOrder", "I2", []interleave.Edit{
		{"atomicbucket/price.go", "if word.Load() != s { // after", "if false { // after"},
	}},
	{"R27", "hit does not look at the price", "TestPricesInEveryOrder", "I2", []interleave.Edit{
		{"shard/quota.go", "t.prices != nil && !atomicbucket.PriceIs(", "t.prices != nil && false && !atomicbucket.PriceIs("},
	}},
	{"R27", "hit does not look at the price of a tier", "TestPricesInEveryOrder", "I2", []interleave.Edit{
		{"shard/quota.go", "!atomicbucket.PriceIs(t.priceWord(sl, s).Load(), s, quota.Token) { // R27", "false {"},
	}},
	{"R27", "a call takes a price of the next plan for one of its own", "TestAPlanOfPricesInEveryOrder", "R24", []interleave.Edit{
		{"shard/price.go", "if t.current() != plan { // after the offer", "if false { // after the offer"},
	}},
	{"R27", "a replacement takes a price of the plan before for one of its own", "TestAPlanOfPricesInEveryOrder", "I2", []interleave.Edit{
		{"shard/price.go", "if ok && next != price {", "if ok && next != price && false {"},
	}},
	{"R24", "a take writes afterwards under which tier it is", "TestAPlanOfPricesInEveryOrder", "R24", []interleave.Edit{
		{"shard/take.go", "\t\t\tt.relabel(p, sl, r.quota)\n\t\t\tif after, ok := t.move(sl, view, plan, payload, r.now); ok {\n", "\t\t\tif after, ok := t.move(sl, view, plan, payload, r.now); ok {\n\t\t\t\tt.relabel(p, sl, r.quota)\n"},
	}},
	{"R24", "a charge does not say under which tier it is", "TestAPlanOfPricesInEveryOrder", "R24", []interleave.Edit{
		{"shard/charge.go", "\tt.relabel(p, sl, r.quota)\n\tif after", "\tif after"},
	}},
	{"R9", "an insert does not look which plan a record follows", "TestAPlanOfPricesInEveryOrder", "I1", []interleave.Edit{
		{"shard/insert.go", "s.IsLive() && s.Tag() != plan.live", "false"},
	}},
	{"R9", "a hit under a quota does not look which plan a record follows", "TestAPlanOfPricesInEveryOrder", "I2", []interleave.Edit{
		{"shard/quota.go", "if s.Tag() != plan.live {\n\t\t\tif s.IsLive() {\n\t\t\t\tbreak\n\t\t\t}\n\t\t\ti++\n\t\t\tsl = p.slot(i)\n\t\t\tcontinue\n\t\t}\n\t\tif q.packed>>unitShift", "if !s.IsLive() {\n\t\t\ti++\n\t\t\tsl = p.slot(i)\n\t\t\tcontinue\n\t\t}\n\t\tif q.packed>>unitShift"},
	}},
	{"R27", "a call takes the price that another offers for its own", "TestPricesInEveryOrder", "I2", []interleave.Edit{
		{"shard/price.go", "if next == v.callPrice {", "if next > 0 {"},
	}},
	{"R27", "a call of another price commits a record with its take", "TestPricesInEveryOrder", "I2", []interleave.Edit{
		{"shard/insert.go", "if !t.hasPriceOf(sl, tentative, quota) {", "if false {"},
	}},
	{"R27", "what is given back does not offer a price", "TestPricesInEveryOrder", "I2", []interleave.Edit{
		{"shard/price.go", "after, done = t.reprice(sl, view{Record: r, slotState: s, callPrice: price, recordPrice: price, earliest: at, place: p}, plan, now+owed-amount, at)", "after, done = sl.state.Convert(s, s.Tag(), now+owed-amount)"},
	}},
	{"R28", "a replacement does not look for a larger quota", "TestAQuotaBesideAReplacementAtEveryStep", "R28", []interleave.Edit{
		{"shard/sharedplan.go", "if largest < math.MaxUint64 && t.largest.Load() > largest {", "if false && largest < math.MaxUint64 {"},
	}},
	{"R28", "a replacement looks for a larger quota before others are kept out", "TestAQuotaBesideAReplacementAtEveryStep", "R28", []interleave.Edit{
		{"shard/sharedplan.go", "\tt.raise(clock()) // by leaps: step 5 makes none\n\tif !t.claimSetting() {", "\tknown := t.largest.Load()\n\tt.raise(clock())\n\tif !t.claimSetting() {"},
		{"shard/sharedplan.go", "t.largest.Load() > largest {", "known > largest {"},
	}},
	{"R28", "a quota is remembered while another process is about to replace the plan", "TestAQuotaBesideAReplacementAtEveryStep", "R28", []interleave.Edit{
		{"shard/sharedplan.go", "\tif !t.claimSetting() {\n\t\treturn false\n\t}\n\tt.completeReplacement(clock)\n\tt.largest.Store(", "\tt.completeReplacement(clock)\n\tt.largest.Store("},
		{"shard/sharedplan.go", "\tt.setting.Store(0)\n\treturn true\n", "\treturn true\n"},
	}},
	{"R28", "a quota is remembered beside a replacement that is not complete", "TestAQuotaBehindADeathAtEveryStepOfAReplacement", "R28", []interleave.Edit{
		{"shard/sharedplan.go", "\tt.completeReplacement(clock)\n\tt.largest.Store(", "\tt.largest.Store("},
	}},
	{"R29", "new windows count from before the conversion", "TestNewWindowsOfTheClockCountFromTheLastForgottenOneAtEveryStep", "(b)", []interleave.Edit{
		{"shard/adopt.go", "\tt.plan.Store(plan)\n\tt.adoptAll()\n", "\tt.plan.Store(plan)\n\tdefer t.adoptAll()\n"},
	}},
}

const entriesGo = "shard/entries.go"

// TestMutants checks that the tests of this package catch every mutant.
func TestMutants(t *testing.T) { interleave.Catch(t, "..", mutants) }
