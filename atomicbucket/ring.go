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

// A log is a record of a [SlidingLog], unpacked.
type log struct {
	rule    *SlidingLog
	state   State
	ring    Ring
	newest  uint64 // tick of the newest request, in full; also if that was refunded
	head    uint64 // its position in the ring
	pending uint64 // entries that are not in the ring yet, all of the tick newest
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
	if g.ring == nil { // the record of a key that has one request, or none
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
	if behind >= g.rule.size {
		return 0
	}
	tick, ok := g.tick(behind)
	if !ok {
		return 0
	}
	return g.rule.left(tick, now)
}

// used returns how many tokens are in the window: a search by halves, since the entries leave it in the order of the
// ring. Refunds beside it make it no less right: they only lower the number, by one at a time, so there was a moment
// at which it was what is returned.
func (g *log) used(now uint64) uint64 {
	low, high := uint64(0), g.rule.size // the first low are in it, from high on none is
	for low < high {
		if middle := (low + high) / 2; g.left(middle, now) > 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// flush enters in the ring what is pending. It reports false when the state is no longer what the slot holds.
func (g *log) flush(at *Word) bool {
	want := entryOf(g.state, g.newest)
	for behind := range g.pending {
		entry := &g.ring[g.position(behind)]
		for {
			e := entry.Load()
			if e == want {
				break
			}
			if at.Load() != g.state { // R10
				return false
			}
			if entry.CompareAndSwap(e, want) {
				break
			}
		}
	}
	return true
}

// again returns the log as its slot holds it now, with nothing pending. ok is false when the record is not the one of
// g any more: the version is another, or the record was forgotten. What is read of the ring afterwards is of this
// state as long as [log.still] says so (R10).
func (g *log) again(now uint64, at *Word) (h log, ok bool) {
	for {
		s := at.Load()
		if !s.IsLive() || s.Version() != g.state.Version() {
			return log{}, false
		}
		if h = g.rule.unpack(Record{s, g.ring}, now); h.flush(at) {
			h.pending = 0
			return h, true
		}
	}
}

// still reports whether the slot holds the state of g. A refund reads an entry, then asks this, then changes the entry
// by a compare-and-swap: so the entry was one of this record, and at this position.
func (g *log) still(at *Word) bool { return at.Load() == g.state }

// drop takes the oldest entry out of the window and reports whether there was one: the number of tokens that are
// used falls by one. It returns the log by which it was found, how far behind the newest it was, and its tick.
func (g *log) drop(now uint64, at *Word) (h log, behind, tick uint64, ok bool) {
	for {
		h, ok := g.again(now, at)
		if !ok {
			return log{}, 0, 0, false
		}
		used := h.used(now)
		if used == 0 {
			return log{}, 0, 0, false
		}
		entry := &h.ring[h.position(used-1)]
		e := entry.Load()
		tick, counts := h.of(e)
		if counts && h.rule.left(tick, now) > 0 && h.still(at) && entry.CompareAndSwap(e, entryOf(h.state, tick)|entryGone) {
			return h, used - 1, tick, true
		}
	}
}

// holds reports whether a request of a tick is in the window.
func (g *log) holds(tick, now uint64) bool {
	used := g.used(now)
	low, high := uint64(0), used // the first low are newer, from high on none is
	for low < high {
		if at, ok := g.tick((low + high) / 2); ok && at > tick {
			low = (low+high)/2 + 1
		} else {
			high = (low + high) / 2
		}
	}
	if low == used {
		return false
	}
	at, ok := g.tick(low)
	return ok && at == tick
}

// exchange makes good that the oldest entry was dropped in the place of one with another tick. What was dropped is in
// hand; it goes into the place of the next newer entry, which is in hand from then on, and so on, until that is the one
// which is to be forgotten. The entries stay in the order of the ring. At every moment, and if the call is stopped for
// ever, the window is as full as it should be and its entries leave it no sooner than they should. It ends early when
// the record is another: what it has not done yet is then lost to the key, never gained.
func (g *log) exchange(behind, hand, tick, now uint64, at *Word) {
	for behind > 0 && hand != tick {
		behind--
		place := g.position(behind)
		for {
			h, ok := g.again(now, at)
			if !ok || h.behind(place) < behind { // requests have gone round the ring since
				return
			}
			entry := &h.ring[place]
			e := entry.Load()
			was, counts := h.of(e)
			if !h.still(at) {
				continue
			}
			if !counts || was == hand {
				break
			}
			if was > tick {
				return // another refund has it in hand
			}
			if entry.CompareAndSwap(e, entryOf(h.state, hand)) {
				hand = was
				break
			}
		}
	}
}

// behind returns how many entries a position is behind the newest.
func (g *log) behind(place uint64) uint64 {
	if place > g.head {
		return g.head + g.rule.size - place
	}
	return g.head - place
}
