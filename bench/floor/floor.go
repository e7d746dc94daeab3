// Package floor implements the minimum of work of an exact limiter. A floor compares no keys, uses one slot for a key,
// and makes no decisions. It is measured like a limiter, with the same keys, loop and table size.
package floor

import (
	"math/bits"
	"sync/atomic"

	"github.com/weir-go/weir/internal/keyhash"
)

// A record is a slot. It is as large as a slot of weir.
type record struct{ state, _ atomic.Uint64 }

// A Floor contains what all floors use.
type Floor struct {
	seed  keyhash.Seed
	table []record
	clock Clock
	word  atomic.Uint64 // of the coarse clock, which stands still
	_     [56]byte
	hot   atomic.Uint64
	_     [56]byte
}

// New returns floors with a table of slots of 16 bytes each, in huge pages if the system has them. The returned
// function frees the table.
func New(clock Clock, slots uint64) (*Floor, func(), error) {
	memory, release, err := Map(slots*16, true)
	if err != nil {
		return nil, nil, err
	}
	return &Floor{seed: keyhash.NewSeed(), table: records(memory), clock: clock}, release, nil
}

// slot returns the record of a key, with weir's own hash. A multiplication scales the hash, because the table's size is
// not a power of two.
func (f *Floor) slot(key string) *atomic.Uint64 {
	i, _ := bits.Mul64(keyhash.String(f.seed, key), uint64(len(f.table)))
	return &f.table[i].state
}

// These floors are separate types. With a single type, each call would need a switch.
type (
	// AdmitCoarse, AdmitTSC and AdmitPrecise hash, read the clock, and repeat a compare-and-swap until it succeeds.
	AdmitCoarse  struct{ *Floor }
	AdmitTSC     struct{ *Floor }
	AdmitPrecise struct{ *Floor }
	// RefuseCoarse, RefuseTSC and RefusePrecise hash, read the clock, and load.
	RefuseCoarse  struct{ *Floor }
	RefuseTSC     struct{ *Floor }
	RefusePrecise struct{ *Floor }
	// Hot repeats a compare-and-swap on one word until it succeeds.
	Hot struct{ *Floor }
)

// charge adds to the word, as an admitted request does.
func charge(w *atomic.Uint64, now uint64) bool {
	for {
		s := w.Load()
		if w.CompareAndSwap(s, s+now|1) {
			return true
		}
	}
}

// empty reads the word and uses the time, like the check of a limiter. But it always returns false.
func empty(w *atomic.Uint64, now uint64) bool { return w.Load() > now>>1|1<<62 }

func (f AdmitCoarse) Allow(key string) bool   { return charge(f.slot(key), f.word.Load()) }
func (f AdmitTSC) Allow(key string) bool      { return charge(f.slot(key), readTSC()) }
func (f AdmitPrecise) Allow(key string) bool  { return charge(f.slot(key), f.clock.since()) }
func (f RefuseCoarse) Allow(key string) bool  { return empty(f.slot(key), f.word.Load()) }
func (f RefuseTSC) Allow(key string) bool     { return empty(f.slot(key), readTSC()) }
func (f RefusePrecise) Allow(key string) bool { return empty(f.slot(key), f.clock.since()) }
func (f Hot) Allow(string) bool               { return charge(&f.hot, 1) }
