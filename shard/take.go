package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// A Verdict is the outcome of [Table.Take].
type Verdict uint8

const (
	// Refused: the record has not the tokens. Nothing was written.
	Refused Verdict = iota
	// Doubtful: refused, but by so short a wait that a late clock may be to blame. Only where
	// the plan was told that clocks are late.
	Doubtful
	// Admitted: the tokens were charged to the key's record.
	Admitted
	// NoRoom: the key has no record, its probe window is full and the policy
	// refuses. The state returned is the record of the probe window that will be
	// idle first.
	NoRoom
	// Unrecorded: as NoRoom, but the policy admits. The state returned is
	// what the key's record would be.
	Unrecorded
	// TooMuch: more tokens were asked for than the limit. Nothing was looked at.
	TooMuch
	// Undecided: nothing was taken; the caller has to go on.
	Undecided
	// UnlimitedQuota: the quota admits everything. Nothing was looked at.
	UnlimitedQuota
)

// Admits reports whether the verdict lets the request pass.
func (v Verdict) Admits() bool { return v == Admitted || v == Unrecorded || v == UnlimitedQuota }

// Refuses reports whether the verdict says that the key's record has not the tokens.
func (v Verdict) Refuses() bool { return v <= Doubtful }

// An Outcome is what a call on a key has found or decided.
type Outcome struct {
	State   atomicbucket.State // that decided: the record after the take, or the one that refuses
	Plan    *Plan              // that the state follows
	At      int64              // when it was decided: the time given, or the watermark if that is later
	Verdict Verdict

	ended uint32 // how many tenures of keys near p the call was about to end by force, before its take: R15; or R26
}

// A request is what a take asks for, and when.
type request struct {
	now     int64
	clock   int64 // that of the limiter's clock, to which the watermark may be moved unless now is earlier: see follow
	n       uint64
	least   uint64 // that must be there, if it takes what is
	quota   Quota
	mode    mode
	status  *atomicbucket.Status // what the client may want to know goes here, if it is not nil
	charged *uint64              // what a charge took

	followed bool // the watermark has followed the clock
	beyond   bool // the clock turned out to be ahead of the machine's: R23
	own           // what it has in flight, in a shared table: R26
}

var undecided = Outcome{Verdict: Undecided}

// Take takes n tokens, from 1 on, from the key at p, at the time now: nanoseconds from any
// fixed origin, not negative. The key has the quota of a tier, below [MaxTiers], of the
// present plan.
//
// It is lock-free: a retry means that another call on this probe window succeeded.
func (t *Table) Take(p Place, now int64, n uint64, tier uint8) Outcome {
	defer runtime.KeepAlive(t)
	s, plan, v := t.Hit(p, now, n, tier)
	if v != Undecided {
		return Outcome{State: s, Plan: plan, At: now, Verdict: v}
	}
	return t.miss(p, request{now: now, clock: now, n: n, quota: TierQuota(tier)})
}

// Decide is [Table.Take], and tells in status what the client may want to know: after the take, of a request that was
// admitted, and of the request itself if its record refused it. If nothing was looked at or there was no room, status
// stays what it is.
func (t *Table) Decide(p Place, now int64, n uint64, tier uint8, status *atomicbucket.Status) Outcome {
	return t.TakeAt(p, now, now, n, TierQuota(tier), status)
}

// TakeAt is [Table.Take] with any quota, or [Table.Decide] if status is not nil, at a time that may be ahead of a
// clock, by at most the skew of the plan. The time is that of this decision alone: the watermark follows the clock
// (R7).
func (t *Table) TakeAt(p Place, now, clock int64, n uint64, q Quota, status *atomicbucket.Status) Outcome {
	defer runtime.KeepAlive(t)
	s, plan, v := atomicbucket.State(0), (*Plan)(nil), Undecided
	if now <= clock { // else it has to be entered that the request is ahead: R15
		s, plan, v = t.hitOf(p, now, n, q)
	}
	if v == Undecided {
		return t.miss(p, request{now: now, clock: clock, n: n, quota: q, status: status})
	}
	if v == Admitted {
		n = 0
	}
	if status != nil {
		*status = plan.StatusOf(s, now, n, q)
	}
	return Outcome{State: s, Plan: plan, At: now, Verdict: v}
}

// hitLines is how many lines of a probe window Hit searches. In a table that is 0.6 full of live
// records 98 of 100 are there.
const hitLines = 2

