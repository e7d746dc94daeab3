package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// A Verdict is the outcome of [Table.Take].
type Verdict uint8

const (
	// Refused: the bucket has less than the cost. Nothing was written.
	Refused Verdict = iota
	// Admitted: the cost was charged to the key's record.
	Admitted
	// NoRoom: the key has no record, its window is full and the policy
	// refuses. The state returned is the record of the window that will be
	// idle first.
	NoRoom
	// Unrecorded: as NoRoom, but the policy admits. The state returned is
	// what the key's record would be.
	Unrecorded
	// Undecided: nothing was taken; the caller has to go on.
	Undecided
)

// Admits reports whether the verdict lets the request pass.
func (v Verdict) Admits() bool { return v&1 != 0 }

// Take takes cost from the bucket of the key at p, at the time now. It returns
// the state that decided, the record after the take or, when refused, the record
// that refuses; and the time at which it was decided: now, or the mark if that is later.
// Times are nanoseconds from any fixed origin and not negative. The cost is in
// ticks, above 0, and at most the burst.
//
// It is lock-free: a retry means that another call on this window succeeded.
func (t *Table) Take(p Place, now int64, cost uint64) (s atomicbucket.State, at int64, v Verdict) {
	if s, v = t.Hit(p, now, cost); v == Undecided {
		return t.Miss(p, now, cost)
	}
	return s, now, v
}

// Hit is the common case of [Table.Take]: it takes from the key's live record. Without
// one, or if now is out of step with the mark, it is undecided, and [Table.Miss] is
// the rest.
//
// It calls nothing, so that everything stays in registers, and is a step of its own so
// that callers who count nanoseconds can save a call.
func (t *Table) Hit(p Place, now int64, cost uint64) (atomicbucket.State, Verdict) {
	for i := uint64(0); i < t.window; i++ {
		sl := p.at(i)
		if key := sl.key.Load(); key != p.fingerprint {
			if key == 0 && sl.state.Load() == 0 {
				break // R5
			}
			continue
		}
		s := sl.state.Load()
		if !s.IsLive() || sl.key.Load() != p.fingerprint { // the key after the state: R1
			continue
		}
		if uint64(now)-t.mark.Load() > t.skew { // late, or far ahead: R7
			break
		}
		payload, ok := t.rule.Take(s, t.rule.Ticks(now), cost)
		if !ok {
			if sl.state.Load() == s { // R2
				runtime.KeepAlive(t) // its slots may lie outside the Go heap
				return s, Refused
			}
		} else if s, ok = sl.state.Move(s, payload); ok {
			runtime.KeepAlive(t)
			return s, Admitted
		}
		t.shard(p).retries.Add(1)
		i = ^uint64(0) // another call succeeded here: search again from home
	}
	return 0, Undecided
}

// Miss is [Table.Take] after [Table.Hit] was undecided: it gives the key a record, or
// settles one that is tentative, or tells why it cannot.
func (t *Table) Miss(p Place, now int64, cost uint64) (atomicbucket.State, int64, Verdict) {
	for {
		now = t.catchUp(now)
		s, at, v := t.insert(p, now, cost)
		if v == Undecided {
			s, v = t.Hit(p, now, cost)
			at = now
		}
		if v != Undecided {
			runtime.KeepAlive(t)
			return s, at, v
		}
		t.shard(p).retries.Add(1)
	}
}
