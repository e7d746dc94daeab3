//go:build explore

package explore

const (
	takeGo       = "shard/take.go"
	insertGo     = "shard/insert.go"
	planGo       = "shard/plan.go"
	peekGo       = "shard/peek.go"
	refundGo     = "shard/refund.go"
	watermarkGo  = "shard/watermark.go"
	sharedPlanGo = "shard/sharedplan.go"
	sweepGo      = "shard/sweep.go"
	evictGo      = "shard/overflow.go"
	adoptGo      = "shard/adopt.go"
	logGo        = "atomicbucket/slidinglog.go"
	ringGo       = "atomicbucket/ring.go"
	boundGo      = "shard/probebound.go"
	candidateGo  = "shard/candidate.go"
	tableGo      = "shard/table.go"
	wordGo       = "atomicbucket/word.go"
	bucketGo     = "atomicbucket/tokenbucket.go"
	reserveGo    = "shard/reserve.go"
	quotaGo      = "shard/quota.go"
	chargeGo     = "shard/charge.go"
	priceGo      = "shard/price.go"
	receiptGo    = "shard/receipt.go"
	inFlightGo   = "shard/inflight.go"
	countGo      = "atomicbucket/concurrency.go"
)

// foundNothing is an edit that several mutants share, one for each kind of call. With it, a call that finds no record
// does not check whether the watermark has passed the call's time meanwhile.
var foundNothing = []edit{
	{peekGo, "if uint64(at)-t.watermark.Load() > plan.skew {", "if sl != nil && uint64(at)-t.watermark.Load() > plan.skew {"},
}

