package atomicbucket

import "github.com/weir-go/weir/internal/word"

// A Ring holds the ticks of the last requests of a [SlidingLog]: the words that a record has in addition to its state.
// It belongs to its slot as the payload does, and is changed by rule R10 of shard/doc.go. For other algorithms it is
// nil.
//
//	 63    57  56   55                              0
//	+---------+----+---------------------------------+
//	| version |gone| tick, modulo 2^56               |
//	+---------+----+---------------------------------+
//
// version is that of the state for which the entry was made. gone says that the entry no longer counts.
type Ring []word.Word

const (
	entryBits = 56
	entryGone = 1 << entryBits
	entryTick = entryGone - 1
)

// entryOf returns an entry that is made for a state.
func entryOf(s State, tick uint64) uint64 { return s.Version()<<(entryBits+1) | tick&entryTick }

// Clear empties the ring of a claimed slot. No other goroutine writes it: a call that still enters a request of an
// earlier tenure expects an entry of that tenure.
func (r Ring) Clear(claimed State) {
	for i := range r {
		r[i].Store(entryOf(claimed, 0) | entryGone)
	}
}

// A log is an unpacked record of a [SlidingLog]. If its state and its ring disagree, the state is right.
type log struct {
	rule    *SlidingLog
	state   State
	ring    Ring
	newest  uint64 // full tick of the newest request, even if that was refunded
	head    uint64 // its position in the ring
	pending uint64 // entries that are not in the ring yet, all of the tick newest
	kept    uint64 // how many of the newest entries count; older ones do not, whatever the ring says
}

// position returns the position of the entry that is behind entries older than the newest.
func (g *log) position(behind uint64) uint64 {
	if behind > g.head {
		behind -= g.rule.size
	}
	return g.head - behind
}

// tick returns the tick of the entry that is behind entries older than the newest, and whether it counts.
func (g *log) tick(behind uint64) (tick uint64, ok bool) {
	if behind < g.pending {
		return g.newest, true
	}
	if behind >= g.kept || g.ring == nil { // without a ring, the key has one request at most
		return 0, false
	}
	return g.of(g.ring[g.position(behind)].Load())
}

// of returns the full tick of an entry, and whether the entry counts.
func (g *log) of(entry uint64) (tick uint64, ok bool) {
	return g.newest - (g.newest-entry)&entryTick, entry&entryGone == 0
}

// left returns how many ticks remain until an entry leaves the window. behind is how many entries are newer than it.
// left returns 0 if the entry has left, or does not exist.
func (g *log) left(behind, now uint64) uint64 {
	tick, ok := g.tick(behind)
	if !ok {
		return 0
	}
	return g.rule.left(tick, now)
}

// since returns how many entries have the given tick or a later one. It is a binary search: entries are in the order of
// their ticks, and all entries behind a gone one are gone. A concurrent exchange only makes entries older. So there was
// a moment during the call at which the result was right.
func (g *log) since(tick uint64) uint64 {
	low, high := uint64(0), g.kept // the first low entries are that late, and none from high on is
	for low < high {
		middle := (low + high) / 2
		if at, ok := g.tick(middle); ok && int64(at-tick) >= 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// used returns how many tokens are in the window.
func (g *log) used(now uint64) uint64 { return g.since(now - g.rule.length + 1) }

// usedAt returns how many of the tokens in the window have the given tick.
func (g *log) usedAt(tick, now uint64) uint64 {
	used := g.used(now)
	later := min(g.since(tick+1), used)
	return max(min(g.since(tick), used), later) - later
}

// flush enters the last change, which only the state holds, in the ring. It reports false if the slot holds another
// state by now.
func (g *log) flush(at *Word) bool {
	want := entryOf(g.state, g.newest)
	for behind := range g.pending {
		entry := &g.ring[g.position(behind)]
		for {
			e := entry.Load()
			if e == want {
				break
			}
			if at.Load() != g.state { // R10: of a request
				return false
			}
			if entry.CompareAndSwap(e, want) {
				break
			}
		}
	}
	return g.kept == g.rule.size || g.drop(at)
}

// drop marks the entries that are not kept as gone, the oldest first, so that at every moment all entries behind a gone
// one are gone. It reports false if the slot holds another state by now.
func (g *log) drop(at *Word) bool {
	last := g.kept
	for last < g.rule.size && g.ring[g.position(last)].Load()&entryGone == 0 {
		last++
	}
	for behind := last; behind > g.kept; {
		entry := &g.ring[g.position(behind-1)]
		e := entry.Load()
		if at.Load() != g.state { // R10: of a refund
			return false
		}
		if e&entryGone != 0 || entry.CompareAndSwap(e, entryOf(g.state, e)|entryGone) {
			behind--
		}
	}
	return true
}

// exchange corrects the ring after a refund has dropped the oldest entry instead of the refunded one, which has the
// tick tick. hand is the tick of the dropped entry. exchange stores it in the next newer entry, takes that entry's tick
// as the new hand, and so on, until hand is the refunded tick. The entries stay ordered. At every moment, and even if
// the call stops forever, the window has as many entries as it should, and none leaves it too early. So exchange may
// end early: if the version has changed (R10), or if it meets an entry that it cannot have passed.
func (g *log) exchange(behind, hand, tick uint64, at *Word) {
	for behind > 0 && hand != tick {
		behind--
		entry := &g.ring[g.position(behind)]
		for {
			e := entry.Load()
			was, counts := g.of(e)
			if !counts || was == hand {
				break
			}
			if int64(was-tick) > 0 || int64(was-hand) < 0 || at.Load().Version() != g.state.Version() {
				return // after another refund, in another tenure, or after a newer request
			}
			if entry.CompareAndSwap(e, entryOf(g.state, hand)) {
				hand = was
				break
			}
		}
	}
}
