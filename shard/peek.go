package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// Peek returns the record of the key at p, and its status for a request for n tokens under a tier. If n is above the
// limit, it counts as 0. Peek reads the record as it is at the time now, or at the watermark (a time that has
// certainly been reached) if that is later. For a key without a record, Peek returns a full record. It takes nothing,
// but may move the watermark to now, as Take does.
func (t *Table) Peek(p Place, now int64, n uint64, tier uint8) (Outcome, atomicbucket.Status) {
	return t.PeekAt(p, now, now, n, TierQuota(tier))
}

// PeekAt does what [Table.Peek] does, at a time that may be ahead of a clock: see [Table.TakeAt].
func (t *Table) PeekAt(p Place, now, clock int64, n uint64, q Quota) (Outcome, atomicbucket.Status) {
	defer runtime.KeepAlive(t)
	for {
		record, plan, sl, at := t.recordAt(p, now, clock)
		if plan.ignoresRecords(q) {
			return Outcome{Plan: plan, At: at, Verdict: TooMuch}, atomicbucket.Status{}
		}
		quota, tokens := plan.granted(q), n
		if tokens > quota.Tokens {
			tokens = 0
		}
		view := t.view(p, record, plan, quota.Token, at, clock)
		status := plan.statusOf(view, at, quota.Demand(tokens))
		if sl == nil || sl.state.Load() == record.State { // R2
			return Outcome{State: view.State, Plan: plan, At: at}, status
		}
		t.shard(p).retries.Add(1)
	}
}

// Reset makes the bucket of the key at p full, by forgetting its record. A concurrent take is decided before or after
// the reset. Reset reports whether there was a record.
func (t *Table) Reset(p Place) bool {
	defer runtime.KeepAlive(t)
	if t.entries != nil {
		return t.resetInFlight(p)
	}
	for {
		record, _, sl := t.record(p)
		if sl == nil {
			return false
		}
		if t.forceEnd(p, func() bool { return sl.state.Free(record.State) }) {
			return true
		}
		t.shard(p).retries.Add(1)
	}
}

// recordAt does what record does, and also returns the time for which the call must read the record: now, or the
// watermark if that is later. For a key without a record it returns a full record and a nil slot. After the search it
// reads the watermark again. If the watermark has passed the time of the call, recordAt starts over (R7), because a
// record may have been forgotten by then, or may be too far ahead to be read correctly.
func (t *Table) recordAt(p Place, now, clock int64) (r atomicbucket.Record, plan *Plan, sl *slot, at int64) {
	for {
		at, _ = t.callTimes(now, clock)
		r, plan, sl = t.record(p)
		if uint64(at)-t.watermark.Load() > plan.skew {
			continue
		}
		if sl == nil {
			r = plan.fullRecord(at)
		}
		return r, plan, sl, at
	}
}

// record returns the live record of the key at p, the plan that it follows, and its slot. If the key has no live
// record, it returns the zero record, the current plan, and nil. A tentative record does not count, because no take has
// been charged to it. State and key may belong to two tenures, so a call that makes no compare-and-swap reads the state
// again (R2).
func (t *Table) record(p Place) (atomicbucket.Record, *Plan, *slot) {
	for i := uint64(0); i < t.probeWindow && !t.isBeyond(p, i); i++ { // R11
		sl := p.slot(i)
		s := sl.state.Load() // R1
		if s == 0 {
			break // R5
		}
		if !s.IsLive() || sl.key.Load()&^tierMask != p.fingerprint {
			continue
		}
		plan := t.current() // R9
		if s.Tag() == plan.live {
			return atomicbucket.Record{State: s, Ring: t.ring(sl)}, plan, sl
		}
		t.convert(sl, s)
		i-- // the record has changed: read the slot again
	}
	return atomicbucket.Record{}, t.current(), nil
}
