package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// Debts calls the function visit for every key that owes something at the time now, as [Table.Survey] counts these
// keys. The function gets the key's label, its debt, and the price of a token (0 if records are not token buckets). The
// debt is in units of the table's plan, unless another plan is given (the parameter target).
//
// With another plan, the debt is in units of that plan: it is what the record would owe if that plan replaced the
// table's plan at the time now. The other plan must be able to follow the table's algorithm, and must not be in use.
// Debts may leave out a slot that changes hands during the call. It writes nothing to the table.
//
// The result is false if the plan of the table was replaced during the call. The caller must then ignore what visit
// got.
func (t *Table) Debts(now int64, target *Plan, visit func(label, debt, token uint64)) (complete bool) {
	defer runtime.KeepAlive(t)
	plan, at := t.current(), t.readTime(now)
	if target != nil {
		target.takeOver(plan, nil)
	}
	for slots := range t.memory.markedPages() { // R12
		for i := range slots {
			sl := &slots[i]
			s := sl.state.Load()
			key := sl.key.Load() // after the state: R1
			token, hasPrice := t.price(sl, s)
			if !s.IsLive() || sl.state.Load().Version() != s.Version() {
				continue
			}
			if s.Tag() != plan.live {
				if plan.from == nil {
					continue // R20
				}
				payload, price := t.convertedRecord(plan, s, token, hasPrice, key, t.Watermark())
				s, token = atomicbucket.NewState(plan.live, s.Version(), payload), price
			}
			if plan.idle(s, t.Watermark()) || t.entries != nil { // tokens in flight are not copied
				continue
			}
			resultPlan := plan
			if target != nil {
				payload, price := t.convertedRecord(target, s, token, hasPrice, key, at)
				resultPlan, s, token = target, atomicbucket.NewState(target.live, s.Version(), payload), price
			}
			if t.buckets && t.prices == nil {
				token = resultPlan.lastQuotas[0].Token // every quota has this price
			}
			if debt := resultPlan.algorithm.Debt(s.Record(), resultPlan.algorithm.Ticks(at)); debt > 0 {
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
	// Without prices, all keys of this table have the same price.
	if tablePrice := plan.lastQuotas[0].Token; t.buckets && t.prices == nil && token > 0 {
		debt, _ = atomicbucket.Fit(debt, token, tablePrice)
		debt, token = min(debt, plan.capacity), 0
	}
	const maxTokens = 1 << 32
	token = max(token, (debt-1)/maxTokens+1)
	tokens := ceilDiv(debt, token)
	var charged uint64
	o := t.miss(p, request{
		now: now, clock: now, n: tokens, mode: modeDrain, charged: &charged,
		quota: plan.NewQuota(atomicbucket.Quota{Token: token, Tokens: tokens}),
	})
	if _, _, sl := t.record(p); sl != nil && t.buckets { // under the same tier: R24
		sl.key.CompareAndSwap(p.fingerprint|tierMask, label)
	}
	return o
}
