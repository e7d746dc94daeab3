package shard

import (
	"math"
	"runtime"
	"unsafe"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// If the calls on a table have limits with several rates, each record holds the price at which it was last charged
// (R27).

// pricesOf returns the address of the prices of the first slot, or nil if the records have no prices.
func pricesOf(plan *Plan, rings *memory) unsafe.Pointer {
	if !plan.isBucket || rings == nil {
		return nil
	}
	return unsafe.Pointer(&rings.slots[0])
}

// priceWord returns the word with the price of a record in state s. The two prices of a record take as much memory as a
// slot, so they have the offset of their slot.
func (t *Table) priceWord(sl *slot, s atomicbucket.State) *word.Word {
	offset := uintptr(unsafe.Pointer(sl)) - uintptr(unsafe.Pointer(t.first)) + uintptr(s.Version()&1)*8
	return (*word.Word)(unsafe.Add(t.prices, offset))
}

// A view is a record as a call with a given price sees it.
type view struct {
	atomicbucket.Record                    // the record as if it owed its tokens at the price of the call
	slotState           atomicbucket.State // the state of the slot
	callPrice           uint64             // the price of the call
	samePrice           bool               // the record has the price of the call, or records have no prices
	recordPrice         uint64             // the price of the record, if it differs
	earliest            int64              // the first of the two times at which its tokens are counted (R27)
	place               Place
}

// view returns a record as it appears to a call for which a token has the given price. The time of the call (now) may
// be ahead of the time of the limiter's clock (clock). The caller has read the record before.
func (t *Table) view(p Place, r atomicbucket.Record, plan *Plan, token uint64, now, clock int64) view {
	if t.prices == nil || r.Ring == nil { // the key has no record, and owes nothing
		return view{Record: r, slotState: r.State, callPrice: token, samePrice: true}
	}
	price, ok := r.Ring.Price(r.State)
	if !ok {
		return view{Record: r, slotState: r.State, callPrice: token, recordPrice: token, earliest: now, place: p}
	}
	if price == token {
		return view{Record: r, slotState: r.State, callPrice: token, samePrice: true}
	}
	latest := t.latestCharge(p, now)
	earliest := max(min(now, clock), t.Watermark())
	tick := plan.bucket.Ticks(now)
	owed, ahead := plan.bucket.Repriced(r.State, earliest, latest, price, token, tick), uint64(0)
	if now > earliest {
		ahead = tick - plan.bucket.Ticks(earliest)
	}
	return view{r.After(plan.bucket.Owing(owed, tick, ahead)), r.State, token, false, price, earliest, p}
}

// latestCharge returns the latest time for which a record may have been charged. The caller has read the record before.
func (t *Table) latestCharge(p Place, now int64) int64 {
	latest, promised := t.latestTimes(p, now) // after the state: R15
	if latest = max(latest, promised); t.now != nil {
		latest = max(latest, t.now()) // also after the state: calls that charged the record have read the clock before
	}
	return latest
}

// isFaster reports whether tokens come back faster at the price of the call than at the price of the record.
func (v *view) isFaster() bool { return !v.samePrice && v.callPrice < v.recordPrice }

// statusOf does what [Plan.status] does, for a view. The debt comes back at the record's own price until a request
// converts the record. A request converts the record if it is admitted, or if it is refused and its price is lower.
func (p *Plan) statusOf(v view, nanos int64, d atomicbucket.Demand) atomicbucket.Status {
	status := p.status(v.Record, nanos, d)
	if v.samePrice || v.isFaster() && status.RetryAfter > 0 {
		return status
	}
	status.RetryAfter = p.bucket.Wait(nanos, p.shortfall(v, nanos, d))
	status.ResetAfter = p.bucket.Wait(nanos, p.bucket.Debt(v.slotState.Record(), p.bucket.Ticks(nanos)))
	return status
}

// shortfall returns the number of ticks until a view admits a demand, if nothing else is taken. It assumes that the
// call, when it is repeated, is again as far ahead of its clock.
func (p *Plan) shortfall(v view, nanos int64, d atomicbucket.Demand) uint64 {
	now := p.bucket.Ticks(nanos)
	if v.samePrice || v.isFaster() || d.Cost == 0 {
		return p.bucket.Shortfall(v.Record, now, d)
	}
	earliest := p.bucket.Ticks(v.earliest)
	owed, allowed := p.bucket.Debt(v.slotState.Record(), earliest), d.Limit-min(d.Cost, d.Limit)
	return owed - min(owed, atomicbucket.Within(allowed+now-earliest, v.callPrice, v.recordPrice))
}

// move writes to the record the payload that the call of a view has computed for the time now. If the record has
// another price, move converts the record. move returns the record as the call sees it.
func (t *Table) move(sl *slot, v view, plan *Plan, payload uint64, now int64) (after atomicbucket.State, ok bool) {
	if v.samePrice {
		return sl.state.Move(v.slotState, payload)
	}
	if !plan.idle(v.slotState, t.Watermark()) {
		t.storeLowestPrice(plan, min(v.recordPrice, v.callPrice))
		if v.callPrice > v.recordPrice {
			t.raise(v.earliest) // what has come back later than a late call's time came back at the lower price: R27
		}
	}
	return t.reprice(sl, v, plan, payload, now)
}

// lowerPrice converts a record to the lower price of a refused request, so that the debt comes back at that price.
func (t *Table) lowerPrice(p Place, sl *slot, v view, plan *Plan, r *request) bool {
	t.relabel(p, sl, r.quota)
	_, ok := t.move(sl, v, plan, v.State.Payload(), r.now)
	return ok
}

// reprice writes a payload, computed for the time now, with the price of the view's call and the next version.
func (t *Table) reprice(sl *slot, v view, plan *Plan, payload uint64, now int64) (after atomicbucket.State, ok bool) {
	next, ok := v.Ring.Offer(v.slotState, v.callPrice, &sl.state)
	if !ok {
		return 0, false
	}
	if next == v.callPrice {
		return sl.state.Convert(v.slotState, v.slotState.Tag(), payload)
	}
	if t.current() != plan { // after the offer: a price in ticks of another plan may be in the word
		return 0, false
	}
	// Another call has offered its price for the same state. The conversion uses that price, with this call's tokens,
	// so no two calls can block each other.
	after = atomicbucket.NewState(v.slotState.Tag(), v.slotState.Version()+1, payload)
	otherPayload, fits := t.atPrice(v, plan, next, after, now)
	if !fits {
		sl.state.Move(v.slotState, v.slotState.Payload()+1) // a tick more, so that the offer is one for another state
		return 0, false
	}
	_, ok = sl.state.Convert(v.slotState, v.slotState.Tag(), otherPayload)
	return after, ok
}

// atPrice returns the payload of a record at the price next, which another call has offered. The payload has the debt
// of the record before this call, counted as a call with the price next counts it. To that, atPrice adds what this call
// has taken or given back.
//
// The parameter v is the view of this call. The parameter after is the record after this call, as this call sees it.
// The call's own request may be ahead of its clock, or may wait, so atPrice reads the latest time again (R15). ok is
// false if a record has no room for the sum.
func (t *Table) atPrice(v view, plan *Plan, next uint64, after atomicbucket.State, now int64) (payload uint64, ok bool) {
	bucket, tick := &plan.bucket, plan.bucket.Ticks(now)
	owed, owedBefore, owedAfter := bucket.Debt(v.slotState.Record(), tick), bucket.Debt(v.Record, tick), bucket.Debt(after.Record(), tick)
	if price, hasPrice := v.Ring.Price(v.slotState); hasPrice && price != next {
		t.storeLowestPrice(plan, min(price, next))
		if next > price {
			t.raise(v.earliest) // as move does
		}
		owed = bucket.Repriced(v.slotState, v.earliest, t.latestCharge(v.place, now), price, next, tick)
	}
	if owedAfter < owedBefore { // the call gives tokens back
		owed -= min(owed, atomicbucket.Within(owedBefore-owedAfter, v.callPrice, next))
	} else if added, fits := atomicbucket.Fit(owedAfter-owedBefore, v.callPrice, next); fits {
		owed += added
	} else {
		return 0, false
	}
	return tick + owed, owed <= plan.capacity
}

// storeLowestPrice is called before a conversion, with the lower of the record's two prices. It stores that price if it
// is the lowest of all conversions so far. Refunds use the stored price, because debts may have come back at its rate.
func (t *Table) storeLowestPrice(plan *Plan, token uint64) {
	raiseWord(&t.fastest, math.MaxInt64-int64(plan.bucket.Sixteenths(token)))
}

// refundPriced does what giveBack does, for a record with a price. It counts in tokens of the record. If the receipt
// has the record's version and price, all later takes had this price. Otherwise refundPriced assumes that tokens came
// back at the lowest price of all conversions of the table.
func (t *Table) refundPriced(
	p Place, r atomicbucket.Record, plan *Plan, sl *slot, at int64, n uint64, receipt *Receipt,
) (after atomicbucket.State, v Verdict, done bool) {
	s, bucket := r.State, &plan.bucket
	price, hasPrice := r.Ring.Price(s)
	latest, promised := t.latestTimes(p, at)
	latest = max(latest, promised)
	now, last := bucket.Ticks(at), bucket.Ticks(latest)
	owed, cost := bucket.Debt(r, now), plan.product(n, price)
	amount := min(bucket.Debt(r, last), cost)
	switch {
	case !hasPrice || receipt.IsKnown() && latest-receipt.at > 3*int64(plan.skew), !receipt.IsKnown() && latest > at:
		amount = 0
	case !receipt.IsKnown():
	case receipt.sameVersion(s) && price == receipt.token() && s == receipt.after: // R25: the last take in line
		amount = min(owed, cost)
	case receipt.sameVersion(s) && price == receipt.token():
		amount = min(amount, bucket.Debt(receipt.after.Record(), last))
	default:
		total, elapsed := plan.product(receipt.n, price), last-bucket.Ticks(receipt.at)
		if lowest := t.lowestPrice(plan, min(price, receipt.token())); lowest < bucket.Sixteenths(price) {
			elapsed, _ = atomicbucket.Fit(uint64(latest-receipt.at)*16, lowest, price)
		}
		amount = min(amount, total-min(total, elapsed))
	}
	after, done = t.reprice(sl, view{Record: r, slotState: s, callPrice: price, recordPrice: price, earliest: at, place: p}, plan, now+owed-amount, at)
	return after, Admitted, done
}

// lowestPrice returns the lowest price of all conversions, or the given price (token) if that is lower. The result is
// in sixteenths of a nanosecond.
func (t *Table) lowestPrice(plan *Plan, token uint64) uint64 {
	lowest := plan.bucket.Sixteenths(token)
	if fastest := t.fastest.Load(); fastest > 0 {
		lowest = min(lowest, uint64(math.MaxInt64-int64(fastest)))
	}
	return lowest
}

// hasPriceOf reports whether a record that is about to be committed has the price of a quota. Without prices, it
// returns true.
func (t *Table) hasPriceOf(sl *slot, s atomicbucket.State, q quota) bool {
	return t.prices == nil || atomicbucket.PriceIs(t.priceWord(sl, s).Load(), s, q.Token)
}

func (t *Table) clearRing(sl *slot, claimed atomicbucket.State, q Quota) {
	if t.prices == nil {
		t.ring(sl).Clear(claimed)
		return
	}
	quota := t.current().granted(q)
	t.ring(sl).Begin(claimed, max(quota.Token, 1))
}

// offerPrice offers a price for the next version of a record that is converted to another plan.
func (t *Table) offerPrice(sl *slot, s atomicbucket.State, price uint64) bool {
	if t.prices == nil {
		return true
	}
	next, ok := t.ring(sl).Offer(s, price, &sl.state)
	if ok && next != price {
		sl.state.Move(s, s.Payload()+1) // the price in the word is in ticks of the previous plan: see reprice
		return false
	}
	return ok
}

// changeOf returns how a replacement of the plan converts a record with a price and a debt, and its new price. There
// are three cases:
//
//  1. The record has the price of its key's last tier, and room for its tokens at that tier's next price. It gets that
//     price. No part of its debt counts as above all limits of the key, because the debt may be from another tier or a
//     quota.
//  2. Otherwise, if it has room for the time that it owes, it owes the same time at the same price.
//  3. Otherwise the debt was taken under another tier, because a plan has room for the debt of any quota. It is
//     converted like the debt of a tier that has the record's price.
func (p *Plan) changeOf(c atomicbucket.Change, price, owed uint64, hasPrice bool) (atomicbucket.Change, uint64) {
	if hasPrice && price == c.Before {
		if _, fits := atomicbucket.Fit(owed, c.Before, c.After); fits {
			c.Highest = math.MaxUint64
			return c, c.After
		}
	}
	from, best := p.from.(*atomicbucket.TokenBucket), atomicbucket.Change{}
	if hasPrice && from.Wait(0, owed) > p.bucket.Span(p.capacity) {
		for _, c := range p.changes {
			if _, fits := atomicbucket.Fit(owed, price, c.After); c.Before == price && fits && c.After > best.After {
				best = c
			}
		}
	}
	if best.After > 0 {
		best.Highest = math.MaxUint64
		return best, best.After
	}
	return best, p.bucket.Reprice(from, price)
}

// LastPrice returns the price at which the key at p was last charged. ok is false if the key has no record, or if
// records have no prices.
func (t *Table) LastPrice(p Place) (token uint64, ok bool) {
	defer runtime.KeepAlive(t)
	record, _, sl := t.record(p)
	if t.prices == nil || sl == nil {
		return 0, false
	}
	return record.Ring.Price(record.State)
}

func (t *Table) price(sl *slot, s atomicbucket.State) (token uint64, ok bool) {
	if t.prices == nil {
		return 0, false
	}
	return t.ring(sl).Price(s)
}