// mutants are versions of the code in which one rule of shard/doc.go is broken.
var mutants = []mutant{
	{"R1", "hit reads the key only before the state", "two keys twice, one slot, evict", "I2", []edit{
		{takeGo, "\t\ts := sl.state.Load()\n\t\tif sl.key.Load() != label {", "\t\tkey := sl.key.Load()\n\t\ts := sl.state.Load()\n\t\tif key != label {"},
	}},
	{"R1", "insert reads the key before the state", "two keys twice, one slot, evict", "I2", []edit{
		{insertGo, "s := sl.state.Load() // before the key: R1", "key := sl.key.Load()\n\t\ts := sl.state.Load()"},
		{insertGo, "if sl.key.Load()&^tierMask == p.fingerprint && s.Tag()", "if key&^tierMask == p.fingerprint && s.Tag()"},
	}},
	{"R1", "peek and reset read the key before the state", "two resets of a stranger's slot", "I7", []edit{
		{peekGo, "s := sl.state.Load() // R1", "key := sl.key.Load()\n\t\ts := sl.state.Load()"},
		{peekGo, "!s.IsLive() || sl.key.Load()&^tierMask != p.fingerprint", "!s.IsLive() || key&^tierMask != p.fingerprint"},
	}},
	{"R2", "hit does not read a refusing state again", "a key comes back", "I9", []edit{
		{takeGo, "if sl.state.Load() == s { // R2", "if true {"},
	}},
	{"R2", "peek does not read the state again", "peek at a slot that changes hands", "I9", []edit{
		{peekGo, "if sl == nil || sl.state.Load() == record.State { // R2", "if sl == nil || true {"},
	}},
	{"R2", "a take from a window does not read a refusing state again", "fixed: a key comes back", "I9", []edit{
		{takeGo, "if sl.state.Load() == record.State && !hasRoom { // R2", "if !hasRoom {"},
	}},
	{"R3", "a claim does not change the version", "two keys twice, one slot, evict", "I2", []edit{
		{wordGo, "NewState(Claimed, from.Version()+1, claimant)", "NewState(Claimed, from.Version(), claimant)"},
	}},
	{"R3", "the key is written after TENT", "a key comes back", "I2", []edit{
		{insertGo, "sl.key.Store(t.label(p, r.quota))      // under CLAIM: R3\n", ""},
		{insertGo, "\treturn t.settle(p, sl, tentative, r)\n", "\tsl.key.Store(t.label(p, r.quota))\n\treturn t.settle(p, sl, tentative, r)\n"},
	}},
	{"R3", "the key is written before the claim", "two keys, one slot, evict", "I2", []edit{
		{insertGo, "claimed, ok := best.slot.state.Claim(best.state, t.claimant)", "best.slot.key.Store(p.fingerprint)\n\tclaimed, ok := best.slot.state.Claim(best.state, t.claimant)"},
	}},
	{"R4", "the search comes before TENT", "two takers, two slots", "I1", []edit{
		{insertGo, "\treturn t.settle(p, sl, tentative, r)\n}",
			"\tplan := t.current()\n\ts, ok := sl.state.Commit(tentative, plan.live, t.firstTake(plan, max(r.now, t.Watermark()), plan.Quota(0).Demand(r.n)))\n\tif !ok {\n\t\treturn undecided\n\t}\n\treturn Outcome{State: s, Plan: plan, At: r.now, Verdict: Admitted}\n}"},
		{insertGo, "\ttentative := sl.state.Publish(claimed)",
			"\tfor i := range t.probeWindow {\n\t\tif o := p.slot(i); o != sl && o.key.Load()&^tierMask == p.fingerprint && o.state.Load().Tag() >= atomicbucket.Tentative {\n\t\t\tsl.state.Abort(claimed)\n\t\t\treturn undecided\n\t\t}\n\t}\n\ttentative := sl.state.Publish(claimed)"},
	}},
	{"R5", "settle stops at a freed slot", "reset of the slot before two inserts", "I1", []edit{
		{insertGo, "key == p.fingerprint || key == 0 {", "true {"},
		{insertGo, "if other.state.Load() == 0 {", "if other.state.Load().Tag() <= atomicbucket.Free {"},
	}},
	{"R5", "peek and reset stop at a freed slot", "two takers of a record behind a freed slot", "I2", []edit{
		{peekGo, "if s == 0 {\n\t\t\tbreak", "if s.Tag() <= atomicbucket.Free {\n\t\t\tbreak"},
	}},
	{"R5", "a claim goes beyond a slot that was never used", "one taker", "I2", []edit{
		{insertGo, "hasSlot = hasSlot || best.suffices(i)", ""},
		{candidateGo, "min(t.hitQuotaSlots, lineSlots)", "uint64(0)"},
		{candidateGo, "if r > c.rank {", "if r >= c.rank {"},
		{insertGo, "if s == 0 {", "if false {"},
	}},
	{"R5", "a claim in the home line goes beyond a slot that was never used", "one taker", "I2", []edit{
		{candidateGo, "return candidate{sl, s, unowned}", "c = candidate{sl, s, unowned}\n\t\t\t\tcontinue"},
	}},
	{"R5", "a claim in the home line goes by the order of another key", "one taker of another order", "I2", []edit{
		{candidateGo, "sl := p.slot(i)", "sl := (*slot)(unsafe.Add(p.line(), i*slotBytes))"},
	}},
	{"R11", "settle covers a record by its address", "probe bound: takers behind two records of an order", "R11", []edit{
		{insertGo, "t.cover(p, p.index(sl)) // whichever", "t.cover(p, p.index(sl)^p.order()) // whichever"},
	}},
	{"R5", "a claim passes the third slot if it was never used", "a taker beside one that comes and goes, refuse", "I9", []edit{
		{insertGo, "best.consider(sl, s, t.rank(s, plan, r.clock))", "if s != 0 || i < 2 {\n\t\t\t\t\tbest.consider(sl, s, t.rank(s, plan, r.clock))\n\t\t\t\t}"},
		{candidateGo, "if s.Tag() <= atomicbucket.Free {\n\t\t\t\treturn candidate", "if s.Tag() <= atomicbucket.Free && (s != 0 || i < 2) {\n\t\t\t\treturn candidate"},
	}},
	{"R5", "a freed slot is as if it was never used", "two resets of a stranger's slot", "I7", []edit{
		{wordGo, "func (w *Word) Free(from State) bool {\n\treturn w.w.CompareAndSwap(uint64(from), uint64(from.with(Free, 0)))",
			"func (w *Word) Free(from State) bool {\n\treturn w.w.CompareAndSwap(uint64(from), 0)"},
	}},
	{"R6", "the higher tentative record is not killed", "two takers, two slots", "I1", []edit{
		{insertGo, "if !other.state.Abort(s) {", "if false {"},
	}},
	{"R6", "a kill that fails is taken for one that did not", "two takers, two slots", "I1", []edit{
		{insertGo, "if !other.state.Abort(s) {", "if !other.state.Abort(s) && false {"},
	}},
	{"R6", "the live record is killed", "two takers, two slots", "I7", []edit{
		{insertGo, "if s.IsLive() || isLower {", "if isLower {"},
	}},
	{"R6", "the lower tentative record is killed too", "two takers, two slots", "I5", []edit{
		{insertGo, "if s.IsLive() || isLower {", "if s.IsLive() || isLower && !other.state.Abort(s) {"},
	}},
	{"R6", "the higher tentative record goes on as well", "two takers, two slots", "I1", []edit{
		{insertGo, "if s.IsLive() || isLower {", "if isLower && !s.IsLive() {\n\t\t\tcontinue\n\t\t}\n\t\tif s.IsLive() {"},
	}},
	{"R6", "nobody aborts", "a key comes back elsewhere", "I5", []edit{
		{insertGo, "sl.state.Abort(tentative) // R6", "_ = 0 // R6"},
	}},
	{"R6", "a commit does not compare", "two takers, one slot", "I2", []edit{
		{wordGo, "// or Second.\nfunc (w *Word) Commit(from State, live Tag, payload uint64) (State, bool) {\n\tto := from.with(live, payload)\n\treturn to, w.w.CompareAndSwap(uint64(from), uint64(to))",
			"func (w *Word) Commit(from State, live Tag, payload uint64) (State, bool) {\n\tto := from.with(live, payload)\n\tw.w.Store(uint64(to))\n\treturn to, true"},
	}},
	{"R6", "settle waits for CLAIM", "two takers, two slots", "I5", []edit{
		{insertGo, "if s.Tag() < atomicbucket.Tentative {", "if s.Tag() == atomicbucket.Claimed {\n\t\t\tgoto search\n\t\t}\n\t\tif s.Tag() < atomicbucket.Tentative {"},
	}},
	{"R6", "insert waits for CLAIM", "two takers, one slot", "I5", []edit{
		{insertGo, "if !hasSlot {", "if s.Tag() == atomicbucket.Claimed {\n\t\t\treturn undecided\n\t\t}\n\t\tif !hasSlot {"},
	}},
	{"R16", "a release gives back in another tenure", "in flight: one leaves after a reset", "I2", []edit{
		{countGo, "receipt.known && receipt.tick&tenureMask != c.tenure(r.State):", "false:"},
	}},
	{"R16", "a receipt is void after a change of the limit", "in flight: one leaves beside a change of the limit", "I2", []edit{
		{refundGo, "|| !always && (plan.ignoresRecords(receipt.quota)", "|| always && receipt.number != plan.number || !always && (plan.ignoresRecords(receipt.quota)"},
	}},
	{"R16", "a receipt is void after another key's eviction", "in flight: one leaves beside an eviction of another", "I2", []edit{
		{refundGo, "|| !always && (plan.ignoresRecords(receipt.quota) || t.isVoid(receipt, p, plan))", "|| !always && plan.ignoresRecords(receipt.quota) || t.isVoid(receipt, p, plan)"},
	}},
	{"R16", "tenures have no numbers", "in flight: one leaves after a reset and a change of the limit", "I2", []edit{
		{inFlightGo, "return plan.inFlight.Born(payload, t.Ends(p).word/endBegun)", "return payload"},
	}},
	{"R16", "a tenure is numbered before the search", "in flight: one leaves after a reset, and two slots", "I2", []edit{
		{insertGo, "search:\n", "early := t.Ends(p).word / endBegun\nsearch:\n"},
		{insertGo, "t.tenurePayload(p, plan, payload)", "plan.inFlight.Born(payload, early)"},
	}},
	{"R16", "a release lowers the present count whatever it is of", "in flight: one leaves in the next period", "I2", []edit{
		{countGo, "period == index {", "period <= index {"},
	}},
	{"R16", "a take does not move the record on", "in flight: one leaves in the next period", "I7", []edit{
		{countGo, "return c.pack(now+ahead, previous, current, c.tenure(r.State))", "return c.pack(now+ahead, 0, current, c.tenure(r.State))"},
	}},
	{"R16", "a release of more than the limit has become is cut", "in flight: one leaves beside a change of the limit", "I9", []edit{
		{refundGo, "plan.product(n, quota.Token)", "min(n, quota.Tokens) * quota.Token"},
	}},
	{"R16", "what a take drops is not counted", "in flight: one leaves that is forgotten", "I7", []edit{
		{takeGo, "plan.countForgotten(t.shard(p).counters, record.State, r.now)\n", "\n"},
	}},
	{"R16", "what a sweep drops is not counted", "in flight: one leaves that is forgotten, beside a sweep", "I7", []edit{
		{sweepGo, "plan.countForgotten(t.shards[0].counters, s, t.Watermark())\n", "\n"},
	}},
	{"R16", "what a claim drops is not counted", "in flight: forgotten for another key", "I7", []edit{
		{insertGo, "t.current().countForgotten(t.shard(p).counters, best.state, t.Watermark())\n", "\n"},
	}},
	{"R16", "what a take drops is counted before it is made", "in flight: a late one enters", "I7", []edit{
		{takeGo, "\t\t\tif after, ok := t.move(sl, view, plan, payload, r.now); ok {\n\t\t\t\tplan.countForgotten(t.shard(p).counters, record.State, r.now)", "\t\t\tplan.countForgotten(t.shard(p).counters, record.State, r.now)\n\t\t\tif after, ok := t.move(sl, view, plan, payload, r.now); ok {"},
	}},
	{"R7", "a claim does not raise the watermark", "a late taker of a record that another key claims", "I2", []edit{
		{insertGo, "t.raiseTo(plan.idleSince(best.state, clock), clock) // R7", "// R7"},
	}},
	{"R7", "a claim raises the watermark too late", "a late taker of a record that another key claims", "I1", []edit{
		{insertGo, "t.raiseTo(plan.idleSince(best.state, clock), clock) // R7", "// R7"},
		{insertGo, "return t.publish(p, best.slot, claimed, r)", "if best.rank < idleAtWatermark {\n\t\tt.raiseTo(plan.idleSince(best.state, r.clock), r.clock)\n\t}\n\treturn t.publish(p, best.slot, claimed, r)"},
	}},
	{"R7", "a claim raises the watermark to when its record was not yet idle", "a late taker of a record that another key claims", "I2", []edit{
		{planGo, "p.bucket.Ticks(nanos))/p.bucket.Ticks(1))", "p.bucket.Ticks(nanos))/p.bucket.Ticks(1)) - 1"},
	}},
	{"R7", "a sweep forgets by its own time", "a late taker of a record that a sweep forgets", "I1", []edit{
		{sweepGo, "now = t.raise(t.catchUp(now))\n\treturn t.pass", "now = t.catchUp(now)\n\treturn t.pass"},
		{sweepGo, "t.visit(since, lowersBounds, pause)", "t.visit(since, lowersBounds, pause, now)"},
		{sweepGo, "visit(since int64, lowersBounds bool, pause func() bool)", "visit(since int64, lowersBounds bool, pause func() bool, now int64)"},
		{sweepGo, "t.sweepPage(slots, since, lowersBounds)", "t.sweepPage(slots, since, lowersBounds, now)"},
		{sweepGo, "sweepPage(slots []slot, since int64, lowersBounds bool)", "sweepPage(slots []slot, since int64, lowersBounds bool, now int64)"},
		{sweepGo, "plan.idle(s, t.Watermark())", "plan.idle(s, now)"},
	}},
	{"R7", "a sweep of an epoch leaves idle records for ever", "sweeps of epochs in a full table for a circle", "I9", []edit{
		{sweepGo, "since = max(since, int64(t.swept.Load()))", "since = 0"},
	}},
	{"R7", "a sweep of an epoch leaves idle records for ever in an empty table", "sweeps of epochs in an empty table for a circle", "I9", []edit{
		{sweepGo, "max(now-int64(t.current().skew), 0)", "int64(0)"},
	}},
	{"R7", "a claim takes a record that is not idle", "two takers, full probe window, refuse", "I7", []edit{
		{candidateGo, "if owed == 0 {", "if owed < math.MaxUint64 {"},
		{insertGo, "owed == 0 {", "owed < math.MaxUint64 {"},
		{candidateGo, "return plan.idleFor(s, now)\n", "return plan.idleFor(s, now) + 1\n"},
	}},
	{"R7", "a claim in the home line takes a record that is not idle", "two takers, full probe window, refuse", "I7", []edit{
		{candidateGo, "plan.bucket.Idle(s, now) {", "now > 0 {"},
	}},
	{"R7", "a commit begins at the take's own time", "a late taker that a take and a sweep overtake", "I1", []edit{
		{insertGo, "watermark := t.Watermark()\n\tnow := max(r.now, watermark)", "now := r.now\n\twatermark := now"},
	}},
	{"R7", "a commit reads the watermark before the search", "a late taker that a take and a sweep overtake", "I1", []edit{
		{insertGo, "search:\n", "watermark := t.Watermark()\nsearch:\n"},
		{insertGo, "watermark := t.Watermark()\n\tnow", "now"},
	}},
	{"R7", "a late hit is decided at its own time", "two takers that are behind the watermark", "I9", []edit{
		{takeGo, "n > quota.Tokens || uint64(now)-t.watermark.Load() > plan.trust", "n > quota.Tokens || now-t.Watermark() > int64(plan.skew)"},
	}},
	{"R7", "a hit far ahead does not move the watermark", "a taker after a leap of a circle", "I9", []edit{
		{takeGo, "n > quota.Tokens || uint64(now)-t.watermark.Load() > plan.trust", "n > quota.Tokens || now < t.Watermark()"},
	}},
	{"R7", "insert does not look at the watermark", "time leaps while an insert is under way", "I7", []edit{
		{insertGo, "watermark := t.watermark.Load()\n\tif plan = t.current(); uint64(r.now)-watermark > plan.skew || r.clock < int64(watermark) {", "if plan = t.current(); false {"},
	}},
	{"R7", "a late take does not catch up", "two takers that are behind the watermark", "I5", []edit{
		{watermarkGo, "if now <= int64(watermark) {\n\t\t\treturn int64(watermark)", "if now <= int64(watermark) {\n\t\t\treturn now"},
	}},
	{"R7", "a leap is one step", "a taker after a leap of a circle", "I9", []edit{
		{watermarkGo, "if ahead <= leapStep*skew {", "if true {"},
	}},
	{"R7", "the watermark does not wait for the sweep", "a taker after a leap of a circle", "I9", []edit{
		{watermarkGo, "watermark > swept && watermark-swept > skew", "watermark < swept"},
	}},
	{"R7", "the watermark may fall", "time leaps twice while a sweep is under way", "I7", []edit{
		{watermarkGo, "if to = t.reachedTime(to); to <= int64(watermark) {", "if to = t.reachedTime(to); t.watermark.CompareAndSwap(watermark, uint64(to)) {"},
	}},
	{"R7", "a sweep judges by the time at which it began", "time leaps twice while a sweep is under way", "I7", []edit{
		{sweepGo, "t.visit(since, lowersBounds, pause)", "t.visit(since, lowersBounds, pause, now)"},
		{sweepGo, "visit(since int64, lowersBounds bool, pause func() bool)", "visit(since int64, lowersBounds bool, pause func() bool, now int64)"},
		{sweepGo, "t.sweepPage(slots, since, lowersBounds)", "t.sweepPage(slots, since, lowersBounds, now)"},
		{sweepGo, "sweepPage(slots []slot, since int64, lowersBounds bool)", "sweepPage(slots []slot, since int64, lowersBounds bool, now int64)"},
		{sweepGo, "plan.idle(s, t.Watermark())", "plan.idle(s, now)"},
	}},
	{"R7", "a sweep reads the watermark before the state", "time leaps twice while a sweep is under way", "I7", []edit{
		{sweepGo, "s := sl.state.Load()", "now := t.Watermark()\n\t\ts := sl.state.Load()"},
		{sweepGo, "plan.idle(s, t.Watermark())", "plan.idle(s, now)"},
	}},
	{"R7", "a sweep leaves tentative records", "two takers, of which a leap of a circle overtakes one", "I9", []edit{
		{sweepGo, "if sl.state.Abort(s) {", "if false {"},
	}},
	{"R7", "a refund by a late clock is decided at its own time", "hold: a late clock", "I2", []edit{
		{refundGo, "sl == nil || uint64(at)-t.watermark.Load() > plan.trust {", "sl == nil || at-t.Watermark() > int64(plan.skew) {"},
	}},
	{"R7", "a refund by a clock far ahead does not move the watermark", "hold: a leap of time", "I2", []edit{
		{refundGo, "sl == nil || uint64(at)-t.watermark.Load() > plan.trust {", "sl == nil || at < t.Watermark() {"},
	}},
	{"R7", "peek judges by its own time", "peek beside a leap of two skews", "I9", []edit{
		{peekGo, "if uint64(at)-t.watermark.Load() > plan.skew {", "if false {"},
	}},
	{"R7", "a peek that finds no record does not look at the watermark", "peek at an idle record beside a sweep", "I9", foundNothing},
	{"R7", "a peek at a log that finds no record does not look at the watermark", "log: peek at an idle record beside a sweep", "I9", foundNothing},
	{"R7", "a refund that finds no record does not look at the watermark", "refund to an idle record beside a sweep", "I9", foundNothing},
	{"R7", "a refund to a log that finds no record does not look at the watermark", "log: refund to an idle record beside a sweep", "I9", foundNothing},
	{"R7", "the watermark moves by the larger skew while the plan is replaced", "skews: a smaller one beside a leap", "I2", []edit{
		{watermarkGo, "min(before.skew, plan.skew) | replacingBit", "max(before.skew, plan.skew) | replacingBit"},
	}},
	{"R7", "the watermark moves by the skew of the new plan while the plan is replaced", "skews: a larger one beside a leap", "I2", []edit{
		{watermarkGo, "min(before.skew, plan.skew) | replacingBit", "plan.skew | replacingBit"},
	}},
	{"R7", "a step by the skew of the plan before is not made void", "skews: a smaller one beside a leap", "I2", []edit{
		{watermarkGo, "if t.advancing.Load() != 0 {", "if false {"},
	}},
	{"R7", "a call says too late that it may move the watermark", "skews: a smaller one beside a leap", "I2", []edit{
		{watermarkGo, "t.advancing.Add(1) // before the pace is read: see fence\n\tskew, onePlan := t.movePace(now)\n", "skew, onePlan := t.movePace(now)\n\tt.advancing.Add(1)\n"},
	}},
	{"R7", "a commit does not look at the skew of its plan", "skews: a smaller one beside an insert ahead", "I2", []edit{
		{insertGo, "if uint64(now-watermark) > plan.skew {", "if false {"},
	}},
	{"R7", "a refund reads the clock before the record", "take and give back by the clock", "I1", []edit{
		{refundGo, "record, plan, sl := t.record(p)", "now := clock()\n\t\trecord, plan, sl := t.record(p)"},
		{refundGo, "at := clock()", "at := now"},
	}},
	{"R8", "the commit is full, and charged by another compare-and-swap", "two keys, one slot, evict", "I5", []edit{
		{insertGo, "t.tenurePayload(p, plan, payload))\n\tif !ok {", "plan.algorithm.Full(plan.algorithm.Ticks(now)))\n\tif true || !ok {"},
	}},
	{"R8", "the claimer counts a commit of another as its own", "two takers, one slot", "I2", []edit{
		{insertGo, "t.tenurePayload(p, plan, payload))\n\tif !ok {\n\t\treturn undecided", "t.tenurePayload(p, plan, payload))\n\tif !ok {\n\t\treturn Outcome{State: tentative, Plan: plan, At: now, Verdict: Admitted}"},
	}},
	{"R9", "hit reads the plan before the state", "the limit grows twice beside a taker", "I9", []edit{
		{takeGo, "\tsl, label := p.home, ", "\tplan := t.plan.Load()\n\tsl, label := p.home, "},
		{takeGo, "plan := t.plan.Load() // after", "// after"},
	}},
	{"R9", "hit does not look which plan a record follows", "the limit grows beside two takers", "I1", []edit{
		{takeGo, "if s.Tag() != plan.live {", "if !s.IsLive() {"},
	}},
	{"R9", "peek and reset do not look which plan a record follows", "the limit grows beside a reset and a peek", "R9", []edit{
		{peekGo, "if s.Tag() == plan.live {", "if true {"},
	}},
	{"R9", "a claim in the home line does not look which plan a record follows", "ticks: finer ones beside another key", "I7", []edit{
		{candidateGo, "s.Tag() != plan.live ||", "!s.IsLive() ||"},
	}},
	{"R6", "settle meets its own record", "one taker", "I5", []edit{
		{insertGo, "if i == skip {", "if false {"},
	}},
	{"R9", "settle reads the plan before the tentative state", "the limit shrinks beside an insert", "R9", []edit{
		{insertGo, "tentative := sl.state.Publish(claimed) // before the search in settle: R4", "plan := t.current()\n\ttentative := sl.state.Publish(claimed)"},
		{insertGo, "return t.settle(p, sl, tentative, r)\n}", "return t.settle(p, sl, tentative, r, plan)\n}"},
		{insertGo, "return t.settle(p, sl, s, r)\n", "return t.settle(p, sl, s, r, plan)\n"},
		{insertGo, "tentative atomicbucket.State, r *request) Outcome {", "tentative atomicbucket.State, r *request, plan *Plan) Outcome {"},
		{insertGo, "plan := t.current() // after the tentative state: R9", ""},
	}},
	{"R9", "a change of plan leaves tentative records", "the limit shrinks beside an insert", "R9", []edit{
		{adoptGo, "if sl.state.Abort(s) {", "if true {"},
	}},
	{"R9", "a change of plan leaves live records", "the limit shrinks beside an insert", "R9", []edit{
		{adoptGo, "t.adopt(&slots[i])", "_ = i"},
	}},
	{"R9", "records are told apart by two plans that look the same", "the limit grows beside two takers", "I1", []edit{
		{adoptGo, "plan.live = atomicbucket.Live + atomicbucket.Second - before.live", "plan.live = before.live"},
	}},
	{"R9", "a change of plan does not change the version", "the limit grows, shrinks and grows more beside a taker", "I2", []edit{
		{wordGo, "to := NewState(live, from.Version()+1, payload)", "to := from.with(live, payload)"},
	}},
	{"R10", "the last change is not entered before the next", "log: two takers of a record", "I1", []edit{
		{takeGo, "} else if plan.flush(record, r.now, &sl.state) { // R10", "} else {"},
	}},
	{"R10", "who enters it does not look at the state again", "log: a taker left behind by a ring", "I1", []edit{
		{ringGo, "if word.Load() != g.state { // R10, for a request; e was read before", "if false {"},
	}},
	{"R10", "an entry is stored, not compared", "log: a taker left behind by a ring", "I1", []edit{
		{ringGo, "if entry.CompareAndSwap(e, want) {", "entry.Store(want)\n\t\t\tif true {"},
	}},
	{"R10", "a ring is not cleared for a new tenure", "log: a slot with a past", "I9", []edit{
		{priceGo, "t.ring(sl).Clear(claimed)\n", ""},
	}},
	{"R10", "a cleared ring does not bear the version", "log: a taker left behind by a tenure", "I9", []edit{
		{ringGo, "return s.Version()<<(tickBits+1) | tick&tickMask", "return tick & tickMask"},
	}},
	{"R10", "a refund does not change the version", "log: a taker left behind by refunds", "I9", []edit{
		{logGo, "word.Convert(r.State, r.State.Tag(), l.pack(g.newest, g.head, lastRefund(retained-amount)))", "word.Move(r.State, l.pack(g.newest, g.head, lastRefund(retained-amount)))"},
	}},
	{"R10", "a refund is not entered before the next change", "log: a refund beside takers of a tick", "I9", []edit{
		{ringGo, "return g.count == g.rule.size || g.drop(word)", "return true"},
	}},
	{"R10", "a refund changes the ring without the state", "log: two refunds beside two takers", "I2", []edit{
		{logGo, "lastRefund(retained-amount)", "lastRequest(0)"},
		{logGo, "l.unpack(&g, Record{after, r.Ring}, now)", "l.unpack(&g, Record{after, r.Ring}, now)\n\tg.count = retained - amount"},
	}},
	{"R10", "who enters a refund does not look at the state again", "log: a refund to a slot that changes hands", "I2", []edit{
		{ringGo, "if word.Load() != g.state { // R10, for a refund; e was read before", "if false {"},
	}},
	{"R10", "a refund enters the newest of what is gone first", "log: a refund beside a late taker", "I9", []edit{
		{ringGo, "for rank := last; rank > g.count; {", "for rank := g.count + 1; rank <= last; {"},
		{ringGo, "entryOf(g.state, e)|goneBit) {\n\t\t\trank--", "entryOf(g.state, e)|goneBit) {\n\t\t\trank++"},
	}},
	{"R10", "a receipt's exchange does not look at the version again", "log: take and give back, and a slot that changes hands", "I2", []edit{
		{ringGo, "|| word.Load().Version() != g.state.Version()", ""},
	}},
	{"R10", "a refusal by a log does not read the state again", "log: three takers of a record", "I9", []edit{
		{takeGo, "if sl.state.Load() == record.State && !hasRoom { // R2", "if !hasRoom {"},
	}},
	{"R10", "a peek at a log does not read the state again", "log: peek at a slot that changes hands", "I9", []edit{
		{peekGo, "if sl == nil || sl.state.Load() == record.State { // R2", "if sl == nil || true {"},
	}},
	{"R10", "a refusal enters what is pending", "log: a late and an early taker", "I4", []edit{
		{takeGo, "} else if !ok {\n\t\t\tverdict", "} else if plan.flush(record, r.now, &sl.state) && !ok {\n\t\t\tverdict"},
	}},
	{"R11", "nobody extends a probe bound", "probe bound: one taker", "R11", []edit{
		{insertGo, "t.cover(p, p.index(sl))", "//"},
	}},
	{"R11", "only who claims a slot extends the probe bound", "probe bound: a sweep beside two inserts", "R11", []edit{
		{insertGo, "t.cover(p, p.index(sl))", "//"},
		{insertGo, "// before the search in settle: R4", "\n\tt.cover(p, p.index(sl))"},
	}},
	{"R11", "the probe bound is extended before the slot is published", "probe bound: a sweep beside an insert", "R11", []edit{
		{insertGo, "t.cover(p, p.index(sl))", "//"},
		{insertGo, "tentative := sl.state.Publish(claimed)", "t.cover(p, p.index(sl))\n\ttentative := sl.state.Publish(claimed)"},
	}},
	{"R11", "settle searches before it extends the probe bound", "probe bound: two takers behind a record", "I1", []edit{
		{insertGo, "t.cover(p, p.index(sl)) // whichever call published it, and before the search: R11\n", ""},
		{insertGo, "plan := t.current() // after the tentative state: R9", "t.cover(p, p.index(sl))\n\tplan := t.current()"},
	}},
	{"R11", "settle searches as far as its own slot", "probe bound: two takers behind a record", "I1", []edit{
		{insertGo, "i < t.probeWindow; i++ {\n\t\tif i == edge {", "i <= skip; i++ {\n\t\tif i == edge && false {"},
	}},
	{"R11", "the search for a record ends where the probe bound does not", "probe bound: a peek beside a sweep and an insert", "I9", []edit{
		{peekGo, "!t.isBeyond(p, i)", "i < t.stride"},
	}},
	{"R11", "a sweep clears the probe bound that it has extended", "probe bound: two sweeps beside an insert", "R11", []edit{
		{boundGo, "if v&swappedBit == 0 {", "if v&swappedBit != 0 {"},
	}},
	{"R11", "a sweep does not extend the probe bound for live records", "probe bound: a sweep beside a taker of an idle record", "R11", []edit{
		{sweepGo, "if lowersBounds {\n\t\t\t// R11", "if lowersBounds && !s.IsLive() {\n\t\t\t// R11"},
	}},
	{"R11", "a sweep passes a record that it failed to abort", "probe bound: a sweep beside an insert", "R11", []edit{
		{sweepGo, "if lowersBounds {\n\t\t\t// R11", "if lowersBounds && s.IsLive() {\n\t\t\t// R11"},
	}},
	{"R11", "a sweep passes a record that it failed to free", "probe bound: a sweep beside a taker of an idle record", "R11", []edit{
		{sweepGo, "default: // taken this moment\n\t\t\t\tlive++", "default:\n\t\t\t\tcontinue"},
	}},
	{"R11", "a sweep passes an idle record that it leaves", "probe bound: a sweep of an epoch beside an insert", "R11", []edit{
		{sweepGo, "idle++\n", "idle++\n\t\t\t\tcontinue\n"},
	}},
	{"R11", "a sweep passes a record that it converted", "probe bound: a sweep beside a change of plan", "R11", []edit{
		{sweepGo, "t.convert(sl, s)\n\t\t\t\tlive++", "t.convert(sl, s)\n\t\t\t\tcontinue"},
	}},
	{"R11", "a sweep clears probe bounds before it has met every record", "probe bound: a sweep beside a taker of an idle record", "R11", []edit{
		{sweepGo, "complete := t.visit(since, lowersBounds, pause)\n\tif lowersBounds {\n\t\tt.endLowering(complete)\n\t}", "if lowersBounds {\n\t\tt.endLowering(true)\n\t}\n\tcomplete := t.visit(since, lowersBounds, pause)"},
	}},
	{"R11", "a sweep that gives up clears probe bounds", "probe bound: a sweep that gives up", "R11", []edit{
		{sweepGo, "t.endLowering(complete)", "t.endLowering(true)"},
	}},
	{"R11", "a sweep clears probe bounds while another lowers", "probe bound: a sweep beside two sweeps", "R11", []edit{
		{sweepGo, "if lowersBounds {\n\t\tt.endLowering(complete)\n\t}", "t.endLowering(complete)"},
	}},
	{"R11", "two sweeps lower probe bounds at once", "probe bound: a sweep beside two sweeps", "R11", []edit{
		{boundGo, "if v&ownedBit != 0 && !t.isDeserted(v>>ownerShift) {", "if false {"},
	}},
	{"R11", "two sweeps that begin at once both lower", "probe bound: a sweep beside two sweeps", "R11", []edit{
		{boundGo, "return t.lowering.CompareAndSwap(v, next)", "t.lowering.Store(next)\n\treturn true"},
	}},
	{"R11", "another sweep may lower before the probe bounds are cleared", "probe bound: a sweep beside two sweeps", "R11", []edit{
		{boundGo, "\tif complete {\n\t\tv &^= partialBit", "\tif complete {\n\t\tt.lowering.Store(v &^ partialBit)\n\t\tv &^= partialBit"},
	}},
	{"R11", "probe bounds are cleared without a peek at them", "probe bound: a sweep beside an insert", "R11", []edit{
		{boundGo, "if old&clearMask == 0 || t.words[i].CompareAndSwap(old, old&^clearMask) {", "if t.words[i].Store(old &^ clearMask); true {"},
	}},
	{"R11", "a probe bound is not extended if the other one covers the slot", "probe bound: a sweep beside a taker of an idle record", "R11", []edit{
		{boundGo, "shift += t.lowering.Load() & swappedBit * boundBits", "first := shift\n\tshift += t.lowering.Load() & swappedBit * boundBits"},
		{boundGo, "if old>>shift&boundMask >= strides ||", "if max(old>>first&boundMask, old>>(first+boundBits)&boundMask) >= strides ||"},
	}},
	{"R11", "extending a probe bound may lower it", "probe bound: a record at the end of the probe window", "R11", []edit{
		{boundGo, "if old>>shift&boundMask >= strides ||", "if old>>shift&boundMask == strides ||"},
	}},
	{"R11", "a probe bound is stored, not compared", "probe bound: two homes in a word", "R11", []edit{
		{boundGo, "w.CompareAndSwap(old, old&^(boundMask<<shift)|strides<<shift) {", "true {\n\t\t\tw.Store(max(old, old&^(boundMask<<shift)|strides<<shift))"},
	}},
	{"R12", "a page is marked after its first record is published", "pages: a sweep beside an insert", "R11", []edit{
		{insertGo, "\t\tt.markPage(best.slot) // before it is claimed: R12\n", "\t\tdefer t.markPage(best.slot)\n"},
	}},
	{"R12", "a page is marked after its first record is published, beside a change of plan", "pages: an insert beside a change of plan", "I2", []edit{
		{insertGo, "\t\tt.markPage(best.slot) // before it is claimed: R12\n", "\t\tdefer t.markPage(best.slot)\n"},
	}},
	{"R12", "a page is not marked", "pages: a take after a leap of a circle", "I9", []edit{
		{insertGo, "if best.state == 0 {", "if false {"},
	}},
	{"R12", "a page is marked after the claim, and the claimer dies in between", "mortal: the first taker of a page dies", "R17", []edit{
		{insertGo, "\tif best.state == 0 {\n\t\tt.markPage(best.slot) // before it is claimed: R12\n\t}\n", ""},
		{insertGo, "\tif best.state.IsLive() {\n", "\tif best.state == 0 {\n\t\tt.markPage(best.slot)\n\t}\n\tif best.state.IsLive() {\n"},
	}},
	{"R17", "a sweep leaves what the dead have claimed", "mortal: a taker dies beside a taker", "R17", []edit{
		{sweepGo, "if t.isDeserted(s.Payload()) { // R17", "if false {"},
	}},
	{"R17", "a claim does not say who claims", "mortal: a taker dies beside a taker", "R17", []edit{
		{wordGo, "NewState(Claimed, from.Version()+1, claimant)", "NewState(Claimed, from.Version()+1, 63)"},
	}},
	{"R17", "a sweep frees what the living have claimed", "mortal: a taker dies, one slot", "I2", []edit{
		{sweepGo, "if t.isDeserted(s.Payload()) { // R17", "if s.Payload() != t.claimant {"},
	}},
	{"R18", "a sweep that died is not taken over", "mortal: a sweep dies beside a sweep and a taker", "R18", []edit{
		{boundGo, "if v&ownedBit != 0 && !t.isDeserted(v>>ownerShift) {", "if v&ownedBit != 0 {"},
	}},
	{"R18", "a sweep of the living is taken over", "mortal: a sweep dies beside an insert", "R11", []edit{
		{boundGo, "if v&ownedBit != 0 && !t.isDeserted(v>>ownerShift) {", "if false {"},
	}},
	{"R21", "a hit does not look whether its plan is the present one", "mortal: a taker beside two changes of plan", "I1", []edit{
		{takeGo, "plan.trust || // late, or far ahead: R7\n\t\t\tt.planned.Load() != plan.planned {", "plan.trust {"},
	}},
	{"R21", "a claim in the home line does not look whether its plan is the present one", "mortal: another key beside two changes to longer ticks", "I7", []edit{
		{candidateGo, "s.Tag() != plan.live || t.planned.Load() != plan.planned {", "s.Tag() != plan.live {"},
	}},
	{"R21", "a claim in the home line looks for the present plan before the state", "mortal: another key beside two changes to longer ticks", "I7", []edit{
		{candidateGo, "\t\ts := sl.state.Load()\n\t\tplan := t.plan.Load()  ", "\t\tplanned := t.planned.Load()\n\t\ts := sl.state.Load()\n\t\tplan := t.plan.Load()  "},
		{candidateGo, "|| t.planned.Load() != plan.planned {", "|| planned != plan.planned {"},
	}},
	{"R21", "a call does not look whether its plan is the present one", "mortal: a taker of a drained key beside two changes of plan", "I5", []edit{
		{sharedPlanGo, "t.planned.Load() == plan.planned {\n\t\treturn plan", "plan.planned != 0 {\n\t\treturn plan"},
	}},
	{"R21", "the next plan is written over the present one", "mortal: a change of plan dies beside a taker", "I2", []edit{
		{sharedPlanGo, "planAreas = 2", "planAreas = 1"},
	}},
	{"R21", "a call does not look again whether the plan that it has built is the present one", "mortal: a taker dies beside three changes of plan", "R21", []edit{
		{sharedPlanGo, "if t.planned.Load() != n {\n\t\t\tcontinue", "if false {\n\t\t\tcontinue"},
	}},
	{"R22", "a writer that died is waited for", "mortal: a change of plan dies", "R22", []edit{
		{sharedPlanGo, "!t.owner.Dead(setter) || !t", "true || !t"},
	}},
	{"R22", "a plan is announced before all records follow the one before", "mortal: a change of plan dies beside another", "R9", []edit{
		{sharedPlanGo, "n := t.completeReplacement(clock).planned", "n := t.planned.Load()"},
		{sharedPlanGo, "announced := t.change.CompareAndSwap(n<<changeShift, (n+1)<<changeShift|changing)", "t.change.Store((n+1)<<changeShift | changing)\n\tannounced := true"},
	}},
	{"R22", "a sweep leaves what the dead have begun", "mortal: a change of plan dies", "R22", []edit{
		{sweepGo, "t.completeReplacement(func() int64 { return now }) // what", "_ = 0 // what"},
	}},
	{"R22", "records are left behind", "mortal: two changes of plan to and fro, beside a taker", "R9", []edit{
		{sharedPlanGo, "\t\t\tt.adoptAll()\n", ""},
	}},
	{"R22", "the watermark moves while records follow two plans", "mortal: a change of plan dies beside a leap", "I2", []edit{
		{watermarkGo, "return t.completeReplacement(func() int64 { return now }).skew, true", "return t.current().skew, true"},
	}},
	{"R22", "a leap by the plan before comes late", "mortal: a change of plan dies beside a leap", "I2", []edit{
		{sharedPlanGo, "return t.watermark.CompareAndSwap(watermark, watermark+step)", "return step == 1 || t.watermark.CompareAndSwap(watermark, watermark+step)"},
	}},
	{"R22", "two processes write numbers at once", "mortal: two changes of plan at once", "R21", []edit{
		{sharedPlanGo, "!t.owner.Dead(setter) || !t", "false || !t"},
	}},
	{"R22", "records are converted at the time at which the change began", "mortal: a change of plan dies beside a take and a sweep later", "I2", []edit{
		{sharedPlanGo, "step = min(now-watermark, leapStep*skew)", "step = min(1, skew)"},
	}},
	{"R22", "a claim completes a change at the time at which its record became idle", "mortal: a change of plan dies beside a take and a claim later", "I2", []edit{
		{insertGo, "t.raiseTo(plan.idleSince(best.state, clock), clock) // R7", "t.raise(plan.idleSince(best.state, clock)) // R7"},
	}},
	{"R22", "a call that replaces the plan does not read its clock again", "mortal: a change of plan by the clock beside a take later", "I2", []edit{
		{sharedPlanGo, "t.raise(clock()) // by", "began := clock()\n\tclock = func() int64 { return began }\n\tt.raise(began) // by"},
	}},
	{"R22", "a call that completes a change goes by the plan before alone", "mortal: a change of plan dies beside a leap", "I2", []edit{
		{sharedPlanGo, "return min(plan.skew, next.skew)", "return plan.skew"},
	}},
	{"R2", "a reservation that is refused does not read the state again", "reserve: a key comes back", "I9", []edit{
		{reserveGo, "if sl.state.Load() == record.State { // R2", "if true {"},
	}},
	{"R23", "the watermark moves to where a clock is that is far ahead", "mortal: a taker whose clock is far ahead", "R23", []edit{
		{watermarkGo, "return min(at, t.clock())", "return at"},
	}},
	{"R23", "a sweep moves the watermark to where its clock is", "mortal: a sweep whose clock is ahead", "R23", []edit{
		{watermarkGo, "if to = t.reachedTime(to); to", "if to"},
	}},
	{"R23", "a call far ahead moves the watermark to where its clock is", "mortal: a taker whose clock is far ahead", "R23", []edit{
		{watermarkGo, "if now = t.reachedTime(now); now", "if now"},
	}},
	{"R23", "a hit goes by a clock that is far ahead", "mortal: a taker whose clock is far ahead", "I2", []edit{
		{sharedPlanGo, "plan.trust = min(plan.skew, uint64(MaxTrust)) // R23", "plan.trust = plan.skew"},
	}},
	{"R23", "a change of the plan moves the watermark to where its clock is", "mortal: a change of plan whose clock is far ahead", "R23", []edit{
		{sharedPlanGo, "t.approach(uint64(t.reachedTime(clock())), n)", "t.approach(uint64(clock()), n)"},
	}},
	{"R23", "a claim takes a record that is idle only by a clock that is ahead", "mortal: a claim whose clock is ahead", "I7", []edit{
		{insertGo, "if clock < r.clock && !plan.idle(best.state, clock) { // R23", "if false {"},
	}},
	{"R7", "a reservation is decided at its own time", "reserve: time leaps meanwhile", "I2", []edit{
		{reserveGo, "uint64(o.At)-t.watermark.Load() > plan.skew { // R7", "o.At-t.Watermark() > int64(plan.skew) {"},
	}},
	{"R10", "a refusal beside an exchange is not decided again", "log: take and give back beside a refusal", "I9", []edit{
		{takeGo, "hasRoom = r.status.RetryAfter == 0 // by a concurrent exchange: R10", "hasRoom = false"},
	}},
	{"R15", "a refund does not look whether a tenure was ended", "receipt: a reset", "I2", []edit{
		{receiptGo, "t.Ends(p).countBegun() != r.ends", "false"},
	}},
	{"R15", "an eviction is not counted as an end", "receipt: an eviction", "I2", []edit{
		{evictGo, "if t.forceEnd(victimPlace, func() (ok bool) { // so debt and key were the victim's\n\t\tclaimed, ok = sl.state.Claim(oldState, t.claimant)\n\t\treturn ok\n\t}) {",
			"if next, ok := sl.state.Claim(oldState, t.claimant); ok {\n\t\tclaimed = next"},
		{evictGo, "o.ended = 1", "o.ended = 0"},
	}},
	{"R15", "a take counts more ends as its own than it made", "receipt: a take that evicts another key", "I2", []edit{
		{evictGo, "o.ended = 1", "o.ended = 2"},
	}},
	{"R15", "an end is counted after it was made", "receipt: a reset, then another takes", "I2", []edit{
		{receiptGo, "\tn.ends.Add(endBegins) // before, and not after: else a refund could see the next tenure first\n\tdone := transition()\n",
			"\tdone := transition()\n\tn.ends.Add(endBegins)\n"},
	}},
	{"R15", "an end is over before it was made", "fixed: receipt, a reset beside a refund", "I2", []edit{
		{receiptGo, "\tdone := transition()\n\tn.ends.Add(^uint64(endUnderway - 1)) // after\n",
			"\tn.ends.Add(^uint64(endUnderway - 1))\n\tdone := transition()\n"},
	}},
	{"R15", "a receipt does not look whether an end is under way", "fixed: receipt, a reset beside a refund", "I2", []edit{
		{receiptGo, "if ends.word&endsUnderway != 0 {", "if false {"},
	}},
	{"R15", "a call reads what was ended after its take", "receipt: a reset, then another takes", "I2", []edit{
		{"fuzz/explore/scenario.go", "o.ends = ends\n\t\t\treceipt.Enter(&out, c.n, q, ends)",
			"o.ends = t.Ends(p)\n\t\t\treceipt.Enter(&out, c.n, q, o.ends)\n\t\t\t_ = ends"},
	}},
	{"R15", "a refund reads what was ended before the record", "receipt: a reset, then another takes", "I2", []edit{
		{refundGo, "record, plan, sl := t.record(p)", "ended = t.Ends(p)\n\t\trecord, plan, sl := t.record(p)"},
		{receiptGo, "t.Ends(p).countBegun() != r.ends", "ended.countBegun() != r.ends"},
		{receiptGo, "// Ends is the result", "var ended Ends\n\n// Ends is the result"},
	}},
	{"R15", "a refund does not look at the plan of its take", "receipt: the limit shrinks", "I2", []edit{
		{receiptGo, "(t.rings == nil || t.buckets) && r.number != plan.number", "false"},
	}},
	{"R15", "a plan has the number of the one before it", "receipt: the limit shrinks and grows", "I2", []edit{
		{adoptGo, "max(before.number+1, 1) // R15", "before.number"},
	}},
	{"R15", "a refund does not look whether a request was ahead", "ahead: a take beside a refund", "I1", []edit{
		{refundGo, "return max(at, int64(t.leading.Load())), ", "return at, "},
	}},
	{"R15", "a request is entered as ahead after it was granted", "ahead: a take beside a refund", "I1", []edit{
		{takeGo, "\t\t\tt.recordLead(r.now, r.clock)\n\t\t\tt.relabel(p, sl, r.quota)\n\t\t\tif after, ok := t.move(sl, view, plan, payload, r.now); ok {",
			"\t\t\tt.relabel(p, sl, r.quota)\n\t\t\tif after, ok := t.move(sl, view, plan, payload, r.now); ok {\n\t\t\t\tt.recordLead(r.now, r.clock)"},
	}},
	{"R15", "a refund reads whether a request was ahead before the record", "ahead: a take beside a refund", "I1", []edit{
		{refundGo, "record, plan, sl := t.record(p)", "led = int64(t.leading.Load())\n\t\trecord, plan, sl := t.record(p)"},
		{refundGo, "return max(at, int64(t.leading.Load())), ", "return max(at, led), "},
		{refundGo, "// giveBack gives", "var led int64\n\n// giveBack gives"},
	}},
	{"R15", "a bucket that looks untouched is taken for that of the take's tenure", "hold: another bucket that looks the same", "I2", []edit{
		{refundGo, " && receipt.sameVersion(s) && !t.isVoid(receipt, p, plan)", " && receipt.sameVersion(s)"},
	}},
	{"R15", "a bucket that looks untouched is taken for that of the take's turn of the circle", "hold: a bucket that looks the same a circle later", "I2", []edit{
		{refundGo, "s == receipt.after && t.Watermark()-receipt.at <= int64(plan.skew)", "s == receipt.after"},
	}},
	{"R15", "a part is given back as if it were the whole take", "hold: two that cost less later", "I1", []edit{
		{bucketGo, "amount = min(amount, receipt.cost-min(receipt.cost, elapsed))", "amount = min(amount, 3*receipt.cost-min(3*receipt.cost, elapsed))"},
	}},
	{"R25", "a refund does not look whether a reservation waits", "reserve: two in line, the first goes away", "I1", []edit{
		{refundGo, ", max(at, int64(t.neighbourhood(p).promised.Load()))\n", ", at\n"},
	}},
	{"R25", "a reservation is promised after it was made", "reserve: two in line, the first goes away", "I1", []edit{
		{reserveGo, "\t\t\tif wait := outcome.OverdrawnOf(q); wait > 0 {\n\t\t\t\tt.recordPromise(p, o.At+int64(wait)) // before the move: R15\n\t\t\t}\n", ""},
		{reserveGo, "\t\t\t\treturn outcome\n", "\t\t\t\tt.recordPromise(p, o.At+int64(outcome.OverdrawnOf(q)))\n\t\t\t\treturn outcome\n"},
	}},
	{"R25", "a refund reads whether a reservation waits before the record", "reserve: two in line, the first goes away", "I1", []edit{
		{refundGo, "record, plan, sl := t.record(p)", "waited = t.neighbourhood(p).promised.Load()\n\t\trecord, plan, sl := t.record(p)"},
		{refundGo, ", max(at, int64(t.neighbourhood(p).promised.Load()))\n", ", max(at, int64(waited))\n"},
		{refundGo, "// giveBack gives", "var waited uint64\n\n// giveBack gives"},
	}},
	{"R25", "a reservation is given back although others reserved behind it", "reserve: two in line, the first goes away", "I1", []edit{
		{refundGo, "Latest: algorithm.Ticks(max(latest, promised)),", "Latest: algorithm.Ticks(max(latest, min(at, promised))),"},
	}},
	{"receipts", "what had come back is given back", "take and give back later", "I1", []edit{
		{bucketGo, "amount = min(amount, debt(State(receipt.tick), ret.Latest))", "_ = 0"},
		{bucketGo, "min(owed, cost, debt(after, now))", "min(owed, cost)"},
	}},
	{"receipts", "a refund does not change the version", "take and give back, a bucket that looks the same", "I1", []edit{
		{bucketGo, "return word.Convert(r.State, r.State.Tag(), ret.Now+owed-amount)", "return word.Move(r.State, ret.Now+owed-amount)"},
		{bucketGo, "return word.Convert(s, s.Tag(), now+owed-min", "return word.Move(s, now+owed-min"},
	}},
	{"receipts", "a log forgets the oldest request instead", "log: take and give back the older of two", "I2", []edit{
		{logGo, "g.exchange(g.count, swap[0], swap[1], word)", "_ = swap"},
	}},
	{"receipts", "a log forgets the newest request instead", "log: take and give back the older of two", "I2", []edit{
		{ringGo, "int64(old-tick) > 0 || ", ""},
		{ringGo, "for rank > 0 && carry != tick {", "for rank > 0 {"},
	}},
	{"R1", "a hit under a quota reads the key only before the state", "quota: two keys twice, one slot, evict", "I2", []edit{
		{quotaGo, "label := p.home, p.fingerprint|tierMask\n\tfor i := uint64(0); i < t.hitQuotaSlots; { // as in Hit\n\t\ts := sl.state.Load()\n\t\tif sl.key.Load() != label {", "label := p.home, p.fingerprint|tierMask\n\tfor i := uint64(0); i < t.hitQuotaSlots; { // as in Hit\n\t\tkey := sl.key.Load()\n\t\ts := sl.state.Load()\n\t\tif key != label {"},
	}},
	{"R2", "a hit under a quota does not read a refusing state again", "quota: a key comes back", "I9", []edit{
		{quotaGo, "tick := plan.bucket.Ticks(now)\n\t\tpayload, ok := plan.bucket.Take(s.Record(), tick, demand)\n\t\tif !ok {\n\t\t\tif sl.state.Load() == s { // R2", "tick := plan.bucket.Ticks(now)\n\t\tpayload, ok := plan.bucket.Take(s.Record(), tick, demand)\n\t\tif !ok {\n\t\t\tif true {"},
	}},
	{"R7", "a hit under a quota is decided at its own time", "quota: two takers that are behind the watermark", "I9", []edit{
		{quotaGo, "uint64(now)-t.watermark.Load() > plan.trust || // R13, R7", "now-t.Watermark() > int64(plan.skew) ||"},
	}},
	{"R7", "a hit under a quota far ahead does not move the watermark", "quota: a taker after a leap of a circle", "I9", []edit{
		{quotaGo, "uint64(now)-t.watermark.Load() > plan.trust || // R13, R7", "now < t.Watermark() ||"},
	}},
	{"R13", "a hit does not look whose quota it is", "quota: of another table", "I1", []edit{
		{quotaGo, "if q.packed>>unitShift != uint64(plan.unit) || uint64(now)", "if uint64(now)"},
	}},
	{"R13", "a miss does not look whose quota it is", "quota: of another table, without a record", "I1", []edit{
		{quotaGo, "case q.packed>>unitShift == uint64(p.unit): // R13", "default:"},
		{quotaGo, "\t}\n\treturn blockedQuota\n", "\t}\n"},
	}},
	{"R1", "a charge reads the key only before the state", "charge: two keys twice, one slot, evict", "I2", []edit{
		{chargeGo, "\t\ts := sl.state.Load()\n\t\tif sl.key.Load() != label {", "\t\tkey := sl.key.Load()\n\t\ts := sl.state.Load()\n\t\tif key != label {"},
	}},
	{"R2", "a charge of nothing does not read the state again", "charge: a key comes back", "I9", []edit{
		{chargeGo, "if sl.state.Load() == view.slotState && !hasRoom { ", "if !hasRoom { "},
	}},
	{"R7", "a charge is decided at its own time", "charge: two that are behind the watermark", "I9", []edit{
		{chargeGo, "quota.Tokens == 0 || uint64(r.now)-t.watermark.Load() > plan.maxAhead(r) {", "quota.Tokens == 0 || r.now-t.Watermark() > int64(plan.skew) {"},
		{watermarkGo, "at = max(now, moveLimit)", "at = now"},
	}},
	{"R8", "a first charge is committed before it is charged", "charge: two, one slot", "I2", []edit{
		{insertGo, "demand, charged := r.firstDemand(plan, quota)", "demand, charged := r.firstDemand(plan, quota)\n\tif r.mode >= modeCharge {\n\t\tdemand.Cost = 0\n\t}"},
	}},
	{"R10", "a charge does not enter the newest request in the ring", "log: charges beside a taker", "I2", []edit{
		{chargeGo, "if !plan.flush(view.Record, r.now, &sl.state) { // R10", "if false {"},
	}},
	{"R7", "a charge that hits is decided at its own time", "charge: behind the watermark, of an idle record", "I2", []edit{
		{chargeGo, "quota.Tokens == 0 || uint64(now)-t.watermark.Load() > plan.trust || // R7", "quota.Tokens == 0 || now-t.Watermark() > int64(plan.skew) ||"},
	}},
	{"R14", "a charge is not bounded", "charge: two of more than there is", "I2", []edit{
		{chargeGo, "if hi > 0 || cost > bound ||", "if hi > 0 ||"},
		{chargeGo, "if !ok {\n\t\t\tbreak // a part", "if !ok && false {\n\t\t\tbreak // a part"},
		{chargeGo, "n := min(r.n, headroom)", "n := r.n"},
	}},
	{"R14", "a first charge is not bounded", "charge: two, one slot", "I2", []edit{
		{chargeGo, "n := min(r.n, bound/q.Token)", "n := r.n"},
	}},
	{"R14", "a take of what there is takes less than the least", "up to: two takers of the rest", "I1", []edit{
		{chargeGo, "if r.mode == modeFill && headroom < r.requiredTokens(quota) {", "if false {"},
	}},
	{"R14", "a take of what there is looks first, and takes then", "up to: two takers of the rest", "I1", []edit{
		{chargeGo, "return t.takeWhatFits(p, request{now: now, clock: clock, n: maxTokens, minTokens: minTokens, quota: q, status: status, mode: modeFill})",
			"if _, s := t.Peek(p, now, 0, 0); s.Remaining < minTokens {\n\t\tminTokens = ^uint64(0)\n\t} else {\n\t\tminTokens = 1\n\t}\n" +
				"\treturn t.takeWhatFits(p, request{now: now, clock: clock, n: maxTokens, minTokens: minTokens, quota: q, status: status, mode: modeFill})"},
	}},
	{"R14", "a take of what there is runs a key into debt", "up to: beside a charge", "I2", []edit{
		{chargeGo, "if m >= modeDrain {", "if m == modeDrain {"},
	}},
	{"R14", "a refusal is charged by a second compare-and-swap", "the rest: beside a refund", "I2", []edit{
		{takeGo, "if o := t.penalize(p, view, plan, sl, r, quota); o.Verdict != Undecided {\n\t\t\t\treturn o\n\t\t\t}",
			"t.penalizeTooMuch(p, *r)\n\t\t\treturn Outcome{State: record.State, Plan: plan, At: r.now, Verdict: Refused}"},
	}},
	{"R14", "what is left is charged twice over", "the rest: two takers, one token", "I2", []edit{
		{chargeGo, "if m >= modeDrain {", "if false {"},
	}},
	{"R14", "a reservation pays for a refusal", "penalty: a reservation pays nothing", "I2", []edit{
		{takeGo, "!ok && plan.refusals != Nothing && r.mode == modeTake {", "!ok && plan.refusals != Nothing {"},
	}},
	{"words", "a move does not compare", "three takers of a record, burst 3", "I2", []edit{
		{wordGo, "to := from.moved(payload)\n\treturn to, w.w.CompareAndSwap(uint64(from), uint64(to))",
			"to := from.moved(payload)\n\tw.w.Store(uint64(to))\n\treturn to, true"},
	}},
	{"words", "a claim does not compare", "two takers, one slot", "I7", []edit{
		{wordGo, "return to, w.w.CompareAndSwap(uint64(from), uint64(to))\n}\n\n// Publish", "w.w.Store(uint64(to))\n\treturn to, true\n}\n\n// Publish"},
	}},
	{"words", "a record is freed without a peek at it", "two resets of a stranger's slot", "I7", []edit{
		{wordGo, "func (w *Word) Free(from State) bool {\n\treturn w.w.CompareAndSwap(uint64(from), uint64(from.with(Free, 0)))",
			"func (w *Word) Free(from State) bool {\n\tw.w.Store(uint64(from.with(Free, 0)))\n\treturn true"},
	}},
	{"overflow", "an eviction is not counted", "two keys, one slot, evict", "I7", []edit{
		{evictGo, "t.shard(p).evictions.Add(1)\n", ""},
	}},
	{"overflow", "a key evicts its own record", "two takers, one slot", "I7", []edit{
		{evictGo, "s.Tag() != plan.live || sl.key.Load()&^tierMask == p.fingerprint ||", "s.Tag() != plan.live ||"},
	}},
	{"overflow", "what is admitted without a record is charged", "two keys, one slot, admit", "I7", []edit{
		{evictGo, "if t.overflow == Admit {", "if t.overflow == Admit && sl == nil {"},
	}},
}
