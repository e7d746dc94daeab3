package shard

import (
	"math"
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// A Survey says what is in a table, for who looks at it from outside. While the table is used the numbers are not of
// one instant.
type Survey struct {
	Occupancy
	Deserted  uint64 // of the claimed slots: claims of dead owners, until a sweep frees them (R17)
	Indebted  uint64 // of the live records: not idle
	Stats     Stats
	Watermark int64 // a time that has certainly been reached
	Swept     int64 // when the last complete sweep was, or the table was begun
}

// Survey looks at every slot that was ever used, and judges the records at the time now, or at the watermark if now is
// late. It writes nothing: the memory of a table that was mapped may be one that can only be read. It takes some
// nanoseconds a slot.
func (t *Table) Survey(now int64) Survey {
	defer runtime.KeepAlive(t)
	s := Survey{Stats: t.Stats(), Watermark: t.Watermark(), Swept: int64(t.swept.Load())}
	plan, later := t.current(), t.judge(now)
	used := uint64(0)
	for slots := range t.memory.marked() { // R12
		used += uint64(len(slots))
		for i := range slots {
			state := slots[i].state.Load()
			s.add(state)
			switch {
			case state.Tag() == atomicbucket.Claimed && t.deserted(state.Payload()):
				s.Deserted++
			case state.IsLive() && !plan.idle(state, t.Watermark()) && !plan.idle(state, later):
				s.Indebted++
			}
		}
	}
	s.NeverUsed += t.slots - used
	return s
}

// judge returns a time up to now at which what is idle at now is idle. On the payload's circle a record can be judged
// for some skews only: R7. What is not idle at the watermark is so after one step.
func (t *Table) judge(now int64) int64 {
	mark, step := t.Watermark(), leapStep*int64(t.current().skew)
	if mark < 0 || mark > math.MaxInt64-step {
		return mark // words that nobody wrote: R20
	}
	return min(max(now, mark), mark+step)
}
