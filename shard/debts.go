package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// Debts calls visit for every key that owes something at a time, as [Table.Survey] judges it, with how much that is,
// in units of the plan's algorithm, and its label. Of a record that follows the plan before it is what the conversion
// makes of it. A slot that changes hands meanwhile may be left out. It writes nothing.
func (t *Table) Debts(now int64, visit func(label, debt uint64)) {
	defer runtime.KeepAlive(t)
	plan, at := t.current(), t.judge(now)
	for slots := range t.memory.marked() { // R12
		for i := range slots {
			sl := &slots[i]
			s := sl.state.Load()
			key := sl.key.Load() // after the state: R1
			if !s.IsLive() || sl.state.Load().Version() != s.Version() {
				continue
			}
			if s.Tag() != plan.live {
				if plan.from == nil {
					continue // R20
				}
				s = atomicbucket.NewState(plan.live, s.Version(), t.converted(plan, s, key))
			}
			if plan.idle(s, t.Watermark()) {
				continue
			}
			if debt := plan.algorithm.Debt(s.Record(), plan.algorithm.Ticks(at)); debt > 0 {
				visit(key, debt)
			}
		}
	}
}

// Owe makes the key of a label owe at least so much at a time, as [Table.Debts] tells it of a table whose units are the
// same: what it owes already counts. It is a charge like any other (R14), so it may be made twice, and beside anything
// else.
func (t *Table) Owe(label uint64, now int64, debt uint64) Outcome {
	defer runtime.KeepAlive(t)
	p := t.Find(label)
	const mostTokens = 1 << 32
	token := (debt-1)/mostTokens + 1
	tokens := ceilDiv(debt, token)
	var charged uint64
	o := t.miss(p, request{
		now: now, clock: now, n: tokens, mode: draining, charged: &charged,
		quota: t.current().NewQuota(atomicbucket.Quota{Token: token, Tokens: tokens}),
	})
	if _, _, sl := t.record(p); sl != nil && t.buckets { // under the same tier: R24
		sl.key.CompareAndSwap(p.fingerprint|tierMask, label)
	}
	return o
}
