package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/sharedfile"
	"github.com/weir-go/weir/shard"
)

// sweepRest is how long a background sweep rests after each step through the table.
const sweepRest = time.Millisecond

// background has the data of the goroutines that run in the background of a limiter. It refers to the table and the
// clock, but not to the limiter. So if a limiter is dropped without Close, it can be garbage collected, and its cleanup
// stops these goroutines.
type background struct {
	table    *shard.Table
	clock    *clock
	interval time.Duration
	file     *sharedfile.File      // the file of a shared table, otherwise nil
	lost     atomic.Pointer[error] // why the file was no longer at its path at the last sweep, or nil

	stop     chan struct{}
	stopOnce sync.Once
	running  sync.WaitGroup
}

// start starts the sweeper and, for a coarse clock, the renewal of its word.
func (b *background) start() {
	b.stop = make(chan struct{})
	if b.clock.kind == clockCoarse {
		b.clock.coarse.Store(b.clock.exact())
		b.running.Go(func() { b.clock.runCoarse(b.stop) })
	}
	b.running.Go(b.sweep)
}

// halt makes the goroutines stop, but does not wait for them.
func (b *background) halt() { b.stopOnce.Do(func() { close(b.stop) }) }

// sweep sweeps the table once per interval. When the table is in use, it also moves the table to huge pages.
func (b *background) sweep() {
	ticker := time.NewTicker(b.interval)
	defer ticker.Stop()
	recalibrate := time.NewTicker(recalibrateEvery)
	defer recalibrate.Stop()
	rest := time.NewTimer(sweepRest)
	defer rest.Stop()
	pause := func() bool {
		rest.Reset(sweepRest)
		select {
		case <-rest.C:
			return true
		case <-b.stop:
			return false
		}
	}
	for {
		select {
		case <-ticker.C:
		case <-recalibrate.C:
			if b.clock.counter != nil {
				b.clock.counter.recalibrate()
			}
			continue
		case <-b.table.Dense():
			b.table.Collapse(pause)
			continue
		case <-b.stop:
			return
		}
		b.table.SweepEpoch(b.clock.nanos(), pause)
		b.checkFile()
	}
}

// checkFile checks whether the file of a shared table is still at its path, and stores the result.
func (b *background) checkFile() {
	if b.file == nil {
		return
	}
	if err := b.file.Check(); err != nil {
		b.lost.Store(&err)
	} else {
		b.lost.Store(nil)
	}
}
