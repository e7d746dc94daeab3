package shard

import (
	"math/bits"
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// A mode says what happens to a request if its record does not have the tokens.
type mode uint8

const (
	modeTake    mode = iota // it is refused, and charged for the refusal if the plan says so
	modeReserve             // it is refused without a charge, and its caller then tries to reserve
	modeCharge              // it takes what fits under the bound of the debt
	modeDrain               // it takes what the record has
	modeFill                // like modeDrain, but it is refused if the record has less than request.minTokens
)

// A RefusalCharge says what a refused request is charged.
type RefusalCharge uint8

const (
	// Nothing means that a refusal writes nothing.
	Nothing RefusalCharge = iota
	// TheRest charges the tokens that are left of the limit, but not more than the request asked for.
	TheRest
	// Penalty charges the tokens that the request asked for, as far as the bound on the debt allows.
	Penalty
)

// DefaultMaxDebt bounds the debt of a token bucket, as a multiple of its limit, unless [Plan.SetCharges] is called.
// This includes token buckets that are refilled in batches.
const DefaultMaxDebt = 10

// SetCharges sets what refusals cost, and how much a key may owe because of [Table.Charge]: at most maxDebt times its
// limit, maxDebt >= 1. The plan must not be in use.
func (p *Plan) SetCharges(maxDebt uint64, refusals RefusalCharge) {
	p.maxDebt, p.refusals = maxDebt, refusals
	if refusals != Nothing { // Hit leaves every refusal to the slower hit
		p.lateTicks, p.lateVerdict = ^uint64(0), Undecided
	}
}

// MaxDebt returns the bound of a key's debt, as a multiple of its limit.
func (p *Plan) MaxDebt() uint64 { return p.maxDebt }

// bound returns how much a key may owe after a request with mode m, in units of the algorithm. That is the limit or a
// multiple of it, but at most what a record has room for.
func (p *Plan) bound(q quota, m mode) uint64 {
	if m >= modeDrain {
		return q.limit
	}
	return p.product(q.limit, p.maxDebt)
}

// product returns a*b in units of the algorithm, but at most what a record has room for.
func (p *Plan) product(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi > 0 || lo > p.capacity {
		return p.capacity
	}
	return lo
}

// HoldsDebt reports whether a record has room for the whole debt that a quota may have.
func (p *Plan) HoldsDebt(q atomicbucket.Quota) bool {
	hi, bound := bits.Mul64(q.Token*q.Tokens, p.maxDebt)
	return hi == 0 && bound <= p.capacity
}

// headroom returns how many whole tokens a record may be charged before it owes the given bound.
func (p *Plan) headroom(r atomicbucket.Record, nanos int64, q quota, bound uint64) uint64 {
	if p.isBucket {
		owed := p.bucket.Debt(r, p.bucket.Ticks(nanos))
		return (bound - min(owed, bound)) / q.Token
	}
	return p.algorithm.Status(r, nanos, atomicbucket.Demand{Limit: bound, Token: q.Token}).Remaining
}

func (q *quota) charge(n, bound uint64) atomicbucket.Demand {
	return atomicbucket.Demand{Cost: n * q.Token, Limit: bound, Token: q.Token}
}

// firstDemand returns the demand of the request for a key that has taken nothing, and the number of tokens charged.
func (r *request) firstDemand(p *Plan, q quota) (d atomicbucket.Demand, charged uint64) {
	if r.mode < modeCharge {
		return q.Demand(r.n), 0
	}
	bound := p.bound(q, r.mode)
	n := min(r.n, bound/q.Token)
	return q.charge(n, bound), n
}

// isTooMuch reports whether no record can admit the request.
func (r *request) isTooMuch(q quota) bool {
	if r.mode < modeCharge {
		return r.n > q.Tokens
	}
	return q.Tokens == 0
}

// requiredTokens returns how many tokens a key must have for a request that takes what fits: r.minTokens, or the limit
// if that is smaller. Without a minimum it is 1.
func (r *request) requiredTokens(q quota) uint64 {
	if r.mode != modeFill {
		return 1
	}
	return min(r.minTokens, q.Tokens)
}

// statusDemand returns the demand for which the status of an admitted request is computed. After a charge that is one
// more token, so that the client learns when the key is admitted again. Otherwise it is no token.
func (r *request) statusDemand(q quota) atomicbucket.Demand {
	if r.mode < modeCharge || r.mode == modeFill {
		return q.Demand(0)
	}
	return q.Demand(1)
}

// HitCharge is to [Table.Charge] what [Table.Hit] is to Take. It handles the common case: the key has a token bucket
// with room for the whole charge. The verdict is Admitted or Undecided.
func (t *Table) HitCharge(p Place, now int64, n uint64, q Quota) (atomicbucket.State, *Plan, Verdict) {
	sl, label := p.home, t.label(p, q)
	for i := uint64(0); i < t.hitSlots; { // as in Hit
		s := sl.state.Load()
		if sl.key.Load() != label { // R1
			if s == 0 {
				break // R5
			}
			i++
			sl = p.slot(i)
			continue
		}
		plan := t.plan.Load() // R9
		if s.Tag() != plan.live {
			if s.IsLive() {
				break
			}
			i++
			sl = p.slot(i)
			continue
		}
		quota := &plan.quotas[q.packed%MaxTiers]
		if !q.IsTier() {
			granted := plan.granted(q)
			quota = &granted
		}
		bound := plan.bound(*quota, modeCharge)
		hi, cost := bits.Mul64(n, quota.Token)
		if hi > 0 || cost > bound || quota.Tokens == 0 || uint64(now)-t.watermark.Load() > plan.trust || // R7
			t.planned.Load() != plan.planned { // R21
			break
		}
		payload, ok := plan.bucket.Take(s.Record(), plan.bucket.Ticks(now), atomicbucket.Demand{Cost: cost, Limit: bound})
		if !ok {
			break // a part of the charge may fit
		}
		if s, ok = sl.state.Move(s, payload); ok {
			return s, plan, Admitted
		}
	}
	return 0, nil, Undecided
}

// Charge takes n tokens, n >= 1, from the key at p, even if the key does not have them. It takes fewer if the key would
// otherwise owe more than the plan allows ([Plan.SetCharges]) or than its record has room for. Charge returns the
// number of tokens taken. The verdict is Admitted if any token was taken, and Refused if the key already owed the
// maximum. Nothing is taken if there is no room for a record, or under a quota that grants nothing or everything. After
// the charge, *status is set to the status for a request for one token.
func (t *Table) Charge(p Place, now, clock int64, n uint64, q Quota, status *atomicbucket.Status) (o Outcome, charged uint64) {
	return t.takeWhatFits(p, request{now: now, clock: clock, n: n, quota: q, status: status, mode: modeCharge})
}

// TakeUpTo takes as many tokens from the key at p as the key has, up to maxTokens, in one step, and returns their
// number. The verdict is Refused, and nothing is taken, if the key has fewer tokens than minTokens, and fewer than its
// whole limit. Both minTokens and maxTokens are at least 1. If the call read no record, or there was no room for a
// record, the verdict is that of [Table.TakeAt] and nothing is taken. *status becomes the status after the take or,
// without a take, for a request for minTokens tokens.
func (t *Table) TakeUpTo(
	p Place, now, clock int64, minTokens, maxTokens uint64, q Quota, status *atomicbucket.Status,
) (o Outcome, taken uint64) {
	return t.takeWhatFits(p, request{now: now, clock: clock, n: maxTokens, minTokens: minTokens, quota: q, status: status, mode: modeFill})
}

// takeWhatFits carries out a request of [Table.Charge] or [Table.TakeUpTo].
func (t *Table) takeWhatFits(p Place, r request) (o Outcome, charged uint64) {
	defer runtime.KeepAlive(t)
	r.charged = &charged
	if o = t.hit(p, &r); o.Verdict == Undecided {
		o = t.miss(p, r)
	} else {
		t.concludeEntry(&r, &o)
	}
	return o, charged
}

// chargeRecord does what hit does, for a request that takes what fits.
func (t *Table) chargeRecord(p Place, r *request) Outcome {
	for {
		record, plan, sl := t.record(p)
		quota := plan.granted(r.quota)
		if sl == nil || quota.Tokens == 0 || uint64(r.now)-t.watermark.Load() > plan.maxAhead(r) { // R7
			return undecided
		}
		bound := plan.bound(quota, r.mode)
		view := t.view(p, record, plan, quota.Token, r.now, r.clock)
		headroom, statusDemand := plan.headroom(view.Record, r.now, quota, bound), r.statusDemand(quota)
		n := min(r.n, headroom)
		if r.mode == modeFill && headroom < r.requiredTokens(quota) {
			n, statusDemand = 0, quota.Demand(r.requiredTokens(quota))
		}
		if n == 0 && view.isFaster() { // R27
			if !t.lowerPrice(p, sl, view, plan, r) {
				t.shard(p).retries.Add(1)
			}
			continue
		}
		if after, verdict := t.moveBy(p, view, plan, sl, r, quota.charge(n, bound), statusDemand); verdict != Undecided {
			if verdict == NoRoom {
				return t.noEntryOutcome(p, after, plan, r.now)
			}
			*r.charged = n // 0 if it is refused
			return Outcome{State: after, Plan: plan, At: r.now, Verdict: verdict}
		}
		t.shard(p).retries.Add(1)
	}
}

// moveBy takes the demand d from a record that has room for it, and sets the status for the demand statusDemand. If d
// is for nothing, the request is refused and nothing is written. The verdict is Undecided if the record has changed.
func (t *Table) moveBy(
	p Place, view view, plan *Plan, sl *slot, r *request, d, statusDemand atomicbucket.Demand,
) (atomicbucket.State, Verdict) {
	if d.Cost == 0 {
		if r.status != nil {
			*r.status = plan.statusOf(view, r.now, statusDemand)
		}
		hasRoom := r.mode == modeFill && r.status != nil && r.status.RetryAfter == 0 // an exchange made room: R10
		if sl.state.Load() == view.slotState && !hasRoom {                           // R2
			return view.State, Refused
		}
		return 0, Undecided
	}
	payload, _ := t.take(plan, view.Record, r.now, d)
	if !plan.flush(view.Record, r.now, &sl.state) { // R10
		return 0, Undecided
	}
	if r.status != nil { // before the move, as in hit
		*r.status = plan.status(view.After(payload), r.now, statusDemand)
	}
	if t.entries != nil {
		ok := false
		if payload, ok = t.prepareEntry(r, sl, view.slotState, payload, d.Cost); !ok {
			return view.slotState, NoRoom
		}
	}
	t.recordLead(r.now, r.clock)
	t.relabel(p, sl, r.quota)
	if after, ok := t.move(sl, view, plan, payload, r.now); ok {
		t.confirmEntry(r)
		plan.countForgotten(t.shards[0].counters, view.slotState, r.now)
		return after, Admitted
	}
	return 0, Undecided
}

// penalize charges a record for a request that it refuses, if the plan charges for refusals. Charge and refusal are one
// step, so that a request which could have been admitted is never charged as refused. The outcome is undecided if the
// record has changed.
func (t *Table) penalize(p Place, view view, plan *Plan, sl *slot, r *request, quota quota) Outcome {
	m := modeCharge
	if plan.refusals == TheRest {
		m = modeDrain
	}
	bound := plan.bound(quota, m)
	n := min(r.n, plan.headroom(view.Record, r.now, quota, bound))
	if r.n <= plan.headroom(view.Record, r.now, quota, quota.limit) {
		return undecided // an exchange has made room meanwhile: R10
	}
	if n == 0 && view.isFaster() {
		t.lowerPrice(p, sl, view, plan, r)
		return undecided
	}
	after, verdict := t.moveBy(p, view, plan, sl, r, quota.charge(n, bound), quota.Demand(r.n))
	if verdict == Undecided {
		return undecided
	}
	return Outcome{State: after, Plan: plan, At: r.now, Verdict: Refused}
}

// penalizeTooMuch charges for a request for more than the limit. No record could have admitted it, so the charge may be
// a step of its own, like any other charge (R14).
func (t *Table) penalizeTooMuch(p Place, r request) {
	var charged uint64
	r.mode, r.status, r.charged = modeCharge, nil, &charged
	if t.current().refusals == TheRest {
		r.mode = modeDrain
	}
	t.miss(p, r)
}
