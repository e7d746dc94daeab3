//go:build explore

package lease

import "github.com/weir-go/weir/internal/interleave"

type (
	mutant = interleave.Mutant
	edit   = interleave.Edit
)

const (
	leaseGo = "lease.go"
	claimGo = "claim.go"
)

// cas is the code at the end of a spending.
const cas = "if next == w || l.word.CompareAndSwap(uint64(w), uint64(next)) {\n\t\t\treturn v, renew"

// mutants lists changes of the lease's code. Each change breaks one of the rules of the lease.
var mutants = []mutant{
	{"L1", "a spending does not compare", "two takers of the last token", "L1", []edit{
		{leaseGo, cas, "if next == w {\n\t\t\treturn v, renew\n\t\t}\n\t\tif l.word.Store(uint64(next)); true {\n\t\t\treturn v, renew"},
	}},
	{"L1", "a spending that failed is tried again on the word that it knew", "two takers of the last token", "I5", []edit{
		{leaseGo, "\tfor {\n\t\tw := state(l.word.Load())\n\t\ttokens, debt := w.tokens(), w.debt()", "\tw := state(l.word.Load())\n\tfor {\n\t\ttokens, debt := w.tokens(), w.debt()"},
	}},
	{"L1", "a spending takes nothing away", "two takers of the last token", "L1", []edit{
		{leaseGo, "next, v = w.with(tokens-n, debt), Admitted", "v = Admitted"},
	}},
	{"L1", "a request that lost the race for the last token is admitted", "two takers of the last token", "L1", []edit{
		{leaseGo, cas, "if l.word.CompareAndSwap(uint64(w), uint64(next)) || v == Admitted && !renew {\n\t\t\treturn v, renew"},
	}},
	{"L1", "what is asked for is in hand before the answer", "takers of more than the overdraft", "L1", []edit{
		{leaseGo, "\t}\n\treturn l.question\n}\n\n// Settlement", "\t}\n\tl.word.Add(l.question.Want)\n\treturn l.question\n}\n\n// Settlement"},
		{leaseGo, "l.end(granted, l.question.Debt, &isHealthy)", "l.end(0, l.question.Debt, &isHealthy)"},
	}},
	{"L1", "what was wanted is in hand, whatever was granted", "two takers, and the store has nothing", "L1", []edit{
		{leaseGo, "l.end(granted, l.question.Debt, &isHealthy)", "l.end(l.question.Want, l.question.Debt, &isHealthy)"},
	}},
	{"L1", "what was asked for is in hand without an answer", "a taker of more than is in hand", "L1", []edit{
		{leaseGo, "l.end(0, 0, nil)", "l.end(l.question.Want, 0, nil)"},
	}},
	{"L1", "the end of a renewal does not compare", "three takers of four tokens", "L1", []edit{
		{leaseGo, "if l.word.CompareAndSwap(uint64(w), uint64(next)) {\n\t\t\treturn\n", "if l.word.Store(uint64(next)); true {\n\t\t\treturn\n"},
	}},
	{"L1", "a renewal does not count what is in hand", "a taker of more than is in hand, and that is much", "L1", []edit{
		{leaseGo, "max(l.terms.Cap()-min(w.tokens(), l.terms.Cap()), 1)", "l.terms.Cap()"},
	}},
	{"L1", "a renewal wants more than there is room for", "a taker of more than is in hand, and that is much", "L1", []edit{
		{leaseGo, "l.question.Want += min(l.terms.clampTokens(p.last*horizon), room)", "l.question.Want += l.terms.clampTokens(p.last * horizon)"},
	}},
	{"L1", "what a request costs that went with a renewal comes into the hand, too", "a taker of more than is in hand", "L1", []edit{
		{leaseGo, "granted, isPaid = granted-l.carriedCost, true", "isPaid = true"},
	}},
	{"L1", "a request that went with a renewal is paid without a grant", "two takers twice, and the store has nothing", "L1", []edit{
		{leaseGo, "if l.carriedCost > 0 && granted >= l.carriedCost {\n\t\tgranted, isPaid = granted-l.carriedCost, true", "if l.carriedCost > 0 {\n\t\tgranted, isPaid = granted-min(granted, l.carriedCost), true"},
	}},
	{"L1", "a request that went with a renewal is not paid", "a taker of more than is in hand", "L1", []edit{
		{leaseGo, "granted, isPaid = granted-l.carriedCost, true", "granted = granted - l.carriedCost"},
	}},
	{"L1", "a refund takes the room of a renewal", "refund beside a large renewal", "L1", []edit{
		{leaseGo, "if w&renewing != 0 {\n\t\t\tcapacity /= 2", "if false {\n\t\t\tcapacity /= 2"},
	}},
	{"L1", "a refund is put in hand, room or not", "refunds of more than there is room for", "L1", []edit{
		{leaseGo, "w&retired != 0 || w.tokens()+n > capacity {", "w&retired != 0 || w.tokens() > capacity {"},
	}},
	{"L1", "a refund does not compare", "refund beside two takers", "L1", []edit{
		{leaseGo, "if l.word.CompareAndSwap(uint64(w), uint64(w.with(w.tokens()+n, w.debt())+generation)) {\n\t\t\treturn true", "if l.word.Store(uint64(w.with(w.tokens()+n, w.debt())+generation)); true {\n\t\t\treturn true"},
	}},

	{"L2", "there is room for the first token of overdraft only", "takers of 2 and 1 of a new lease", "L2", []edit{
		{leaseGo, "debt+n <= l.terms.Overdraft", "debt < l.terms.Overdraft"},
	}},
	{"L2", "a new lease forgets the debt that it begins with", "a lease that begins with a debt", "L1", []edit{
		{leaseGo, "healthy.with(0, debt)", "healthy.with(0, 0*debt)"},
	}},
	{"L2", "overdraft is given where the store may have nothing", "two takers twice, and the store has nothing", "L2", []edit{
		{leaseGo, "case w&healthy != 0 && debt+n", "case debt+n"},
	}},
	{"L2", "a refusal leaves it healthy", "two takers, and the store has nothing", "L2", []edit{
		{leaseGo, "next &^= healthy", "next &^= 0"},
	}},
	{"L2", "debt is off when the answer is lost", "one taker", "L2", []edit{
		{leaseGo, "l.end(0, 0, nil)", "l.end(0, l.question.Debt, nil)"},
	}},
	{"L2", "debt made while the store is asked is off, too", "two takers of a new lease", "L2", []edit{
		{leaseGo, "w.debt()-charged)", "0*charged)"},
	}},
	{"L2", "debt is off when the store is asked", "one taker", "L2", []edit{
		{leaseGo, "\t}\n\treturn l.question\n}\n\n// Settlement", "\t}\n\tl.word.Add(-w.debt() << debtShift)\n\treturn l.question\n}\n\n// Settlement"},
	}},
	{"L2", "debt is off when the store is asked, and with the answer", "looks at a debt beside a taker", "L2", []edit{
		{leaseGo, "uint64(w.with(0, w.debt())+generation)", "uint64(w.with(0, 0)+generation)"},
	}},
	{"L2", "debt is not asked for", "one taker", "L2", []edit{
		{leaseGo, "Want: l.carriedCost, Debt: w.debt()}", "Want: l.carriedCost}"},
	}},
	{"L2", "a settlement leaves the debt", "looks at a debt beside a taker", "L2", []edit{
		{leaseGo, "Debt: w.debt(), Window: l.window}", "Window: l.window}"},
	}},
	{"L2", "what is off is read again after the question", "two takers of a new lease", "L2", []edit{
		{leaseGo, "l.end(granted, l.question.Debt, &isHealthy)", "l.end(granted, state(l.word.Load()).debt(), &isHealthy)"},
	}},
	{"L2", "an answer takes no debt off", "one taker", "L2", []edit{
		{leaseGo, "l.end(granted, l.question.Debt, &isHealthy)", "l.end(granted, 0, &isHealthy)"},
	}},

	{"L3", "what is given back stays in hand", "a look at two tokens beside a taker", "L3", []edit{
		{leaseGo, "uint64(w.with(0, w.debt())+generation)", "uint64(w+generation)"},
	}},
	{"L3", "a settlement does not compare", "a look at two tokens beside a taker", "L3", []edit{
		{leaseGo, "if l.word.CompareAndSwap(uint64(w), uint64(w.with(0, w.debt())+generation)) {", "if l.word.Store(uint64(w.with(0, w.debt()) + generation)); true {"},
	}},
	{"L3", "a settlement gives back what was in hand before", "a look at two tokens beside a taker", "L3", []edit{
		{leaseGo, "\tl.sent, l.carriedCost = now, 0\n\tfor {\n", "\tl.sent, l.carriedCost = now, 0\n\tbefore := state(l.word.Load())\n\tfor {\n"},
		{leaseGo, "Returned: w.tokens(), Debt", "Returned: before.tokens(), Debt"},
	}},
	{"L3", "what is given back is in hand again when the answer is lost", "a look at two tokens beside a taker", "L3", []edit{
		{leaseGo, "l.end(0, 0, nil)", "l.end(l.question.Returned, 0, nil)"},
	}},
	{"L3", "what is given back leaves the hand with the answer", "a look at two tokens beside a taker", "L3", []edit{
		{leaseGo, "uint64(w.with(0, w.debt())+generation)", "uint64(w+generation)"},
		{leaseGo, "tokens := min(w.tokens()+granted, MaxTokens)", "tokens := min(w.tokens()-min(w.tokens(), l.question.Returned)+granted, MaxTokens)"},
	}},

	{"L4", "every request that takes the last tokens renews", "three takers of four tokens", "L4", []edit{
		{leaseGo, "renew = w&renewing == 0 && tokens-n", "renew = tokens-n"},
	}},
	{"L4", "every request on overdraft renews", "two takers of a new lease", "L4", []edit{
		{leaseGo, "Admitted, w&renewing == 0", "Admitted, true"},
	}},
	{"L4", "every request that is not paid from the hand renews", "takers of more than the overdraft", "L4", []edit{
		{leaseGo, "v, renew = Unknown, w&renewing == 0", "v, renew = Unknown, true"},
	}},
	{"L4", "a look settles what is being renewed", "a look at four tokens beside a taker", "L4", []edit{
		{leaseGo, "case w&(renewing|retired) != 0:", "case w&retired != 0:"},
	}},
	{"L4", "a look does not compare", "a look at two tokens beside a taker", "L4", []edit{
		{leaseGo, "return l.word.CompareAndSwap(uint64(w), uint64(w+generation|renewing)), false", "l.word.Store(uint64(w + generation | renewing))\n\t\treturn true, false"},
	}},
	{"L4", "a look that lost the race settles", "a look at two tokens beside a taker", "L4", []edit{
		{leaseGo, "return l.word.CompareAndSwap(uint64(w), uint64(w+generation|renewing)), false", "l.word.CompareAndSwap(uint64(w), uint64(w+generation|renewing))\n\t\treturn true, false"},
	}},
	{"L4", "a spending ends the renewal that is under way", "two takers of a new lease", "L4", []edit{
		{leaseGo, "next, v, renew = w.with(tokens, debt+n), Admitted", "next, v, renew = w.with(tokens, debt+n)&^renewing, Admitted"},
	}},
	{"L4", "a renewal ends with its question", "one taker", "L4", []edit{
		{leaseGo, "\t}\n\treturn l.question\n}\n\n// Settlement", "\t}\n\tl.word.Add(^uint64(renewing) + 1)\n\treturn l.question\n}\n\n// Settlement"},
	}},
	{"L4", "a settlement ends with its question", "a look at two tokens beside a taker", "L4", []edit{
		{leaseGo, "uint64(w.with(0, w.debt())+generation)", "uint64(w.with(0, w.debt())&^renewing+generation)"},
	}},
	{"L4", "a renewal does not end", "one taker", "L4", []edit{
		{leaseGo, "&^renewing + generation\n\t\tif isHealthy", " + generation\n\t\tif isHealthy"},
	}},
	{"L4", "only an answer ends a renewal", "one taker", "L4", []edit{
		{leaseGo, "l.end(0, 0, nil)\n", ""},
	}},
	{"L4", "what is in hand is noted when the renewal is over", "three takers of four tokens", "L4", []edit{
		{leaseGo, "\t\tl.lastTokens = tokens // before the CAS: after it they are another renewal's\n", ""},
		{leaseGo, "uint64(next)) {\n\t\t\treturn\n", "uint64(next)) {\n\t\t\tl.lastTokens = tokens\n\t\t\treturn\n"},
	}},
	{"L4", "when it was asked is noted when the renewal is over", "one taker", "L4", []edit{
		{leaseGo, "\tl.lastSent = l.sent\n\tl.end(granted, l.question.Debt, &isHealthy)\n", "\tl.end(granted, l.question.Debt, &isHealthy)\n\tl.lastSent = l.sent\n"},
	}},
	{"L4", "a request notes the time before it has the duty", "two takers of the last token", "L4", []edit{
		{leaseGo, "if renew {\n\t\t\tnext =", "if renew {\n\t\t\tl.sent = now()\n\t\t\tnext ="},
	}},

	{"L5", "a lease goes with tokens in hand", "looks at a token that is kept beside a taker", "L5", []edit{
		{leaseGo, "case isIdle && w.tokens() == 0 && w.debt()", "case isIdle && w.debt()"},
	}},
	{"L5", "a lease goes with a debt", "looks at a debt beside a taker", "L5", []edit{
		{leaseGo, "w.tokens() == 0 && w.debt() == 0 && l.denyUntil", "w.tokens() == 0 && l.denyUntil"},
	}},
	{"L5", "a lease goes whose overdraft cannot be paid", "a lease that cannot be paid, and three looks", "L5", []edit{
		{leaseGo, " && (w&healthy != 0 || l.resetAt.Load() <= now):", ":"},
	}},
	{"L5", "a lease goes while it is renewed", "looks at a lease that renews for others", "L5", []edit{
		{leaseGo, "case w&(renewing|retired) != 0:", "case w&retired != 0:"},
	}},
	{"L5", "a lease goes without a look at it", "a lease goes beside a taker", "L5", []edit{
		{leaseGo, "return false, l.word.CompareAndSwap(uint64(w), uint64(w|retired)) // L5", "l.word.Store(uint64(w | retired))\n\t\treturn false, true"},
	}},
	{"L5", "a lease goes at the first look", "looks at a lease that renews for others", "L5", []edit{
		{leaseGo, "case isIdle && w.tokens() == 0", "case w.tokens() == 0"},
	}},
	{"L5", "a lease is forgotten that was not retired", "a lease goes beside a taker", "L5", []edit{
		{leaseGo, "return false, l.word.CompareAndSwap(uint64(w), uint64(w|retired)) // L5", "return false, true"},
	}},
	{"L5", "a retired lease gives overdraft", "a lease goes beside a taker", "L5", []edit{
		{leaseGo, "case w&retired != 0:\n\t\t\treturn Retired, false\n\t\tcase n", "case n"},
	}},
	{"L5", "a refund goes into a retired lease", "refund to a lease that goes", "L5", []edit{
		{leaseGo, "if w&retired != 0 || w.tokens()+n > capacity {", "if w.tokens()+n > capacity {"},
	}},
	{"L5", "a renewal does not change the generation", "looks at a lease that renews for others", "L5", []edit{
		{leaseGo, "next&^renewing + generation | renewing", "next | renewing"},
		{leaseGo, "&^renewing + generation\n\t\tif isHealthy", "&^renewing\n\t\tif isHealthy"},
	}},
	{"L5", "a refund does not change the generation", "refund between looks", "L5", []edit{
		{leaseGo, "uint64(w.with(w.tokens()+n, w.debt())+generation)) {\n\t\t\treturn true", "uint64(w.with(w.tokens()+n, w.debt()))) {\n\t\t\treturn true"},
	}},

	{"L6", "two calls settle", "two settle a claim", "L6", []edit{
		{claimGo, "\t\tif w&claimSettled != 0 {\n\t\t\treturn false, false\n\t\t}\n\t\tif c", "\t\tif c"},
	}},
	{"L6", "a settlement does not compare", "two settle a claim", "L6", []edit{
		{claimGo, "if c.word.CompareAndSwap(w, w|claimSettled) {", "if c.word.Store(w | claimSettled); true {"},
	}},
	{"L6", "a settlement is lost to the end of a renewal", "a claim is settled beside a renewal", "L6", []edit{
		{claimGo, "if c.word.CompareAndSwap(w, w&^claimRenewing) {\n\t\t\treturn w&claimSettled != 0", "if c.word.CompareAndSwap(w, w&^claimRenewing) {\n\t\t\treturn false"},
	}},
	{"L6", "the end of a renewal opens a claim that was settled", "a claim is settled twice beside renewals", "L7", []edit{
		{claimGo, "if c.word.CompareAndSwap(w, w&^claimRenewing) {", "if c.word.CompareAndSwap(w, 0) {"},
	}},
	{"L7", "a settlement does not wait for a renewal", "a claim is settled beside a renewal", "L7", []edit{
		{claimGo, "return true, w&claimRenewing == 0", "return true, true"},
	}},
	{"L7", "a claim is renewed that was settled", "a claim is settled beside a renewal", "L7", []edit{
		{claimGo, "{ return c.word.CompareAndSwap(0, claimRenewing) }", "{\n\tc.word.Store(c.word.Load() | claimRenewing)\n\treturn true\n}"},
	}},
	{"L7", "a renewal is made beside another", "two renew a claim", "L7", []edit{
		{claimGo, "return c.word.CompareAndSwap(0, claimRenewing)", "return c.word.Load()&claimSettled == 0"},
	}},
}
