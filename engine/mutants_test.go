//go:build explore

package engine

import (
	"testing"

	"github.com/weir-go/weir/internal/interleave"
)

const (
	convertGo   = "atomicbucket/convert.go"
	setPolicyGo = "engine/setpolicy.go"
	alignGo     = "shard/align.go"
	courses     = "TestEveryCourseOfChanges$/^"
	aligned     = "TestAlignedWindowsWhoseLengthChanges"

	// converted keeps the tokens of a debt at a change of the rate, and lasting keeps the time of a debt.
	converted = "b.convertedDebt(before.(*TokenBucket), s, nanos, c)"
	lasting   = "b.convertTicks(before.(*TokenBucket), nanos, before.(*TokenBucket).UntilIdle(s, before.Ticks(nanos)))"
)

// Each mutant breaks a property of docs/decisions/0031, and the model's check of that property must find the mutant.
var mutants = []interleave.Mutant{
	{"(a)", "debts are scaled by the ratio of the limiter's own policy", courses + "tiers", "(a)", []interleave.Edit{
		{"shard/price.go", "	if hasPrice && price == c.Before {\n",
			"	if own := p.changes[0]; hasPrice && own.Before != own.After {\n		own.Highest = math.MaxUint64\n		return own, price\n	}\n	if hasPrice && price == c.Before {\n"},
	}},
	{"(b)", "a debt stays time when the rate becomes slower", courses + "tiers", "(b)", []interleave.Edit{
		{convertGo, converted, "min(" + converted + ", " + lasting + ")"},
	}},
	{"(b)", "what a large quota granted stays time while the key waits, on paper, too", courses + "one_rate", "(b)", []interleave.Edit{
		{"shard/adopt.go", "max(change.Highest, plan.product(t.largest.Load(), change.Before))", "change.Highest"},
		{"engine/model_changes_test.go", "int64(m.highest()) * m.grants[0].token", "int64(m.grants[0].ever) * m.grants[0].token"},
	}},
	{"(c)", "what reservations owe becomes tokens of a slower rate", courses + "one_rate", "(c)", []interleave.Edit{
		{convertGo, "excess = min(oldDebt-min(oldDebt, c.Highest), from.Ticks(max(c.Promised, nanos))-start)", "excess = 0"},
	}},
	{"(b)", "a window ends with a new one, whatever was taken in it", "TestWindowsToAndFro", "(b)", []interleave.Edit{
		{convertGo, "addNanos(latest, c.refillTime(taken, uint64(w.window), c.Longest))", "addNanos(latest, uint64(w.window))"},
	}},
	{"(b)", "a window of the clock ends with the current one, whatever was taken in it", "TestWindowsOfTheClockToAndFro", "(b)", []interleave.Edit{
		{convertGo, "max(w.Ticks(latest), firstWhole)+maxWindows", "max(w.Ticks(latest), firstWhole)+min(maxWindows, 1)"},
	}},
	{"(b)", "a shorter window of the clock may begin before the window that it replaces", aligned, "(b)", []interleave.Edit{
		{convertGo, "max(w.Ticks(latest), firstWhole)+maxWindows", "w.Ticks(latest)+maxWindows"},
	}},
	{"(b)", "a longer window of the clock ends with the current one, though a raised limit fills it", aligned, "(b)", []interleave.Edit{
		{convertGo, "max(w.ceilTick(oldEnd), firstWhole+1)", "max(w.ceilTick(oldEnd), firstWhole)"},
	}},
	{"(c)", "the longest window meets one window of the clock more than it covers", "TestAWaitWhileAlignedWindowsGoToAndFro", "(c)", []interleave.Edit{
		{convertGo, "if w.calendar != nil {\n\t\tlongest++", "if true {\n\t\tlongest++"},
	}},
	{"(b)", "the first window after a change ends with the current one of the clock", aligned, "(b)", []interleave.Edit{
		{"atomicbucket/fixedwindow.go", "now < first {", "false {"},
	}},
	{"(b)", "a late call may fill a window of the clock that was given back", "TestALateTakeInAFirstWindowThatWasGivenBack", "(b)", []interleave.Edit{
		{alignGo, "algorithm.Debt(r, tick) == 0", "algorithm.Idle(r.State, tick)"},
	}},
	{"(b)", "a date that the zone skipped is a window", "TestAFirstWindowBeforeADateThatAZoneSkipped", "(b)", []interleave.Edit{
		{"atomicbucket/fixedwindow.go", "if tick++; w.calendar != nil {", "if tick++; false {"},
	}},
	{"(b)", "windows that begin while records are converted are as before the change", "TestAChangeOfAlignedWindowsAtEveryStep", "(b)", []interleave.Edit{
		{alignGo, "if plan.hasNewGrid && t.isConverting(plan) {", "if false {"},
	}},
	{"(b)", "a shared table is never converting", "TestAChangeOfAlignedWindowsAtEveryStep", "(b)", []interleave.Edit{
		{alignGo, "return t.change.Load() == plan.planned<<changeShift|changing", "return false"},
	}},
	{"(b)", "a shared table forgets when its windows changed", "TestAlignedWindowsOfAFileWhoseLengthChanges", "(b)", []interleave.Edit{
		{"shard/sharedplan.go", "raiseWord(&t.realigned, watermark)", "_ = watermark"},
	}},
	{"(b)", "a copy does not know when the windows changed", "TestAlignedWindowsOfAFileWhoseLengthChanges", "(b)", []interleave.Edit{
		{"engine/sharedcopy.go", "	table.AlignAs(d.table)\n", ""},
	}},
	{"(c)", "a change of the limit makes windows of the clock longer", "TestAChangeOfTheLimitLeavesAlignedWindows", "(c)", []interleave.Edit{
		{"shard/label.go", "p.hasNewGrid = !windows.SameGrid(before.algorithm.(*atomicbucket.FixedWindow))", "p.hasNewGrid = windows.Aligned()"},
	}},
	{"(b)", "a window that becomes longer ends when it would have", "TestARaisedLimitLastsItsWindow", "(b)", []interleave.Edit{
		{convertGo, "case w.window > from.window:", "case false:"},
	}},
	{"(b)", "a counter counts in the current window, whatever was taken", "TestWindowsToAndFro", "(b)", []interleave.Edit{
		{convertGo, "w.clock.quo(end-1)-min(w.clock.quo(end-1), 1)", "min(w.clock.quo(end-1), 0)"},
	}},
	{"(b)", "a refund forgets what has left a short window of a log", "TestARefundInAShorterWindowKeepsTheLog", "(b)", []interleave.Edit{
		{"atomicbucket/slidinglog.go", "retained = max(used, g.countSince(now-l.retention+1))", "retained = used"},
	}},
	{"(b)", "a refund gives back where a short window has overwritten older requests of a log", "TestARefundInAShorterWindowKeepsTheLog", "(b)", []interleave.Edit{
		{"atomicbucket/slidinglog.go", "|| l.retention > l.length && retained == l.size {", "{"},
	}},
	{"(c)", "each change of the length makes a counter last longer", "TestChangesOfTheLengthDoNotAddUp", "(c)", []interleave.Edit{
		{convertGo, "proportion(change.Longest, count-1, count)", "proportion(change.Longest, count-1, count) << 20"},
	}},
	{"(c)", "each change of the length makes an aligned window last longer", "TestChangesOfTheLengthDoNotAddUp", "(c)", []interleave.Edit{
		{convertGo, "longest := ceilDiv(c.Longest, uint64(w.window))", "longest := ceilDiv(c.Longest, uint64(w.window)) + 1000"},
	}},
	{"(b)", "a log is forgotten after a short window", "TestWindowsToAndFro", "(b)", []interleave.Edit{
		{"engine/policy.go", "log.Staying(maxWindow)", "log.Staying(p.window)"},
	}},
	{"(b)", "a window that begins ahead of the clock ends as one that begins now", "TestWindowsAheadOfTheClockThatBecomeShorter", "(b)", []interleave.Edit{
		{convertGo, "latest, oldEnd := max(nanos, c.Latest),", "latest, oldEnd := nanos,"},
	}},
	{"(b)", "a window lasts as the limiter's own limit says", "TestAKeyThatChangesItsLimitToAndFro", "(b)", []interleave.Edit{
		{"shard/label.go", "range p.lastQuotas[:noTier] {\n\t\tif tier.limit", "range p.lastQuotas[:1] {\n\t\tif tier.limit"},
	}},
	{"(b)", "a window lasts as the tiers say, though there are quotas", "TestAKeyThatChangesItsLimitToAndFro", "(b)", []interleave.Edit{
		{"shard/adopt.go", "change.Lowest = min(change.Lowest, 1)", ""},
	}},
	{"(b)", "no quota of windows is remembered", "TestAKeyThatChangesItsLimitToAndFro", "(b)", []interleave.Edit{
		{"engine/quota.go", "need = anyQuota", "need = 0"},
	}},
	{"(b)", "a log has no room for what a key took under another tier", "TestAKeyThatChangesItsLimitToAndFro", "(b)", []interleave.Edit{
		{"engine/plan.go", "len(s.bases) > 1 || s.quotaDebt > 0", "s.quotaDebt > 0"},
	}},
	{"(b)", "a log has no room for what a key took under another quota", "TestAKeyThatChangesItsLimitToAndFro", "(b)", []interleave.Edit{
		{"engine/plan.go", "len(s.bases) > 1 || s.quotaDebt > 0", "len(s.bases) > 1"},
	}},
	{"(b)", "a file forgets that there are quotas of windows", "TestQuotasOfWindowsInAFile", "(b)", []interleave.Edit{
		{"engine/sharedpolicy.go", "s.base.hasWindows() && s.quotaDebt < anyQuota", "s.base.hasWindows()"},
	}},
	{"(d)", "a file of windows has quotas from the start", "TestQuotasOfWindowsInAFile", "(d)", []interleave.Edit{
		{"engine/sharedpolicy.go", "s.quotaDebt = 0 // it", "s.quotaDebt = anyQuota // it"},
	}},
	{"(b)", "a tier that is blocked counts as if it never had a limit", "TestTheLowestLimitOfAllTiers", "(b)", []interleave.Edit{
		{"shard/label.go", "if tier.limit > 0 {", "if tier.Tokens > 0 {"},
	}},
	{"(b)", "there is no room for what a long window has granted", "TestThereIsRoomForALongWindow", "(b)", []interleave.Edit{
		{"engine/plan.go", "s.base.buildRoomy(maxTokens, s.maxWindow())", "s.base.build(maxTokens)"},
	}},
	{"(d)", "a window never becomes shorter", "TestQuotasOfWindowsInAFile", "(d)", []interleave.Edit{
		{convertGo, "case c.Lowest > 0:", "case false:"},
	}},
	{"(d)", "a raised limit is not in force", courses + "tiers", "(d)", []interleave.Edit{
		{setPolicyGo, "	after := newPolicySet(to[0], to[1:])\n",
			"	for i := range to {\n		to[i].limit = min(to[i].limit, s.byTier[i].limit)\n	}\n	after := newPolicySet(to[0], to[1:])\n"},
	}},
	{"(d)", "a faster rate begins when all has come back at the slower one", courses + "tiers", "(d)", []interleave.Edit{
		{convertGo, converted, "max(" + converted + ", " + lasting + ")"},
	}},
}

// TestMutants: the model's check of each property of a change of the policy can fail.
func TestMutants(t *testing.T) { interleave.Catch(t, "..", mutants) }
