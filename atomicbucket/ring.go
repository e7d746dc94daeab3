package atomicbucket

import "github.com/weir-go/weir/internal/word"

// A Ring is the words behind a record's state: the ticks of its last requests, of a [SlidingLog]. It belongs to
// its slot as the payload does, and is changed by the rule R10 of shard/doc.go. Other algorithms have none: their
// Ring is nil.
//
//	 63    57  56   55                              0
//	+---------+----+---------------------------------+
//	| version |gone| tick, modulo 2^56               |
//	+---------+----+---------------------------------+
//
// version is that of the state at which the entry was made. gone says that the entry counts for nothing.
type Ring []word.Word

const (
	entryBits = 56
	entryGone = 1 << entryBits
	entryTick = entryGone - 1
)

// entryOf returns an entry that is made at a state.
func entryOf(s State, tick uint64) uint64 { return s.Version()<<(entryBits+1) | tick&entryTick }

// Clear empties the ring of a claimed slot. No other goroutine writes it: one that still enters a request of an
// earlier tenure expects an entry of that.
func (r Ring) Clear(claimed State) {
	for i := range r {
		r[i].Store(entryOf(claimed, 0) | entryGone)
	}
}

// A log is a record of a [SlidingLog], unpacked. Its state goes before its ring: what the state says is true, also
// while the ring says something else.
type log struct {
	rule    *SlidingLog
	state   State
	ring    Ring
	newest  uint64 // tick of the newest request, in full; also if that was refunded
	head    uint64 // its position in the ring
	pending uint64 // entries that are not in the ring yet, all of the tick newest
	kept    uint64 // so many of the newest entries count, and none behind them, whatever the ring says
}

// position returns where the entry is that is so many behind the newest.
func (g *log) position(behind uint64) uint64 {
	if behind > g.head {
		behind -= g.rule.size
	}
	return g.head - behind
}

// tick returns the tick of the entry that is so many behind the newest, and whether it counts.
func (g *log) tick(behind uint64) (tick uint64, ok bool) {
	if behind < g.pending {
		return g.newest, true
	}
	if behind >= g.kept || g.ring == nil { // without a ring: the record of a key that has one request, or none
		return 0, false
	}
	return g.of(g.ring[g.position(behind)].Load())
}

// of returns the tick of an entry in full, and whether the entry counts.
func (g *log) of(entry uint64) (tick uint64, ok bool) {
	return g.newest - (g.newest-entry)&entryTick, entry&entryGone == 0
}

// left returns how many ticks it is until the entry that is so many behind the newest leaves the window, 0 if it
// has left, or there is none.
func (g *log) left(behind, now uint64) uint64 {
	tick, ok := g.tick(behind)
	if !ok {
		return 0
	}
	return g.rule.left(tick, now)
}

// since returns how many entries are of a tick or later: a search by halves, since they are in the order of the ring,
// and behind one that is gone all are. An exchange beside it makes it no less right: it only makes entries older, so
// there was a moment at which the number was what is returned.
func (g *log) since(tick uint64) uint64 {
	low, high := uint64(0), g.kept // the first low are so late, from high on none is
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

// usedAt returns how many tokens of a tick are in the window.
func (g *log) usedAt(tick, now uint64) uint64 {
	used := g.used(now)
	later := min(g.since(tick+1), used)
	return max(min(g.since(tick), used), later) - later
}

// flush enters in the ring what only the state says. It reports false when the state is no longer what the slot holds.
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

// drop marks the entries that are not kept as gone, the oldest first: so behind one that is gone all are, at any
// moment. It reports false when the state is no longer what the slot holds.
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

// exchange makes good that an entry was dropped in the place of one of another tick, which was newer. The tick of the
// one that was dropped is in hand; it goes into the place of the next newer entry, whose tick is in hand from then on,
// and so on, until that is the one which is to be forgotten. The entries stay in the order of the ring. At every
// moment, and if the call is stopped for ever, the window is as full as it should be and its entries leave it no
// sooner than they should. So it may end early, when the version is another (R10), or when it meets what it cannot
// have left behind.
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
				return // another refund or tenure, or a newer request
			}
			if entry.CompareAndSwap(e, entryOf(g.state, hand)) {
				hand = was
				break
			}
		}
	}
}
