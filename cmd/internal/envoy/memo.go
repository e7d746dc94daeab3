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
// slots is fixed: a later counter replaces an earlier counter in the same slot. A memo is safe for concurrent use. A
// nil memo remembers nothing.
type memo struct {
	slots []atomic.Pointer[exceededCounter]
	seed  maphash.Seed

	hits, misses, overwritten atomic.Uint64 // lookups, and counters replaced by other counters
}

// An exceededCounter is a counter over its limit, with the number of its hits. Before the end of the window, the number
// falls only if hits are given back.
type exceededCounter struct {
	table     table
	key       string
	hits      uint64
	windowEnd time.Time
}

// memoBytes is the memory of a slot and its counter. A counter's key usually has about fifty bytes.
const memoBytes = 128

// newMemo returns a memo of at most size bytes, or nil if no slot fits.
func newMemo(size int) *memo {
	if size < memoBytes {
		return nil
	}
	slots := 1 << (bits.Len(uint(size/memoBytes)) - 1)
	return &memo{slots: make([]atomic.Pointer[exceededCounter], slots), seed: maphash.MakeSeed()}
}

func (m *memo) slot(c *check) *atomic.Pointer[exceededCounter] {
	hash := maphash.String(m.seed, c.counter.text) ^ maphash.Comparable(m.seed, c.limit.Window)
	return &m.slots[hash&uint64(len(m.slots)-1)]
}

// decide decides a check if it can: the hits of a remembered counter must exceed the check's limit. It reports whether
// it has decided.
func (m *memo) decide(c *check, now time.Time) bool {
	if m == nil || c.isRefund || c.hits == 0 || c.table == nil || c.limit.Algorithm != engine.AlgorithmFixedWindow {
		return false
	}
	entry := m.slot(c).Load()
	if entry == nil || entry.key != c.counter.text || entry.table != c.table || !now.Before(entry.windowEnd) ||
		entry.hits+c.hits <= c.capacity() {
		m.misses.Add(1)
		return false
	}
	m.hits.Add(1)
	c.isOver, c.fromMemo, c.before, c.after = true, true, entry.hits, entry.hits+c.hits
	c.reset = entry.windowEnd.Sub(now)
	return true
}

// note remembers the counter of a check if the store's decision shows that the counter has exceeded its limit.
func (m *memo) note(c *check, now time.Time) {
	switch {
	case m == nil || c.table == nil:
	case c.isRefund:
		m.forget(c)
	case c.isOver && c.charged > 0 && c.limit.Algorithm == engine.AlgorithmFixedWindow:
		old := m.slot(c).Swap(&exceededCounter{
			c.table, c.counter.text, c.after, now.Add(c.reset),
		})
		if old != nil {
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
	for i := range m.slots {
		if entry := m.slots[i].Load(); entry != nil && now.Before(entry.windowEnd) {
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

// forget removes the counter of a check. It is called when hits of the counter have been given back.
func (m *memo) forget(c *check) {
	if m == nil {
		return
	}
	slot := m.slot(c)
	if entry := slot.Load(); entry != nil && entry.key == c.counter.text && entry.table == c.table {
		slot.CompareAndSwap(entry, nil)
	}
}
