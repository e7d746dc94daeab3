package shard

import (
	"math/bits"
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// A mode says what a request does with a record that has not the tokens.
type mode uint8

const (
	taking    mode = iota // it is refused, and pays for that as the plan says
	reserving             // it is refused, and its caller will ask again otherwise
	charging              // it takes what fits under the bound of the debt
	draining              // it takes what is there
	filling               // so it does, or is refused if that is not enough
)

// A RefusalCharge says what a refused request costs.
type RefusalCharge uint8

const (
	// Nothing: a refusal writes nothing.
	Nothing RefusalCharge = iota
	// TheRest: what was left of the limit, as far as the request asked for it.
	TheRest
	// Penalty: what the request asked for, as far as the bound of the debt allows.
	Penalty
)

// DefaultMaxDebt is how many limits a bucket may owe without [Plan.SetCharges], one that is refilled in batches, too.
const DefaultMaxDebt = 10

// SetCharges says how many limits a key may owe by [Table.Charge], from 1 on, and what refusals cost. The plan must not
// be in use.
func (p *Plan) SetCharges(maxDebt uint64, refusals RefusalCharge) {
	p.maxDebt, p.refusals = maxDebt, refusals
	if refusals != Nothing { // Hit leaves every refusal to hit
		p.doubt, p.doubtful = ^uint64(0), Undecided
	}
}

// MaxDebt returns how many limits a key may owe.
func (p *Plan) MaxDebt() uint64 { return p.maxDebt }

// bound returns how much a key may owe after a request of a mode, in units of the algorithm: so many limits, as far as
// a record has room.
func (p *Plan) bound(q quota, m mode) uint64 {
	if m >= draining {
		return q.limit
	}
	return p.product(q.limit, p.maxDebt)
}

// product returns a product in units of the algorithm, as far as a record has room.
func (p *Plan) product(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi > 0 || lo > p.most {
		return p.most
	}
	return lo
}

// HoldsDebt reports whether a record has room for the whole debt that a quota may have.
func (p *Plan) HoldsDebt(q atomicbucket.Quota) bool {
	hi, bound := bits.Mul64(q.Token*q.Tokens, p.maxDebt)
	return hi == 0 && bound <= p.most
}

// room returns how many whole tokens a record may be charged until it owes so much.
func (p *Plan) room(r atomicbucket.Record, nanos int64, q quota, bound uint64) uint64 {
	if p.isBucket {
		owed := p.bucket.Debt(r, p.bucket.Ticks(nanos))
		return (bound - min(owed, bound)) / q.Token
	}
	return p.algorithm.Status(r, nanos, atomicbucket.Demand{Limit: bound, Token: q.Token}).Remaining
}

// charge returns the demand of so many tokens under a bound.
func (q *quota) charge(n, bound uint64) atomicbucket.Demand {
	return atomicbucket.Demand{Cost: n * q.Token, Limit: bound, Token: q.Token}
}

// first returns what a request takes from a key that has taken nothing.
func (r *request) first(p *Plan, q quota) (d atomicbucket.Demand, charged uint64) {
	if r.mode < charging {
		return q.Demand(r.n), 0
	}
	bound := p.bound(q, r.mode)
	n := min(r.n, bound/q.Token)
	return q.charge(n, bound), n
}

// tooMuch reports whether no record can admit the request.
func (r *request) tooMuch(q quota) bool {
	if r.mode < charging {
		return r.n > q.Tokens
	}
	return q.Tokens == 0
}

// enough returns how many tokens a key must have for a request that takes what fits: its least, or the limit if that is
// less.
func (r *request) enough(q quota) uint64 {
	if r.mode != filling {
		return 1
	}
	return min(r.least, q.Tokens)
}

// asks returns what the answer to an admitted request is about: nothing more, or after a charge, when the key passes
// again.
func (r *request) asks(q quota) atomicbucket.Demand {
	if r.mode < charging || r.mode == filling {
		return q.Demand(0)
	}
	return q.Demand(1)
}

// HitCharge is [Table.Hit] for [Table.Charge]: the common case, in which a bucket has a record and room for all of the
// charge. It is Admitted or Undecided.
func (t *Table) HitCharge(p Place, now int64, n uint64, q Quota) (atomicbucket.State, *Plan, Verdict) {
	sl, label := p.home, t.label(p, q)
	for i := uint64(0); i < t.hits; { // as in Hit
		s := sl.state.Load()
		if sl.key.Load() != label { // R1
			if s == 0 {
				break // R5
			}
			i++
			sl = p.at(i)
			continue
		}
		plan := t.plan.Load() // R9
		if s.Tag() != plan.live {
			if s.IsLive() {
				break
			}
			i++
			sl = p.at(i)
			continue
		}
		quota := &plan.quotas[q.rest%MaxTiers]
		if !q.IsTier() {
			own := plan.granted(q)
			quota = &own
		}
		bound := plan.bound(*quota, charging)
		hi, cost := bits.Mul64(n, quota.Token)
		if hi > 0 || cost > bound || quota.Tokens == 0 || uint64(now)-t.watermark.Load() > plan.trust || // R7
			t.planned.Load() != plan.planned { // R21
			break
		}
		payload, ok := plan.bucket.Take(s.Record(), plan.bucket.Ticks(now), atomicbucket.Demand{Cost: cost, Limit: bound})
		if !ok {
			break // a part of it may fit
		}
		if s, ok = sl.state.Move(s, payload); ok {
			return s, plan, Admitted
		}
	}
	return 0, nil, Undecided
}

// Charge takes n tokens, from 1 on, from the key at p, whether they are there or not, as far as the key then owes no
// more than the plan allows ([Plan.SetCharges]) and its record has room for. It returns how many it took. The verdict
// is Admitted if it took any, and Refused if the key owed so much already. Without room for a record, or under a quota
// that grants nothing or everything, nothing is taken. status tells of a request for one token, after the charge.
func (t *Table) Charge(p Place, now, clock int64, n uint64, q Quota, status *atomicbucket.Status) (o Outcome, charged uint64) {
	return t.takeWhatFits(p, request{now: now, clock: clock, n: n, quota: q, status: status, mode: charging})
}

// TakeUpTo takes as many tokens from the key at p as it has, at most most, from 1 on, and returns how many. If it has
// fewer than least, from 1 on, or than its limit where that is less, the verdict is Refused, and nothing is taken.
// Both are one step. Where there was nothing to look at or no room for a record, the verdict is that of [Table.TakeAt],
// and taken is 0. status tells what the client may want to know: after the take, or of a request for least.
func (t *Table) TakeUpTo(
	p Place, now, clock int64, least, most uint64, q Quota, status *atomicbucket.Status,
) (o Outcome, taken uint64) {
	return t.takeWhatFits(p, request{now: now, clock: clock, n: most, least: least, quota: q, status: status, mode: filling})
}

// takeWhatFits makes a request of [Table.Charge] or [Table.TakeUpTo].
func (t *Table) takeWhatFits(p Place, r request) (o Outcome, charged uint64) {
	defer runtime.KeepAlive(t)
	r.charged = &charged
	if o = t.hit(p, &r); o.Verdict == Undecided {
		o = t.miss(p, r)
	} else {
		t.concludes(&r, &o)
	}
	return o, charged
}

// chargeRecord is hit for a request that takes what fits.
func (t *Table) chargeRecord(p Place, r *request) Outcome {
	for {
		record, plan, sl := t.record(p)
		quota := plan.granted(r.quota)
		if sl == nil || quota.Tokens == 0 || uint64(r.now)-t.watermark.Load() > plan.ahead(r) { // R7
			return undecided
		}
		bound := plan.bound(quota, r.mode)
		seen := t.view(p, record, plan, quota.Token, r.now, r.clock)
		room, asks := plan.room(seen.Record, r.now, quota, bound), r.asks(quota)
		n := min(r.n, room)
		if r.mode == filling && room < r.enough(quota) {
			n, asks = 0, quota.Demand(r.enough(quota))
		}
		if n == 0 && seen.speeds() { // R27
			if !t.speed(p, sl, seen, plan, r) {
				t.shard(p).retries.Add(1)
			}
			continue
		}
		if after, verdict := t.moveBy(p, seen, plan, sl, r, quota.charge(n, bound), asks); verdict != Undecided {
			if verdict == NoRoom {
				return t.noEntry(p, after, plan, r.now)
			}
			*r.charged = n // 0 if it is refused
			return Outcome{State: after, Plan: plan, At: r.now, Verdict: verdict}
		}
		t.shard(p).retries.Add(1)
	}
}

// moveBy takes a demand from a record that has room for it, and tells the status of what is asked for next. A demand
// for nothing is refused, and writes nothing. It is undecided if the record is another by now.
func (t *Table) moveBy(
	p Place, seen view, plan *Plan, sl *slot, r *request, d, asks atomicbucket.Demand,
) (atomicbucket.State, Verdict) {
	if d.Cost == 0 {
		if r.status != nil {
			*r.status = plan.statusOf(seen, r.now, asks)
		}
		room := r.mode == filling && r.status != nil && r.status.RetryAfter == 0 // by an exchange beside this: R10
		if sl.state.Load() == seen.from && !room {                               // R2
			return seen.State, Refused
		}
		return 0, Undecided
	}
	payload, _ := plan.take(seen.Record, r.now, d)
	if !plan.flush(seen.Record, r.now, &sl.state) { // R10
		return 0, Undecided
	}
	if r.status != nil { // before the move, as in hit
		*r.status = plan.status(seen.After(payload), r.now, asks)
	}
	if t.entries != nil {
		ok := false
		if payload, ok = t.enter(r, sl, seen.from, payload, d.Cost); !ok {
			return seen.from, NoRoom
		}
	}
	t.lead(r.now, r.clock)
	t.relabel(p, sl, r.quota)
	if after, ok := t.move(sl, seen, plan, payload, r.now); ok {
		t.entered(r)
		plan.forget(t.shards[0].counters, seen.from, r.now)
		return after, Admitted
	}
	return 0, Undecided
}

// penalize is what a record that does not admit a request of a plan whose refusals cost something is charged: in one
// step with the refusal, so that no request pays that could have been admitted. It is undecided if the record is
// another by now.
func (t *Table) penalize(p Place, seen view, plan *Plan, sl *slot, r *request, quota quota) Outcome {
	m := charging
	if plan.refusals == TheRest {
		m = draining
	}
	bound := plan.bound(quota, m)
	n := min(r.n, plan.room(seen.Record, r.now, quota, bound))
	if r.n <= plan.room(seen.Record, r.now, quota, quota.limit) {
		return undecided // by an exchange beside this: R10
	}
	if n == 0 && seen.speeds() {
		t.speed(p, sl, seen, plan, r)
		return undecided
	}
	after, verdict := t.moveBy(p, seen, plan, sl, r, quota.charge(n, bound), quota.Demand(r.n))
	if verdict == Undecided {
		return undecided
	}
	return Outcome{State: after, Plan: plan, At: r.now, Verdict: Refused}
}

// penalizeTooMuch is what a request for more than the limit is charged. No record could have admitted it, so it is a
// charge like any other.
func (t *Table) penalizeTooMuch(p Place, r request) {
	var charged uint64
	r.mode, r.status, r.charged = charging, nil, &charged
	if t.current().refusals == TheRest {
		r.mode = draining
	}
	t.miss(p, r)
}
