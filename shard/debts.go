package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// Debts calls visit for every key that owes something at a time, as [Table.Survey] judges it, with its label, how much
// that is, and what a token of it costs, or 0 if records do not say (R27). That is in units of the table's plan, or if
// in is not nil, of that plan: then a record owes what it would owe if the plan replaced the table's at that time. The
// plan must be one that follows the algorithm of the table's, and not be in use. A slot that changes hands meanwhile
// may be left out. It writes nothing to the table.
//
// What was visited means nothing, and all is false, if the table has another plan by the end.
func (t *Table) Debts(now int64, in *Plan, visit func(label, debt, token uint64)) (all bool) {
	defer runtime.KeepAlive(t)
	plan, at := t.current(), t.judge(now)
	if in != nil {
		in.follow(plan, nil)
	}
	for slots := range t.memory.marked() { // R12
		for i := range slots {
			sl := &slots[i]
			s := sl.state.Load()
			key := sl.key.Load() // after the state: R1
			token, known := t.price(sl, s)
			if !s.IsLive() || sl.state.Load().Version() != s.Version() {
				continue
			}
			if s.Tag() != plan.live {
				if plan.from == nil {
					continue // R20
				}
				payload, price := t.converted(plan, s, token, known, key, t.Watermark())
				s, token = atomicbucket.NewState(plan.live, s.Version(), payload), price
			}
			if plan.idle(s, t.Watermark()) || t.entries != nil { // what is in flight stays where its holders are
				continue
			}
			units := plan
			if in != nil {
				payload, price := t.converted(in, s, token, known, key, at)
				units, s, token = in, atomicbucket.NewState(in.live, s.Version(), payload), price
			}
			if t.buckets && t.prices == nil {
				token = units.numbers[0].Token // and that of every quota
			}
			if debt := units.algorithm.Debt(s.Record(), units.algorithm.Ticks(at)); debt > 0 {
				visit(key, debt, token)
			}
		}
	}
	return t.current() == plan
}

// Owe makes the key of a label owe at least so much at a time, as [Table.Debts] tells it in units of a plan, and what a
// token of it costs: what it owes already counts. It is a charge like any other (R14), so it may be made twice, and
// beside anything else. If the plan is no longer the present one it is to be made again, with what is owed in units of
// the present one. The verdict is NoRoom or Unrecorded if the key has no record, and so owes nothing.
func (t *Table) Owe(label uint64, now int64, debt, token uint64, plan *Plan) Outcome {
	defer runtime.KeepAlive(t)
	p := t.Find(label)
	if own := plan.numbers[0].Token; t.buckets && t.prices == nil && token > 0 { // by which all keys are charged here
		debt, _ = atomicbucket.Fit(debt, token, own)
		debt, token = min(debt, plan.most), 0
	}
	const mostTokens = 1 << 32
	token = max(token, (debt-1)/mostTokens+1)
	tokens := ceilDiv(debt, token)
	var charged uint64
	o := t.miss(p, request{
		now: now, clock: now, n: tokens, mode: draining, charged: &charged,
		quota: plan.NewQuota(atomicbucket.Quota{Token: token, Tokens: tokens}),
	})
	if _, _, sl := t.record(p); sl != nil && t.buckets { // under the same tier: R24
		sl.key.CompareAndSwap(p.fingerprint|tierMask, label)
	}
	return o
}
