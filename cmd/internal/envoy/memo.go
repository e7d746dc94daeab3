package envoy

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
)

// A memo remembers counters in a store that have exceeded their limits in a fixed window. Until the window ends,
// requests of such a counter are refused without a call to the store, and their hits are not counted. The number of
// places is fixed: a later counter replaces an earlier counter at the same place. A memo is safe for concurrent use. A
// nil memo remembers nothing.
type memo struct {
	places []atomic.Pointer[exceeded]
	seed   maphash.Seed

	hits, misses, overwritten atomic.Uint64 // lookups, and counters replaced by other counters
}

// exceeded is a counter over its limit, with the number of its hits. Before the end of the window, the number falls
// only if hits are given back.
type exceeded struct {
	table table
	key   string
	hits  uint64
	until time.Time // the end of the window
}

// memoBytes is the memory of a place and its counter. A counter's key usually has about fifty bytes.
const memoBytes = 128

// newMemo returns a memo of at most size bytes, or nil if no place fits.
func newMemo(size int) *memo {
	if size < memoBytes {
		return nil
	}
	places := 1 << (bits.Len(uint(size/memoBytes)) - 1)
	return &memo{places: make([]atomic.Pointer[exceeded], places), seed: maphash.MakeSeed()}
}

func (m *memo) place(a *ask) *atomic.Pointer[exceeded] {
	hash := maphash.String(m.seed, a.counter.text) ^ maphash.Comparable(m.seed, a.limit.Window)
	return &m.places[hash&uint64(len(m.places)-1)]
}

// answers decides an ask if it can: the hits of a remembered counter must exceed the ask's limit. It reports whether it
// has decided.
func (m *memo) answers(a *ask, now time.Time) bool {
	if m == nil || a.back || a.hits == 0 || a.table == nil || a.limit.Algorithm != engine.AlgorithmFixedWindow {
		return false
	}
	known := m.place(a).Load()
	if known == nil || known.key != a.counter.text || known.table != a.table || !now.Before(known.until) ||
		known.hits+a.hits <= a.most() {
		m.misses.Add(1)
		return false
	}
	m.hits.Add(1)
	a.over, a.remembered, a.before, a.after = true, true, known.hits, known.hits+a.hits
	a.reset = known.until.Sub(now)
	return true
}

// note remembers the counter of an ask if the store's decision shows that the counter has exceeded its limit.
func (m *memo) note(a *ask, now time.Time) {
	switch {
	case m == nil || a.table == nil:
	case a.back:
		m.forget(a)
	case a.over && a.charged > 0 && a.limit.Algorithm == engine.AlgorithmFixedWindow:
		before := m.place(a).Swap(&exceeded{
			a.table, a.counter.text, a.after, now.Add(a.reset),
		})
		if before != nil {
			m.overwritten.Add(1)
		}
	}
}

// counters returns those statistics of envoyproxy/ratelimit's cache that have a meaning here. The other statistics have
// no meaning, because nothing in a memo expires or is moved.
func (m *memo) counters(now time.Time) []Counter {
	if m == nil {
		return nil
	}
	var entries uint64
	for i := range m.places {
		if known := m.places[i].Load(); known != nil && now.Before(known.until) {
			entries++
		}
	}
	const cache = "ratelimit.localcache."
	hits, misses := m.hits.Load(), m.misses.Load()
	return []Counter{
		{cache + "hitCount", hits, true}, {cache + "missCount", misses, true}, {cache + "lookupCount", hits + misses, true},
		{cache + "overwriteCount", m.overwritten.Load(), true}, {cache + "entryCount", entries, true},
	}
}

// forget removes the counter of an ask. It is called when hits of the counter have been given back.
func (m *memo) forget(a *ask) {
	if m == nil {
		return
	}
	place := m.place(a)
	if known := place.Load(); known != nil && known.key == a.counter.text && known.table == a.table {
		place.CompareAndSwap(known, nil)
	}
}
