package shard

import (
	"runtime"

	"github.com/weir-go/weir/atomicbucket"
)

// An Occupancy counts the slots of a table by their states. While the table is in use, the numbers may come from
// different moments.
type Occupancy struct {
	NeverUsed uint64 // since the table was made
	Free      uint64
	Claimed   uint64 // a call is making a record in the slot, or was making one when its process died
	Tentative uint64 // it is undecided whether the record is its key's only one
	Live      uint64 // records, idle ones included
}

// Occupancy reads every slot and counts it.
func (t *Table) Occupancy() (o Occupancy) {
	defer runtime.KeepAlive(t)
	o.count(t.memory.slots)
	return o
}

func (o *Occupancy) count(slots []slot) {
	for i := range slots {
		o.add(slots[i].state.Load())
	}
}

func (o *Occupancy) add(s atomicbucket.State) {
	switch s.Tag() {
	case atomicbucket.NeverUsed:
		o.NeverUsed++
	case atomicbucket.Free:
		o.Free++
	case atomicbucket.Claimed:
		o.Claimed++
	case atomicbucket.Tentative:
		o.Tentative++
	default:
		o.Live++
	}
}
