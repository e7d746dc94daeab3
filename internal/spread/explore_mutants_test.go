//go:build explore

package spread

import "github.com/weir-go/weir/internal/interleave"

type (
	mutant = interleave.Mutant
	edit   = interleave.Edit
)

const (
	bucketGo   = "bucket.go"
	cellGo     = "cell.go"
	exchangeGo = "exchange.go"
	takeGo     = "take.go"
	verbsGo    = "verbs.go"
)

var mutants = []mutant{
	{"S1", "a spending of one token does not compare", "two draws of one cell", "U2", []edit{
		{takeGo, "\treturn c.canSpend(1) && w.CompareAndSwap(uint64(c), uint64(c.spent(1)))", "\tif c.canSpend(1) {\n\t\tw.Store(uint64(c.spent(1)))\n\t}\n\treturn c.canSpend(1)"},
	}},
	{"S1", "a spending of several does not compare", "two spendings of two tokens", "U2", []edit{
		{takeGo, "if h.word.CompareAndSwap(uint64(c), uint64(c.spent(n))) {\n\t\t\treturn b.outcome", "if h.word.Store(uint64(c.spent(n))); true {\n\t\t\treturn b.outcome"},
	}},
	{"S1", "what is drawn is spent before it is charged", "a draw beside a taker of the same cell", "U2", []edit{
		{cellGo, "return c.kind() == ready && n <= c.tokens()", "return n <= c.tokens()"},
	}},
	{"S1", "a draw charges less than the cell gets", "a draw beside a taker", "U2", []edit{
		{exchangeGo, "v.state.next(v.fullAfterTake(tokens, v.limit()))", "v.state.next(v.fullAfterTake(tokens-1, v.limit()))"},
	}},
	{"S1", "a draw pays two requests with one token", "a draw beside a taker", "U2", []edit{
		{exchangeGo, "uint64(x.settled().spent(n)))", "uint64(x.settled()))"},
	}},
	{"S1", "a change does not compare", "two takers of a full bucket", "U2", []edit{
		{bucketGo, "return b.shared.CompareAndSwap(uint64(v.state), uint64(to))", "b.shared.Store(uint64(to))\n\treturn true"},
	}},
	{"S1", "a spending of another's tokens does not compare", "three takers of what a cell holds", "U2", []edit{
		{takeGo, "h.count.Store(0)\n\t\t\tif h.word.CompareAndSwap(uint64(c), uint64(c.spent(n))) {", "h.count.Store(0)\n\t\t\tif h.word.Store(uint64(c.spent(n))); true {"},
	}},

	{"S2", "the next change does not settle the exchange before it", "two draws of two cells", "U2", []edit{
		{bucketGo, "if !b.settle(v.state) {", "if false {"},
	}},
	{"S2", "a draw does not say whose it is", "a draw beside a taker of the same cell", "U2", []edit{
		{exchangeGo, "v.state.next(v.fullAfterTake(tokens, v.limit())).madeBy(number, x)\n\tif", "v.state.next(v.fullAfterTake(tokens, v.limit()))\n\tif"},
	}},
	{"S2", "a return does not say whose it is", "a large taker beside a large one", "U2", []edit{
		{exchangeGo, "v.terms.Quota.Token)).madeBy(number, x)", "v.terms.Quota.Token))"},
	}},
	{"S2", "an exchange is taken for the one before it", "two draws of one cell", "U2", []edit{
		{exchangeGo, "if c.kind() == ready || c.parity() != s.parity() {", "if c.kind() == ready {"},
	}},
	{"S2", "a late call settles an exchange that was not made", "a late call beside three draws", "U2", []edit{
		{exchangeGo, "\tif state(b.shared.Load()) != s { // S2: c may be of a later exchange\n\t\treturn false\n\t}\n", ""},
	}},

	{"S3", "a draw that was dropped has put its tokens in the cell", "two draws of two cells", "U2", []edit{
		{takeGo, "uint64(c.emptied())) // S3", "uint64(c.settled())) // S3"},
	}},
	{"S3", "a draw is dropped that may be made yet", "a draw beside a taker of the same cell", "U2", []edit{
		{takeGo, "\t\tfull := v.fullAfterTake(n, v.limit())\n", "\t\tif c.kind() == drawing {\n\t\t\th.word.CompareAndSwap(uint64(c), uint64(c.emptied()))\n\t\t}\n\t\tfull := v.fullAfterTake(n, v.limit())\n"},
	}},
	{"S3", "a draw is made from a later state", "two draws of one cell", "U2", []edit{
		{exchangeGo, "\t\treturn false // the next", "\t\tfor y := b.look(); !b.change(y, y.state.next(y.fullAfterTake(tokens, y.limit())).madeBy(number, x)); y = b.look() {\n\t\t}\n\t\treturn false // the next"},
	}},

	{"S4", "a return is made by a call that has read the cell before", "a large taker beside a large one", "U2", []edit{
		{takeGo, "\t\tv := b.look()\n\t\tc := cell(h.word.Load())\n\t\tswitch", "\t\tc := cell(h.word.Load())\n\t\tv := b.look()\n\t\tswitch"},
	}},
	{"S4", "what is given back leaves the cell first", "a large taker of what two cells hold", "U2", []edit{
		{exchangeGo, "CompareAndSwap(uint64(c), uint64(x)) && b.finish(v, number, x)", "CompareAndSwap(uint64(c), uint64(x.emptied())) && b.finish(v, number, x)"},
	}},
	{"S4", "what is given back is in the bucket first", "a large taker of what two cells hold", "U2", []edit{
		{exchangeGo, "return b.cells[number-1].word.CompareAndSwap(uint64(c), uint64(x)) && b.finish(v, number, x)", "return b.finish(v, number, x) && b.cells[number-1].word.CompareAndSwap(uint64(c), uint64(x.emptied()))"},
	}},
	{"S4", "what is given back stays in the cell", "a large taker of what two cells hold", "U2", []edit{
		{cellGo, "\tif c.kind() == drawing {\n\t\treturn c &^ (kindMask << kindShift)\n\t}\n\treturn c.emptied()", "\treturn c &^ (kindMask << kindShift)"},
	}},
	{"S4", "a request passes what is being given back", "a large taker beside a large one", "U3", []edit{
		{takeGo, "\t\tcase c.kind() == returning:\n\t\t\tb.finish(v, otherNumber, c)\n\t\t\treturn o, false\n", ""},
	}},
	{"S4", "a look passes what is being given back", "a look for all beside a large taker", "U3", []edit{
		{verbsGo, "\t\t\tcase returning:\n\t\t\t\tsettled = false\n\t\t\t\tb.finish(v, k+1, c)\n", ""},
	}},

	{"S5", "a cell draws more than its share", "a draw of a share", "U1", []edit{
		{takeGo, "min(h.usage(v.nanos), v.terms.share)", "h.usage(v.nanos)"},
	}},
	{"S5", "a cell draws what the bucket does not have", "one taker of everything after a rest", "U1", []edit{
		{takeGo, "min(tokens, v.terms.available(v.owed)/v.terms.cells) // S5", "min(tokens, tokenMask)"},
	}},

	{"S6", "a refusal does not look at cells", "a taker of what another cell holds", "U3", []edit{
		{takeGo, "\theld := uint64(0)\n", "\theld := uint64(0)\n\tif true {\n\t\treturn v.refusal(0), state(b.shared.Load()) == v.state\n\t}\n"},
	}},
	{"S6", "a refusal does not look at the shared word again", "a large taker beside a large one", "U3", []edit{
		{takeGo, "return v.refusal(held), state(b.shared.Load()) == v.state // S6", "return v.refusal(held), true"},
	}},
	{"S6", "a refusal counts cells, and not the bucket", "a large taker of what two cells hold", "U3", []edit{
		{takeGo, "if held*v.terms.Quota.Token < v.shortage(n) {", "if held < n {"},
	}},
	{"S6", "a look does not look at the shared word again", "a look beside a draw", "U3", []edit{
		{verbsGo, "if settled && state(b.shared.Load()) == v.state { // S6", "if settled {"},
	}},

	{"S7", "a change leaves what cells hold", "a change beside a draw", "U1", []edit{
		{verbsGo, "\tb.drain() // S7\n", ""},
	}},
	{"S7", "a change does not name the new terms", "a change beside a draw", "U2", []edit{
		{verbsGo, "v.state.next(now+min(owed, t.maxDebt)).withPlan(plan)", "v.state.next(now+min(owed, t.maxDebt))"},
	}},
	{"S7", "a change overwrites the terms that are followed", "a change beside a draw", "U2", []edit{
		{verbsGo, "b.terms[plan&planMask].Store(t)", "b.terms[(plan-1)&planMask].Store(t)\n\tb.terms[plan&planMask].Store(t)"},
	}},

	{"S7", "terms begin when they are met", "TestTermsBeginBeforeTheyAreMet", "U2", []edit{
		{verbsGo, "\tt.start.Store(b.clock()) // before any call can read them: S7\n\tb.terms[plan&planMask].Store(t)", "\tb.terms[plan&planMask].Store(t)\n\tt.start.Store(b.clock())"},
	}},
	{"S7", "what was met before the terms is told by them", "TestASpendingBesideManyChanges", "U2", []edit{
		{takeGo, " || readAt <= t.start.Load() {", " {"},
	}},

	{"S8", "a cell draws what nobody has used", "two takers of a full bucket", "U4", []edit{
		{takeGo, "\tif u := h.count.Load(); isRecent(u, nanos) {\n\t\treturn u & tokenMask\n\t}\n\treturn 0", "\treturn 2"},
	}},

	{"S9", "a bucket that has rested is not woken", "two takers after a long rest", "U3", []edit{
		{bucketGo, "\t\tif b.shared.CompareAndSwap(uint64(v.state), uint64(v.state.next(v.now()))) { // S9", "\t\tif true {\n\t\t\treturn v\n\t\t} else {"},
	}},
	{"S9", "a bucket that has rested seems to be awake before it is", "two takers after a long rest", "U3", []edit{
		{bucketGo, "\t\tif b.shared.CompareAndSwap(uint64(v.state), uint64(v.state.next(v.now()))) { // S9\n\t\t\tb.changedAt.CompareAndSwap(uint64(changedAt), uint64(v.nanos))\n\t\t}", "\t\tb.changedAt.CompareAndSwap(uint64(changedAt), uint64(v.nanos))\n\t\tb.shared.CompareAndSwap(uint64(v.state), uint64(v.state.next(v.now())))"},
	}},
	{"S9", "a bucket is changed before changedAt says so", "a change that changedAt does not say beside a rest", "U1", []edit{
		{bucketGo, "\tif changedAt := int64(b.changedAt.Load()); v.nanos-changedAt > v.terms.quarter/4 {\n\t\tb.changedAt.CompareAndSwap(uint64(changedAt), uint64(v.nanos)) // S9\n\t}\n\treturn b.shared.CompareAndSwap(uint64(v.state), uint64(to))",
			"\tchanged := b.shared.CompareAndSwap(uint64(v.state), uint64(to))\n\tif changedAt := int64(b.changedAt.Load()); changed && v.nanos-changedAt > v.terms.quarter/4 {\n\t\tb.changedAt.CompareAndSwap(uint64(changedAt), uint64(v.nanos))\n\t}\n\treturn changed"},
	}},

	{"S10", "a refund gives back what has come back", "time passes beside a refund", "U2", []edit{
		{verbsGo, "v.fullAfterRefund(cost-passed)", "v.fullAfterRefund(cost-0*passed)"},
		{verbsGo, "if passed >= cost {", "if false {"},
	}},
	{"S10", "a refund gives back under other terms", "a change beside a refund", "U2", []edit{
		{verbsGo, "if v.terms != terms || nanos < terms.start.Load() {", "if false {"},
	}},
}
