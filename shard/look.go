package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// Look returns the record of the key at p and the time to judge it by: now, or
// the mark if now is late. Of a key without a record it returns a full bucket. It takes
// nothing; but a leap of time is believed, as in Take.
func (t *Table) Look(p Place, now int64) (atomicbucket.State, int64) {
	defer runtime.KeepAlive(t)
	for at := t.catchUp(now); ; {
		s, _ := t.record(p)
		if s == 0 {
			s = atomicbucket.NewState(atomicbucket.Live, 0, t.rule.Ticks(at))
		}
		before := at
		if at = t.catchUp(now); at-before <= int64(t.skew) {
			return s, at
		} // time leapt while the record was looked for: it may be too old to judge
	}
}

// Reset makes the bucket of the key at p full, by forgetting its record. A take
// that is under way is decided before or after the reset. It reports whether
// there was a record.
func (t *Table) Reset(p Place) bool {
	defer runtime.KeepAlive(t)
	for {
		s, sl := t.record(p)
		if sl == nil {
			return false
		}
		if sl.state.Free(s) {
			return true
		}
		t.shard(p).retries.Add(1)
	}
}

// record returns the live record of the key at p and its slot, or 0 and nil. A
// tentative record is none yet: nothing has been admitted by it.
func (t *Table) record(p Place) (atomicbucket.State, *slot) {
	for i := uint64(0); i < t.window; i++ {
		sl := p.at(i)
		s := sl.state.Load() // R1
		if s == 0 {
			break // R5
		}
		if !s.IsLive() || sl.key.Load() != p.fingerprint {
			continue
		}
		if sl.state.Load() == s { // R2
			return s, sl
		}
		i = ^uint64(0) // it changed: search again from home
	}
	return 0, nil
}
