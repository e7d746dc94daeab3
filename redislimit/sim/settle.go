package sim

import "time"

// settle is a strategy in which each node counts locally, and later reports its counts to the store.
type settle struct {
	*transport
	interval, period int64 // ns; the period is the window
	limit            uint64
	phases           []int64
	numbers          map[uint64]uint32 // numbers of the nodes' counts
	counts           []count
	totals           []total
}

// A count is a node's count of a key.
type count struct {
	window         int64
	total          uint64 // tokens of all nodes, by the last reply
	unreported     uint64 // the tokens of this node that total does not include
	reported       uint64 // the unreported tokens that the latest report contains
	reportedWindow int64  // the window of the latest report
	answer         uint64
	isReporting    bool
}

// A total is the store's count of a key in each of two windows. Two are necessary because the nodes' clocks differ.
type total struct {
	windows [2]int64
	counts  [2]uint64
}

func newSettle(w *world, interval time.Duration) *settle {
	w.window = int64(w.scenario.Rate.Period / time.Microsecond)
	s := &settle{
		interval: int64(interval), period: int64(w.scenario.Rate.Period), limit: uint64(w.scenario.Rate.Tokens),
		phases: w.phases(int64(interval)), numbers: map[uint64]uint32{}, totals: make([]total, w.scenario.Keys),
	}
	s.transport = newTransport(w, s.handle, s.noteAnswer)
	return s
}

func (s *settle) arrive(node, key uint32, n uint64) {
	id := pair(node, key)
	number, ok := s.numbers[id]
	if !ok {
		number = uint32(len(s.counts))
		s.numbers[id] = number
		s.counts = append(s.counts, count{})
	}
	c := &s.counts[number]
	if window := s.clock(node) / s.period; window != c.window {
		c.window, c.total, c.unreported = window, 0, 0
	}
	if c.total+c.unreported+n <= s.limit {
		c.unreported += n
		s.admit(key, n)
	}
	if !c.isReporting {
		c.isReporting = true
		s.events.put(event{at: s.tick(s.phases[node], s.interval), node: node, key: key, slot: number})
	}
}

func (s *settle) happen(e event) {
	if e.kind != 0 {
		s.transport.happen(e)
		return
	}
	c := &s.counts[e.slot]
	c.reported, c.reportedWindow = c.unreported, c.window
	c.isReporting = s.put(e.node, question{key: e.key, slot: e.slot})
}

// handle handles a count that has reached the store.
func (s *settle) handle(_ uint32, q *question) {
	c := &s.counts[q.slot]
	c.answer = s.totals[q.key].add(c.reportedWindow, c.reported)
}

// noteAnswer ends a report at the node. If the answer was lost, the node reports the same tokens again, so they count
// twice.
func (s *settle) noteAnswer(_ uint32, q *question) {
	c := &s.counts[q.slot]
	c.isReporting = false
	if !q.isFailed && c.window == c.reportedWindow {
		c.total, c.unreported = c.answer, c.unreported-c.reported
	}
}

func (t *total) add(window int64, n uint64) uint64 {
	i := window & 1
	if t.windows[i] != window {
		t.windows[i], t.counts[i] = window, 0
	}
	t.counts[i] += n
	return t.counts[i]
}