// Hit is the common case of a table of token buckets: of any other it is undecided. When
// it is, [Table.Miss] is the rest. The caller keeps the table alive, since its slots may lie
// outside the Go heap.
//
// It calls nothing, so that everything stays in registers, and is a step of its own so
// that a caller for which nanoseconds count can save a call. It searches the first lines only:
// of a new key, whose whole probe window has to be searched, Miss does that.
func (t *Table) Hit(p Place, now int64, n uint64, tier uint8) (atomicbucket.State, *Plan, Verdict) {
	sl, label := p.home, p.fingerprint|uint64(tier%MaxTiers)<<tierShift
	for i := uint64(0); i < t.hits; { // a loop without a last statement is a fifth faster where records are close
		s := sl.state.Load()
		if sl.key.Load() != label { // the key after the state: R1
			if s == 0 {
				break // R5
			}
			i++
			sl = p.at(i)
			continue
		}
		plan := t.plan.Load() // after the state: R9
		if s.Tag() != plan.live {
			if s.IsLive() {
				break // it follows another plan
			}
			i++
			sl = p.at(i)
			continue
		}
		quota := &plan.quotas[tier%MaxTiers]
		if n > quota.Tokens || uint64(now)-t.watermark.Load() > plan.trust || // late, or far ahead: R7
			t.planned.Load() != plan.planned { // or the plan is not the present one: R21
			break
		}
		tick, demand := plan.bucket.Ticks(now), quota.Demand(n)
		payload, ok := plan.bucket.Take(s.Record(), tick, demand)
		if !ok {
			if sl.state.Load() == s { // R2
				return s, plan, plan.refusal(payload - tick - demand.Limit)
			}
		} else if s, ok = sl.state.Move(s, payload); ok {
			return s, plan, Admitted
		}
		// The same slot again, at once: its line is here now.
	}
	return 0, nil, Undecided
}

// Miss is [Table.Take] after [Table.Hit] was undecided, or [Table.Decide] if status is not nil: it gives the key a
// record, or settles one that is tentative, or tells why it cannot. The caller keeps the table alive.
func (t *Table) Miss(p Place, now int64, n uint64, tier uint8, status *atomicbucket.Status) Outcome {
	return t.MissQuota(p, now, n, TierQuota(tier), status)
}

// MissQuota is Miss for any quota.
func (t *Table) MissQuota(p Place, now int64, n uint64, q Quota, status *atomicbucket.Status) Outcome {
	return t.miss(p, request{now: now, clock: now, n: n, quota: q, status: status})
}

// hitOf is Hit, HitTier or HitQuota.
func (t *Table) hitOf(p Place, now int64, n uint64, q Quota) (atomicbucket.State, *Plan, Verdict) {
	if q.IsTier() {
		if t.prices != nil {
			return t.HitTier(p, now, n, q)
		}
		return t.Hit(p, now, n, q.Tier())
	}
	return t.HitQuota(p, now, n, q)
}

func (t *Table) miss(p Place, r request) Outcome {
	if t.hits == 0 { // then Hit has not looked
		if o := t.hit(p, &r); o.Verdict != Undecided {
			t.concludes(&r, &o)
			return o
		}
	}
	ended := uint32(0)
	for now, clock := r.now, r.clock; ; {
		r.now, r.clock = t.follow(now, clock)
		r.followed, r.beyond = true, false
		o := t.insert(p, &r)
		if r.beyond {
			now, clock = t.believed(now, clock)
		}
		ended += o.ended
		if o.Verdict == TooMuch && r.mode == taking && o.Plan.refusals != Nothing {
			t.penalizeTooMuch(p, r)
		}
		if o.Verdict == Undecided {
			o = t.hit(p, &r)
		}
		if o.Verdict != Undecided {
			o.ended = ended
			t.concludes(&r, &o)
			return o
		}
		t.shard(p).retries.Add(1)
	}
}

// hit takes from the key's live record, whatever the algorithm.
func (t *Table) hit(p Place, r *request) Outcome {
	if r.mode >= charging {
		return t.chargeRecord(p, r)
	}
	for {
		record, plan, sl := t.record(p)
		quota := plan.granted(r.quota)
		if sl == nil || r.n > quota.Tokens || uint64(r.now)-t.watermark.Load() > plan.ahead(r) { // R7
			return undecided
		}
		demand, seen := quota.Demand(r.n), t.view(p, record, plan, quota.Token, r.now, r.clock)
		if payload, ok := plan.take(seen.Record, r.now, demand); !ok && plan.refusals != Nothing && r.mode == taking {
			if o := t.penalize(p, seen, plan, sl, r, quota); o.Verdict != Undecided {
				return o
			}
		} else if !ok && seen.speeds() && r.mode == taking {
			if t.speed(p, sl, seen, plan, r) {
				continue
			}
		} else if !ok {
			verdict := plan.refused(seen, r.now, demand)
			room := false
			if r.status != nil {
				*r.status = plan.statusOf(seen, r.now, demand)
				room = r.status.RetryAfter == 0 // by an exchange beside this: R10
			}
			if sl.state.Load() == record.State && !room { // R2
				return Outcome{State: seen.State, Plan: plan, At: r.now, Verdict: verdict}
			}
		} else if plan.flush(record, r.now, &sl.state) { // R10
			if r.status != nil { // before the move: afterwards the ring may have gone on
				*r.status = plan.status(seen.After(payload), r.now, quota.Demand(0))
			}
			if ok = t.entries == nil; !ok {
				payload, ok = t.enter(r, sl, record.State, payload, demand.Cost)
			}
			if !ok {
				return t.noEntry(p, record.State, plan, r.now)
			}
			t.lead(r.now, r.clock)
			t.relabel(p, sl, r.quota)
			if after, ok := t.move(sl, seen, plan, payload, r.now); ok {
				plan.forget(t.shard(p).counters, record.State, r.now)
				t.entered(r)
				return Outcome{State: after, Plan: plan, At: r.now, Verdict: Admitted}
			}
		}
		t.shard(p).retries.Add(1)
	}
}
