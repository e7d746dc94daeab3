package engine

import (
	"fmt"

	"github.com/weir-go/weir/shard"
)

// Stats is a snapshot of a limiter. Each number is exact, but the numbers are not all from the same instant. Decisions
// are not counted, because a counter that every request writes would be a bottleneck.
type Stats struct {
	Keys      uint64 // keys that were not idle at the last sweep
	Sweeps    uint64 // number of complete sweeps
	Reclaimed uint64 // idle keys that sweeps have forgotten
	Slots     uint64 // slots of the table
	Shards    int    // shards
	Bytes     uint64 // memory of the table; constant since New

	Evictions  uint64 // keys forgotten although they were not idle (Evict)
	Forgiven   uint64 // tokens that the evicted keys still owed, rounded up for each key
	NoRoom     uint64 // requests refused because there was no slot for the key (Refuse)
	Unrecorded uint64 // requests admitted without a record (Admit)
	Forgotten  uint64 // tokens never released ([Concurrency]), counted at the next take or sweep of the key
	Retries    uint64 // searches that started over because another call had succeeded; other retries do not count

	// FileLost is an error if, at the last sweep, the file of [Shared] was no longer at its path. Processes that start
	// now count in another file, so together they may admit the limit twice.
	FileLost error
}

// Stats returns the limiter's statistics. It reads a few words of each shard.
func (l *Limiter) Stats() Stats {
	l.requireMade()
	s := statsOf(l.table.Stats())
	if err := l.background.fileError.Load(); err != nil {
		s.FileLost = fmt.Errorf("engine: Shared: %w", *err)
	}
	return s
}

func statsOf(s shard.Stats) Stats {
	return Stats{
		Keys:       s.Live,
		Sweeps:     s.Epoch,
		Reclaimed:  s.Reclaimed,
		Slots:      s.Slots,
		Shards:     s.Shards,
		Bytes:      s.Bytes,
		Evictions:  s.Evictions,
		Forgiven:   s.Forgiven,
		NoRoom:     s.NoRoom,
		Unrecorded: s.Unrecorded,
		Forgotten:  s.Forgotten,
		Retries:    s.Retries,
	}
}
