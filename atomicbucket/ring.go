package atomicbucket

import "github.com/weir-go/weir/internal/word"

// A Ring has the words that a record has in addition to its state; it is nil if there are none. For a [SlidingLog],
// they hold the ticks of the last requests. For a token bucket with prices, they hold the prices: see [Ring.Price]. A
// Ring belongs to its slot as the payload does. R10 of shard/doc.go says how the ring of a log is changed. An entry of
// a log:
//
//	 63    57  56   55                              0
//	+---------+----+---------------------------------+
//	| version |gone| tick, modulo 2^56               |
//	+---------+----+---------------------------------+
//
// version is the version of the state for which the entry was made. The bit gone is set if the entry no longer counts.
type Ring []word.Word

const (
	tickBits = 56
	goneBit  = 1 << tickBits
	tickMask = goneBit - 1
)

// entryOf returns the entry of a tick that is made for a state.
func entryOf(s State, tick uint64) uint64 { return s.Version()<<(tickBits+1) | tick&tickMask }

// Clear empties the ring of a claimed slot. No other goroutine writes the ring: the compare-and-swap of a late call of
// an earlier tenure fails, because it expects an entry of the earlier tenure.
func (r Ring) Clear(claimed State) {
	for i := range r {
		r[i].Store(entryOf(claimed, 0) | goneBit)
	}
}

// A log is an unpacked record of a [SlidingLog]. If its state and its ring disagree, the state is right.
type log struct {
	rule    *SlidingLog
	state   State
	ring    Ring
	newest  uint64 // full tick of the newest request, even if that request was refunded
	head    uint64 // position of the newest entry in the ring
	pending uint64 // how many entries are not in the ring yet; all have the tick newest
	count   uint64 // how many of the newest entries count; older entries do not, whatever the ring says
}

// position returns the position in the ring of the entry with a rank: the number of newer entries.
func (g *log) position(rank uint64) uint64 {
	if rank > g.head {
		rank -= g.rule.size
	}
	return g.head - rank
}

// tick returns the tick of the entry with the given rank, and whether the entry counts.
func (g *log) tick(rank uint64) (tick uint64, ok bool) {
	if rank < g.pending {
		return g.newest, true
	}
	if rank >= g.count || g.ring == nil { // without a ring, the key has one request at most
		return 0, false
	}
	return g.unpackEntry(g.ring[g.position(rank)].Load())
}

// unpackEntry returns the full tick of an entry, and whether the entry counts.
func (g *log) unpackEntry(entry uint64) (tick uint64, ok bool) {
	return g.newest - (g.newest-entry)&tickMask, entry&goneBit == 0
}

// ticksLeft returns how many ticks remain until the entry with the given rank leaves the window, 0 if it has left or
// does not exist.
func (g *log) ticksLeft(rank, now uint64) uint64 {
	tick, ok := g.tick(rank)
	if !ok {
		return 0
	}
	return g.rule.ticksLeft(tick, now)
}

// countSince returns how many entries have the given tick or a later one. It is a binary search, because entries are
// ordered by tick and all entries older than a gone entry are gone, too. A concurrent exchange only makes entries
// older, so the result was right at some moment during the call.
func (g *log) countSince(tick uint64) uint64 {
	low, high := uint64(0), g.count // entries before index low are that late, and entries from index high on are not
	for low < high {
		middle := (low + high) / 2
		if entryTick, ok := g.tick(middle); ok && int64(entryTick-tick) >= 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

func (g *log) used(now uint64) uint64 { return g.countSince(now - g.rule.length + 1) }

// usedAt returns how many of the tokens in the window have the given tick.
func (g *log) usedAt(tick, now uint64) uint64 {
	used := g.used(now)
	later := min(g.countSince(tick+1), used)
	return max(min(g.countSince(tick), used), later) - later
}

// flush writes the last change, which only the state holds so far, to the ring. It returns false if the slot holds
// another state by now.
func (g *log) flush(word *Word) bool {
	want := entryOf(g.state, g.newest)
	for rank := range g.pending {
		entry := &g.ring[g.position(rank)]
		for {
			e := entry.Load()
			if e == want {
				break
			}
			if word.Load() != g.state { // R10, for a request; e was read before
				return false
			}
			if entry.CompareAndSwap(e, want) {
				break
			}
		}
	}
	return g.count == g.rule.size || g.drop(word)
}

// drop marks all entries except the newest g.count ones as gone, the oldest first. So at every moment, all entries
// older than a gone entry are gone, too. drop returns false if the slot holds another state by now.
func (g *log) drop(word *Word) bool {
	last := g.count
	for last < g.rule.size && g.ring[g.position(last)].Load()&goneBit == 0 {
		last++
	}
	for rank := last; rank > g.count; {
		entry := &g.ring[g.position(rank-1)]
		e := entry.Load()
		if word.Load() != g.state { // R10, for a refund; e was read before
			return false
		}
		if e&goneBit != 0 || entry.CompareAndSwap(e, entryOf(g.state, e)|goneBit) {
			rank--
		}
	}
	return true
}

// exchange corrects the ring after a refund, which has dropped the oldest entry instead of the refunded one. The
// parameter carry is the tick of the dropped entry, and tick is the tick of the refunded entry. The entries with a rank
// below the parameter rank still count. exchange stores carry in the oldest of them, whose previous tick becomes the
// new carry. It continues with newer entries until carry is the refunded tick.
//
// The entries stay ordered. At every moment the window has as many entries as it should have, and none leaves it too
// early. So exchange may end before it is complete: if the version has changed (R10), or if a tick is not between carry
// and the refunded tick, because another call wrote the entry.
func (g *log) exchange(rank, carry, tick uint64, word *Word) {
	for rank > 0 && carry != tick {
		rank--
		entry := &g.ring[g.position(rank)]
		for {
			e := entry.Load()
			old, ok := g.unpackEntry(e)
			if !ok || old == carry {
				break
			}
			if int64(old-tick) > 0 || int64(old-carry) < 0 || word.Load().Version() != g.state.Version() {
				return // after another refund, in another tenure, or after a newer request
			}
			if entry.CompareAndSwap(e, entryOf(g.state, carry)) {
				carry = old
				break
			}
		}
	}
}
