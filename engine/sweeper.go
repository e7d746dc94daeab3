package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/sharedfile"
	"github.com/weir-go/weir/shard"
)

const sweepPause = time.Millisecond

// background has the data of a limiter's background goroutines. It does not refer to the limiter, so that a dropped
// limiter can be garbage collected.
type background struct {
	table     *shard.Table
	clock     *clock
	interval  time.Duration
	file      *sharedfile.File      // the file of a shared table, otherwise nil
	fileError atomic.Pointer[error] // why the file was no longer at its path at the last sweep, or nil

	stop     chan struct{}
	stopOnce sync.Once
	running  sync.WaitGroup
}

func (b *background) start() {
	b.stop = make(chan struct{})
	if b.clock.kind == clockCoarse {
		b.clock.coarse.Store(b.clock.exact())
		b.running.Go(func() { b.clock.runCoarse(b.stop) })
	}
	b.running.Go(b.sweep)
}

func (b *background) halt() { b.stopOnce.Do(func() { close(b.stop) }) }

// sweep sweeps the table once per interval. When the table is in use, it also moves the table to huge pages.
func (b *background) sweep() {
	ticker := time.NewTicker(b.interval)
	defer ticker.Stop()
	recalibrate := time.NewTicker(recalibrateEvery)
	defer recalibrate.Stop()
	timer := time.NewTimer(sweepPause)
	defer timer.Stop()
	pause := func() bool {
		timer.Reset(sweepPause)
		select {
		case <-timer.C:
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

func (b *background) checkFile() {
	if b.file == nil {
		return
	}
	if err := b.file.Check(); err != nil {
		b.fileError.Store(&err)
	} else {
		b.fileError.Store(nil)
	}
}
