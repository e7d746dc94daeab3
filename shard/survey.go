package shard

import (
	"math"
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// A Survey describes the content of a table, for a program that inspects it. While the table is in use, the numbers may
// come from different moments.
type Survey struct {
	Occupancy
	Deserted  uint64 // claimed slots whose owner is dead, until a sweep frees them (R17)
	Indebted  uint64 // live records that are not idle
	Stats     Stats
	Watermark int64 // a time that has certainly been reached
	Swept     int64 // the time of the last complete sweep, or of the table's start
}

// Survey reads every slot that was ever used, which takes some nanoseconds per slot. It decides whether records are
// idle at the time now, or at the watermark if that is later. It writes nothing, so the memory of a mapped table may be
// read-only.
func (t *Table) Survey(now int64) Survey {
	defer runtime.KeepAlive(t)
	s := Survey{Stats: t.Stats(), Watermark: t.Watermark(), Swept: int64(t.swept.Load())}
	plan, at := t.current(), t.readTime(now)
	marked := uint64(0)
	for slots := range t.memory.markedPages() { // R12
		marked += uint64(len(slots))
		for i := range slots {
			state := slots[i].state.Load()
			s.add(state)
			switch {
			case state.Tag() == atomicbucket.Claimed && t.isDeserted(state.Payload()):
				s.Deserted++
			case state.IsLive() && !plan.idle(state, t.Watermark()) && !plan.idle(state, at):
				s.Indebted++
			}
		}
	}
	s.NeverUsed += t.slots - marked
	return s
}

// readTime returns the time at which records must be read. That is now, or the watermark if it is later, but at most
// four skews after the watermark. Beyond that, distances on the payload's circle would be misread (R7). The upper bound
// changes no result, because every record is idle by then.
func (t *Table) readTime(now int64) int64 {
	watermark, step := t.Watermark(), leapStep*int64(t.current().skew)
	if watermark < 0 || watermark > math.MaxInt64-step {
		return watermark // words that no process wrote: R20
	}
	return min(max(now, watermark), watermark+step)
}
