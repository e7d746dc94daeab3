package shard

import (
	"unsafe"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/word"
)

// A ring is the times of the last requests of a record with a sliding log. It belongs to
// its slot as the payload does, and is changed by the algorithm R10 of doc.go.
//
//	 63    57  56   55                              0
//	+---------+----+---------------------------------+
//	| version |gone| tick, modulo 2^56               |
//	+---------+----+---------------------------------+
type ring struct {
	algorithm *atomicbucket.SlidingLog
	state     atomicbucket.State
	log       atomicbucket.Log
	words     []word.Word
}

const (
	entryBits = 56
	entryGone = 1 << entryBits
)

// ring returns the ring of a slot, as a record of the state with a log has it.
func (t *Table) ring(sl *slot, algorithm *atomicbucket.SlidingLog, s atomicbucket.State, now uint64) ring {
	return ring{algorithm, s, algorithm.Unpack(s, now), t.entries(sl)}
}

// entries returns the words of a slot's ring.
func (t *Table) entries(sl *slot) []word.Word {
	number := (uintptr(unsafe.Pointer(sl)) - uintptr(unsafe.Pointer(t.first))) / slotBytes
	first := unsafe.Add(unsafe.Pointer(&t.rings.slots[0]), number*uintptr(t.ringWords)*8)
	return unsafe.Slice((*word.Word)(first), t.ringSize)
}

// clear empties the ring of a claimed slot. Nobody else writes it: who still fills it for an
// earlier tenure expects an entry of that.
func (t *Table) clear(sl *slot, claimed atomicbucket.State) {
	if t.rings == nil {
		return
	}
	entries := t.entries(sl)
	for i := range entries {
		entries[i].Store(claimed.Version()<<(entryBits+1) | entryGone)
	}
}

// position returns where the entry is that is so many behind the newest.
func (r *ring) position(behind uint64) uint64 {
	if behind > r.log.Head {
		behind -= uint64(len(r.words))
	}
	return r.log.Head - behind
}

// time returns the tick of the request that is so many behind the newest, and whether
// there is one.
func (r *ring) time(behind uint64) (tick uint64, ok bool) {
	switch {
	case !r.log.Emptied && behind < r.log.Pending:
		return r.log.Newest, true
	case r.log.Emptied && behind >= uint64(len(r.words))-r.log.Pending:
		return 0, false
	}
	e := r.words[r.position(behind)].Load()
	if e&entryGone != 0 {
		return 0, false
	}
	return r.log.Newest - (r.log.Newest-e)&(entryGone-1), true
}

// left returns how many ticks it is until the request that is so many behind the
// newest leaves the window, 0 if there is none in it.
func (r *ring) left(behind, now uint64) uint64 {
	if behind >= uint64(len(r.words)) {
		return 0
	}
	tick, ok := r.time(behind)
	if !ok {
		return 0
	}
	return r.algorithm.Left(tick, now)
}

// used returns how many requests are in the window: a search by halves, since they leave
// it in the order of the ring.
func (r *ring) used(now uint64) uint64 {
	low, high := uint64(0), uint64(len(r.words)) // the first low are in it, from high on none is
	for low < high {
		if middle := (low + high) / 2; r.left(middle, now) > 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// fill enters in the ring what is pending. It reports false when the state is no longer
// what the slot holds.
func (r *ring) fill(sl *slot) bool {
	for i := range r.log.Pending {
		behind := i
		if r.log.Emptied {
			behind = uint64(len(r.words)) - 1 - i
		}
		entry := &r.words[r.position(behind)]
		for {
			e := entry.Load()
			want := r.state.Version()<<(entryBits+1) | r.log.Newest&(entryGone-1)
			if r.log.Emptied {
				want = e | entryGone
			}
			if e == want {
				break
			}
			if sl.state.Load() != r.state {
				return false
			}
			if entry.CompareAndSwap(e, want) {
				break
			}
		}
	}
	return true
}

// read returns what there is to say about the record to somebody who asks for d, at an
// instant that is the tick now.
func (r *ring) read(nanos int64, now uint64, d atomicbucket.Demand) atomicbucket.Status {
	used := r.used(now)
	status := atomicbucket.Status{Remaining: d.Limit - min(used, d.Limit)}
	if used > 0 {
		status.ResetAfter = r.algorithm.Wait(nanos, r.left(used-1, now))
	}
	if d.Cost > 0 && d.Cost > status.Remaining {
		status.RetryAfter = r.algorithm.Wait(nanos, r.left(d.Limit-d.Cost, now))
	}
	return status
}
