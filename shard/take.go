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
)

// Admits reports whether the verdict lets the request pass.
func (v Verdict) Admits() bool { return v == Admitted || v == Unrecorded }

// Refuses reports whether the verdict says that the key's record has not the tokens.
func (v Verdict) Refuses() bool { return v <= Doubtful }

// An Outcome is what [Table.Take] has decided.
type Outcome struct {
	State   atomicbucket.State // that decided: the record after the take, or the one that refuses
	Plan    *Plan              // that the state follows
	At      int64              // when it was decided: the time given, or the watermark if that is later
	Verdict Verdict
}

// Take takes n tokens, from 1 on, from the key at p, at the time now: nanoseconds from any
// fixed origin, not negative. The key has the quota of a tier, below [MaxTiers], of the
// present plan.
//
// It is lock-free: a retry means that another call on this probe window succeeded.
func (t *Table) Take(p Place, now int64, n uint64, tier uint8) Outcome {
	defer runtime.KeepAlive(t)
	s, plan, v := t.Hit(p, now, n, tier)
	if v != Undecided {
		return Outcome{s, plan, now, v}
	}
	return t.Miss(p, now, n, tier)
}

// hitLines is how many lines of a probe window Hit searches. In a table that is 0.6 full of live
// records 98 of 100 are there.
const hitLines = 2

// Hit is the common case of a table of token buckets: of any other it is undecided. When
// it is, [Table.Miss] is the rest. The caller keeps the table alive, since its slots may lie
// outside the Go heap.
//
// It calls nothing, so that everything stays in registers, and is a step of its own so
// that callers who count nanoseconds can save a call. It searches the first lines only:
// of a new key, whose whole probe window has to be searched, Miss does that.
func (t *Table) Hit(p Place, now int64, n uint64, tier uint8) (atomicbucket.State, *Plan, Verdict) {
	for i := uint64(0); i < t.hits; i++ {
		sl := p.at(i)
		s := sl.state.Load()
		if sl.key.Load() != p.fingerprint { // the key after the state: R1
			if s == 0 {
				break // R5
			}
			continue
		}
		plan := t.plan.Load() // after the state: R9
		if s.Tag() != plan.live {
			if s.IsLive() {
				break // it follows another plan
			}
			continue
		}
		quota := &plan.quotas[tier%MaxTiers]
		if n > quota.Tokens || uint64(now)-t.watermark.Load() > plan.skew { // late, or far ahead: R7
			break
		}
		tick, demand := plan.bucket.Ticks(now), quota.Demand(n)
		payload, ok := plan.bucket.Take(s, tick, demand)
		if !ok {
			if sl.state.Load() == s { // R2
				return s, plan, plan.refusal(payload - tick - demand.Limit)
			}
		} else if s, ok = sl.state.Move(s, payload); ok {
			return s, plan, Admitted
		}
		i-- // the same slot again, at once: its line is here now
	}
	return 0, nil, Undecided
}

// Miss is [Table.Take] after [Table.Hit] was undecided: it gives the key a record, or
// settles one that is tentative, or tells why it cannot. The caller keeps the table alive.
func (t *Table) Miss(p Place, now int64, n uint64, tier uint8) Outcome {
	if t.rings != nil {
		o, _ := t.TakeLog(p, now, n, tier, false)
		return o
	}
	r := request{now, n, tier}
	if !t.buckets { // then Hit has not looked
		if o := t.hit(p, r); o.Verdict != Undecided {
			return o
		}
	}
	for {
		r.now = t.catchUp(now)
		if o := t.insert(p, r); o.Verdict != Undecided {
			return o
		}
		if o := t.hit(p, r); o.Verdict != Undecided {
			return o
		}
		t.shard(p).retries.Add(1)
	}
}

// hit takes from the key's live record, whatever the algorithm.
func (t *Table) hit(p Place, r request) Outcome {
	for {
		s, plan, sl := t.record(p)
		if sl == nil || r.n > plan.Quota(r.tier).Tokens || uint64(r.now)-t.watermark.Load() > plan.skew { // R7
			return undecided
		}
		payload, ok := plan.take(s, r.now, plan.Quota(r.tier).Demand(r.n))
		if !ok { // record has read the state again: R2
			return Outcome{s, plan, r.now, plan.refused(s, r.now, plan.Quota(r.tier).Demand(r.n))}
		}
		if s, ok = sl.state.Move(s, payload); ok {
			return Outcome{s, plan, r.now, Admitted}
		}
		t.shard(p).retries.Add(1)
	}
}

// Status returns what there is to say about the record that decided, to somebody in a tier
// who asks for n tokens.
func (o Outcome) Status(n uint64, tier uint8) atomicbucket.Status {
	d := o.Plan.quotas[tier%MaxTiers].Demand(n)
	if o.Plan.isBucket {
		return o.Plan.bucket.Status(o.State, o.At, d) // without an indirect call
	}
	return o.Plan.algorithm.Status(o.State, o.At, d)
}

// A request is what a take asks for, and when.
type request struct {
	now  int64
	n    uint64
	tier uint8
}

var undecided = Outcome{Verdict: Undecided}
