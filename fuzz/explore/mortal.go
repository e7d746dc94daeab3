//go:build explore

package explore

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
	"github.com/weir-go/weir/shard"
)

// In a mortal scenario every thread is a process of its own that has mapped the table. The first one dies: at every
// step it may be that it never runs again, which the others can know. When all have finished, another process attaches
// and sweeps, and nothing may be left of what the dead one was at (R17, R18).

// observerOf is the number of the process that makes the calls before the threads, and sweeps at the end.
const observerOf = 63

// A process is a thread, as an owner of claims.
type process struct {
	w      *world
	thread int
}

func (p process) Claimant() uint64 { return uint64(p.thread) + 1 }

// Dead tells of the death of another thread, which the one that asks knows from then on. Number 0 is of whoever fixed
// the probe bounds, and lives.
func (p process) Dead(claimant uint64) bool {
	i := int(claimant) - 1
	dead := i >= 0 && i < len(p.w.threads) && p.w.threads[i].dead
	if p.thread < len(p.w.threads) {
		th := p.w.threads[p.thread]
		th.History = interleave.Mix(th.History, interleave.Bit(dead))
	}
	return dead
}

// share makes the table of the world, and those of its threads, of memory that they have in common.
func (w *world) share(cfg shard.Config) (*shard.Table, error) {
	bytes, err := cfg.SharedBytes()
	if err != nil {
		return nil, err
	}
	words := make([]uint64, bytes/8+512)
	skip := -uintptr(unsafe.Pointer(&words[0])) % 4096 / 8
	memory := unsafe.Slice((*byte)(unsafe.Pointer(&words[skip])), bytes)
	if err := cfg.Begin(memory); err != nil {
		return nil, err
	}
	for i := range w.scenario.threads {
		t, err := shard.Map(cfg, shard.Shared{Memory: memory, Owner: process{w, i}})
		if err != nil {
			return nil, err
		}
		t.RestAfter(1)
		w.tables = append(w.tables, t)
	}
	return shard.Map(cfg, shard.Shared{Memory: memory, Owner: process{w, observerOf - 1}})
}

// tableOf returns the table as a thread has it.
func (w *world) tableOf(thread int) *shard.Table {
	if !w.scenario.mortal || len(w.threads) < len(w.tables) { // or the calls before the threads
		return w.table
	}
	return w.tables[thread]
}

// foreign reports whether a word is of one process's own.
func (w *world) foreign(a *word.Word) bool { return w.scenario.mortal && !slices.Contains(w.words, a) }

// die makes a thread one that never runs again.
func (w *world) die(th *thread) {
	th.dead = true
	if w.trace != nil {
		w.trace(fmt.Sprintf("t%d  dies", th.name))
	}
}

// checkDead checks, when all others have finished, that a process which attaches then finds nothing of the dead one's
// after a sweep.
func (w *world) checkDead() error {
	if !w.threads[0].dead {
		return nil
	}
	w.table.Sweep(w.table.Watermark(), nil)
	for i := range w.slots {
		if tag := atomicbucket.State(w.words[2*i].Peek()).Tag(); tag == atomicbucket.Claimed || tag == atomicbucket.Tentative {
			return fmt.Errorf("R17: slot %d is in %v after the sweep, and nobody will publish or settle it", i, tag)
		}
	}
	if lowering := w.probeBounds[0].Peek(); w.scenario.probeBound && lowering > 1 {
		return fmt.Errorf("R18: the word lowering says %#x after the sweep: no sweep lowers probe bounds any more", lowering)
	}
	return w.checkProbeBounds()
}
