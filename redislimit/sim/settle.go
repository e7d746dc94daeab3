package sim

import "time"

// settle counts first and tells the store later. A node only talks about keys that it was asked
// about since it last did.
type settle struct {
	*world
	interval, period int64 // ns; the period is the window
	limit            uint64
	phases           []int64
	numbers          map[uint64]uint32 // of the nodes' counts
	counts           []count
	totals           []total
}

// A count is a node's of a key.
type count struct {
	window  int64
	known   uint64 // of all nodes, when it last heard of it
	own     uint64 // not in known
	told    uint64 // of those, to the store, in the window of that name
	about   int64
	answer  uint64
	talking bool
}

// A total is the store's: of the two latest windows, because the nodes' clocks differ.
type total struct {
	windows [2]int64
	counts  [2]uint64
}

const (
	settleSend  = iota // at the node
	settleReach        // at the store
	settleBack         // at the node
	settleLost         // at the node
)

func newSettle(w *world, interval time.Duration) *settle {
	w.window = int64(w.scenario.Rate.Period() / time.Microsecond)
	return &settle{
		world: w, interval: int64(interval), period: int64(w.scenario.Rate.Period()), limit: uint64(w.scenario.Rate.Tokens()),
		phases: w.phases(int64(interval)), numbers: map[uint64]uint32{}, totals: make([]total, w.scenario.Keys),
	}
}

func (s *settle) arrive(node, key uint32) {
	id := pair(node, key)
	number, known := s.numbers[id]
	if !known {
		number = uint32(len(s.counts))
		s.numbers[id] = number
		s.counts = append(s.counts, count{})
	}
	c := &s.counts[number]
	if window := s.clock(node) / s.period; window != c.window {
		c.window, c.known, c.own = window, 0, 0
	}
	if c.known+c.own < s.limit {
		c.own++
		s.admit(key)
	}
	if !c.talking {
		c.talking = true
		s.queue.put(event{at: s.tick(s.phases[node], s.interval), what: settleSend, node: node, key: key, slot: number})
	}
}

func (s *settle) happen(e event) {
	c := &s.counts[e.slot]
	switch e.what {
	case settleSend:
		c.told, c.about = c.own, c.window
		e.at, e.what = s.now+s.way(), settleReach
		s.queue.put(e)
	case settleReach:
		s.called(e.key)
		c.answer = s.totals[e.key].add(c.about, c.told)
		e.at, e.what = s.now+s.way(), settleBack
		if s.lost() {
			e.at, e.what = s.now+int64(s.scenario.Timeout), settleLost
		}
		s.queue.put(e)
	case settleBack:
		c.talking = false
		if c.window == c.about {
			c.known, c.own = c.answer, c.own-c.told
		}
	case settleLost: // it tells the same again, and they count twice
		c.talking = false
	}
}

// add adds to the count of a window and returns it.
func (t *total) add(window int64, n uint64) uint64 {
	i := window & 1
	if t.windows[i] != window {
		t.windows[i], t.counts[i] = window, 0
	}
	t.counts[i] += n
	return t.counts[i]
}
