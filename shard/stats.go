package shard

import (
	"runtime"
	"sync/atomic"
)

// counters are the statistics of one shard. They count rare events, so a take that succeeds at its first attempt writes
// no counter.
type counters struct {
	evictions  atomic.Uint64
	forgiven   atomic.Uint64
	noRoom     atomic.Uint64
	unrecorded atomic.Uint64
	retries    atomic.Uint64
	forgotten  atomic.Uint64
	_          [lineBytes - 6*8]byte
}

// Stats is a snapshot of a table. Each number is exact, but the numbers may come from different moments.
type Stats struct {
	Slots      uint64 // slots in all shards
	Shards     int    // shards
	Bytes      uint64 // memory held for slots, probe bounds, shards and counters; fixed by New
	Live       uint64 // records that were not idle in the last complete sweep
	Epoch      uint64 // complete sweeps
	Reclaimed  uint64 // idle records freed by sweeps
	Evictions  uint64 // records forgotten although they were not idle
	Forgiven   uint64 // tokens that those records still owed, rounded up for each record
	NoRoom     uint64 // requests refused because their probe window was full, or no entry was free
	Unrecorded uint64 // requests admitted, but not recorded, for one of the same two reasons
	Forgotten  uint64 // tokens of limits in flight that were never given back
	Retries    uint64 // searches restarted because another call had succeeded, without hits that were retried in place
}

// Stats returns the table's statistics.
func (t *Table) Stats() Stats {
	defer runtime.KeepAlive(t)
	s := Stats{
		Shards:    len(t.shards),
		Bytes:     t.bytes(),
		Live:      t.live.Load(),
		Epoch:     t.epoch.Load(),
		Reclaimed: t.reclaimed.Load(),
	}
	for i := range t.shards {
		sh := &t.shards[i]
		s.Slots += uint64(len(sh.slots))
		s.Evictions += sh.evictions.Load()
		s.Forgiven += sh.forgiven.Load()
		s.NoRoom += sh.noRoom.Load()
		s.Unrecorded += sh.unrecorded.Load()
		s.Forgotten += sh.forgotten.Load()
		s.Retries += sh.retries.Load()
	}
	return s
}
