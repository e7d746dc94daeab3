package sim

import (
	"math/rand/v2"
	"time"
)

// A world is where one strategy is at work: its clock, the events to come, and the accounts of what it did.
type world struct {
	scenario  *Scenario
	now       int64 // ns since the start
	events    eventQueue
	random    *rand.Rand // of the network and the nodes
	rate      float64    // tokens each µs
	keys      []account
	calls     uint64 // of the store
	questions uint64 // in them
	most      int64  // held by all nodes of one key
	window    int64  // µs; of a strategy with windows, which grants the tokens of a window at its start. Otherwise 0
}

// An account has the simulator's counts for a key.
//
// The excess over an interval is the number of admitted tokens, minus rate*T and the tokens that the nodes had in hand
// at its start. It is the difference of two sums: one up to the end of the interval, and one up to its start plus what
// was in hand. So the lowest start sum so far gives the largest excess so far.
type account struct {
	admitted uint64  // tokens
	held     int64   // tokens that the store has charged and no request has spent: in hand or on the way
	asked    uint64  // questions to the store about it
	low      float64 // the lowest start sum. Always 0 for windows, which admit two limits at once where they meet
	excess   float64 // of the worst interval
}

func newWorld(s *Scenario, number uint64) *world {
	return &world{
		scenario: s, random: rand.New(rand.NewPCG(s.Seed, 2+number)), rate: s.perMicrosecond(),
		keys: make([]account, s.Keys),
	}
}

// micros is the store's clock.
func (w *world) micros() int64 { return w.now / int64(time.Microsecond) }

// clock returns the time by a node's clock, in ns. Clocks differ only by a constant error.
func (w *world) clock(node uint32) int64 {
	wrong := int64(0)
	if last := int64(w.scenario.Nodes - 1); last > 0 {
		wrong = int64(w.scenario.Skew) / last * int64(node)
	}
	return w.now + wrong
}

// sum returns the tokens that were admitted of a key, minus rate*time.
func (w *world) sum(a *account) float64 {
	now := w.micros()
	if w.window > 0 {
		now += w.window - now%w.window
	}
	return float64(a.admitted) - w.rate*float64(now)
}

// look notes the start sum of the interval that begins now.
func (w *world) look(a *account) {
	if w.window == 0 {
		a.low = min(a.low, w.sum(a)+float64(a.held))
	}
}

// admit counts a request of n tokens that is admitted now.
func (w *world) admit(key uint32, n uint64) {
	a := &w.keys[key]
	w.look(a)
	a.admitted += n
	a.excess = max(a.excess, w.sum(a)-a.low)
}

// hold adds n to the tokens of a key that nodes hold. n may be negative.
func (w *world) hold(key uint32, n int64) {
	if n == 0 {
		return
	}
	a := &w.keys[key]
	w.look(a)
	a.held += n
	w.most = max(w.most, a.held)
}

// asked counts a question to the store.
func (w *world) asked(key uint32) {
	w.questions++
	w.keys[key].asked++
}

// way returns how long a message takes one way: half a round trip.
func (w *world) way() int64 {
	trip := int64(w.scenario.RTT)
	if jitter := int64(w.scenario.Jitter); jitter > 0 {
		trip += w.random.Int64N(2*jitter+1) - jitter
	}
	return trip / 2
}

// isAway reports whether a node cannot reach the store of a key.
func (w *world) isAway(node, key uint32) bool {
	s := w.scenario
	since := w.now - int64(s.Away.From)
	if s.AwayEvery > 0 && since >= 0 {
		since %= int64(s.AwayEvery)
	}
	return since >= 0 && since < int64(s.Away.To-s.Away.From) && int(node) < s.cutOff() && int(key)%s.partitions() < s.awayPartitions()
}

// lost reports whether a reply is.
func (w *world) lost() bool {
	return w.scenario.Loss > 0 && w.random.Float64() < w.scenario.Loss
}

// tick returns the next time after now at which a node does its work of every interval. phase is the node's own offset.
func (w *world) tick(phase, interval int64) int64 {
	return phase + ((w.now-phase+interval)/interval)*interval
}

// phases returns one for each node.
func (w *world) phases(interval int64) []int64 {
	all := make([]int64, w.scenario.Nodes)
	for i := range all {
		all[i] = w.random.Int64N(interval)
	}
	return all
}

// pair names a key at a node.
func pair(node, key uint32) uint64 { return uint64(node)<<32 | uint64(key) }
