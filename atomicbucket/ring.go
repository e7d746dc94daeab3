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
	entryBits = 56
	entryGone = 1 << entryBits
	entryTick = entryGone - 1
)

// entryOf returns the entry of a tick that is made for a state.
func entryOf(s State, tick uint64) uint64 { return s.Version()<<(entryBits+1) | tick&entryTick }

// Clear empties the ring of a claimed slot. No other goroutine writes the ring: the compare-and-swap of a late call of
// an earlier tenure fails, because it expects an entry of the earlier tenure.
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
	newest  uint64 // full tick of the newest request, even if that request was refunded
	head    uint64 // position of the newest entry in the ring
	pending uint64 // how many entries are not in the ring yet; all have the tick newest
	kept    uint64 // how many of the newest entries count; older ones do not, whatever the ring says
}

// position returns the position of an entry in the ring. The parameter behind is the number of newer entries.
func (g *log) position(behind uint64) uint64 {
	if behind > g.head {
		behind -= g.rule.size
	}
	return g.head - behind
}

// tick returns the tick of an entry, and whether the entry counts. The parameter behind is the number of newer entries.
func (g *log) tick(behind uint64) (tick uint64, ok bool) {
	if behind < g.pending {
		return g.newest, true
	}
	if behind >= g.kept || g.ring == nil { // without a ring, the key has one request at most
		return 0, false
	}
	return g.of(g.ring[g.position(behind)].Load())
}

// The method of unpacks an entry. It returns the full tick of the entry, and whether the entry counts.
func (g *log) of(entry uint64) (tick uint64, ok bool) {
	return g.newest - (g.newest-entry)&entryTick, entry&entryGone == 0
}

// left returns how many ticks remain until an entry leaves the window, 0 if it has left or does not exist. The
// parameter behind is the number of newer entries.
func (g *log) left(behind, now uint64) uint64 {
	tick, ok := g.tick(behind)
	if !ok {
		return 0
	}
	return g.rule.left(tick, now)
}

// since returns how many entries have the given tick or a later one. It is a binary search, because entries are ordered
// by tick and all entries behind a gone entry are gone, too. A concurrent exchange only makes entries older, so the
// result was right at some moment during the call.
func (g *log) since(tick uint64) uint64 {
	low, high := uint64(0), g.kept // entries before index low are that late, and entries from index high on are not
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

func (g *log) used(now uint64) uint64 { return g.since(now - g.rule.length + 1) }

// usedAt returns how many of the tokens in the window have the given tick.
func (g *log) usedAt(tick, now uint64) uint64 {
	used := g.used(now)
	later := min(g.since(tick+1), used)
	return max(min(g.since(tick), used), later) - later
}

// flush writes the last change, which only the state holds so far, to the ring. It returns false if the slot holds
// another state by now.
func (g *log) flush(at *Word) bool {
	want := entryOf(g.state, g.newest)
	for behind := range g.pending {
		entry := &g.ring[g.position(behind)]
		for {
			e := entry.Load()
			if e == want {
				break
			}
			if at.Load() != g.state { // R10: of a request; e was read before
				return false
			}
			if entry.CompareAndSwap(e, want) {
				break
			}
		}
	}
	return g.kept == g.rule.size || g.drop(at)
}

// drop marks all entries except the kept ones as gone, the oldest first. So at every moment, all entries behind a gone
// entry are gone, too. drop returns false if the slot holds another state by now.
func (g *log) drop(at *Word) bool {
	last := g.kept
	for last < g.rule.size && g.ring[g.position(last)].Load()&entryGone == 0 {
		last++
	}
	for behind := last; behind > g.kept; {
		entry := &g.ring[g.position(behind-1)]
		e := entry.Load()
		if at.Load() != g.state { // R10: of a refund; e was read before
			return false
		}
		if e&entryGone != 0 || entry.CompareAndSwap(e, entryOf(g.state, e)|entryGone) {
			behind--
		}
	}
	return true
}

// exchange corrects the ring after a refund, which has dropped the oldest entry instead of the refunded one. The
// parameter hand is the tick of the dropped entry, and tick is the tick of the refunded entry. exchange stores hand in
// the next newer entry, whose previous tick becomes the new hand. It does so until hand is the refunded tick.
//
// The entries stay ordered. At every moment the window has as many entries as it should have, and none leaves it too
// early. So exchange may end before it is complete: if the version has changed (R10), or if a tick is not between hand
// and the refunded tick, because another call wrote the entry.
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
