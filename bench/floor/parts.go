package floor

import "github.com/weir-go/weir/internal/keyhash"

// These are parts of a floor. Each part includes the loop and the reading of the key. Loop measures these two alone.
type (
	Loop         struct{}
	Hash         struct{ *Floor }
	Swap         struct{ *Floor } // one uncontended compare-and-swap on a word in the nearest cache
	ClockCoarse  struct{ *Floor }
	ClockTSC     struct{}
	ClockPrecise struct{ *Floor }
)

func (Loop) Allow(key string) bool   { return len(key) > 0 }
func (f Hash) Allow(key string) bool { return keyhash.String(f.seed, key) != 0 }
func (f Swap) Allow(key string) bool {
	s := f.hot.Load()
	return f.hot.CompareAndSwap(s, s+uint64(len(key)))
}
func (f ClockCoarse) Allow(key string) bool  { return f.word.Load() < uint64(len(key)) }
func (ClockTSC) Allow(key string) bool       { return readTSC() > uint64(len(key)) }
func (f ClockPrecise) Allow(key string) bool { return f.clock.since() > uint64(len(key)) }
