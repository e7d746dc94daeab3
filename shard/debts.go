package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// Debts calls the function visit for every key that owes something at the time now, as [Table.Survey] counts these
// keys. The function gets the key's label, its debt, and the price of a token (0 if records are not token buckets). The
// debt is in units of the table's plan, unless another plan is given (the parameter in).
//
// With another plan, the debt is in units of that plan: it is what the record would owe if that plan replaced the
// table's plan at the time now. The other plan must be able to follow the table's algorithm, and must not be in use.
// Debts may leave out a slot that changes hands during the call. It writes nothing to the table.
//
// The result is false if the plan of the table was replaced during the call. The caller must then ignore what visit
// got.
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
			if plan.idle(s, t.Watermark()) || t.entries != nil { // tokens in flight are not copied
				continue
			}
			units := plan
			if in != nil {
				payload, price := t.converted(in, s, token, known, key, at)
				units, s, token = in, atomicbucket.NewState(in.live, s.Version(), payload), price
			}
			if t.buckets && t.prices == nil {
				token = units.numbers[0].Token // every quota has this price
			}
			if debt := units.algorithm.Debt(s.Record(), units.algorithm.Ticks(at)); debt > 0 {
				visit(key, debt, token)
			}
		}
	}
	return t.current() == plan
}

// Owe makes the key of a label owe at least the given debt at the time now. What the key already owes counts towards
// this debt. The label, the debt and the price (token) are the values that [Table.Debts] passes to visit, in units of
// the given plan. If that plan is no longer the current plan, repeat the call with the debt in units of the current
// plan. Owe is a charge (R14), so it may be repeated, and may run concurrently with other calls. The verdict is NoRoom
// or Unrecorded if there is no room for a record; then the key owes nothing.
func (t *Table) Owe(label uint64, now int64, debt, token uint64, plan *Plan) Outcome {
	defer runtime.KeepAlive(t)
	p := t.Find(label)
	if own := plan.numbers[0].Token; t.buckets && t.prices == nil && token > 0 { // the price of all keys in this table
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
