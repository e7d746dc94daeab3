package sim

import (
	"math/rand/v2"
	"time"
)

// A world is the environment of one strategy: the clock, the future events, and the counts of what the strategy did.
type world struct {
	scenario  *Scenario
	now       int64 // ns since the start
	events    eventQueue
	random    *rand.Rand // for the network and the nodes
	rate      float64    // tokens per µs
	keys      []account
	calls     uint64
	questions uint64
	maxHeld   int64 // the most tokens of one key that all nodes together held at one time
	window    int64 // length in µs of windows, which grant their tokens at their start; 0 without windows
}

// An account contains the simulator's counts for a key.
//
// The excess over an interval of length T is the number of tokens admitted in it, minus rate*T. The tokens that the
// nodes had in hand at its start are also subtracted. The excess is the difference of two sums, the end sum minus the
// start sum:
//
//   - end sum: the tokens admitted from the start of the run to the end of the interval, minus rate times that time
//   - start sum: the same number for the start of the interval, plus the tokens in hand at that moment
//
// So for an interval that ends now, the lowest start sum so far gives the largest excess.
type account struct {
	admitted    uint64  // tokens
	held        int64   // tokens that the store has charged and no request has spent: in hand or on the way
	questions   uint64  // questions to the store
	lowestStart float64 // the lowest start sum; 0 for windows, as two adjacent windows may admit two limits at once
	excess      float64 // of the worst interval
}

func newWorld(s *Scenario, number uint64) *world {
	return &world{
		scenario: s, random: rand.New(rand.NewPCG(s.Seed, 2+number)), rate: s.perMicrosecond(),
		keys: make([]account, s.Keys),
	}
}

func (w *world) micros() int64 { return w.now / int64(time.Microsecond) }

func (w *world) clock(node uint32) int64 {
	skew := int64(0)
	if last := int64(w.scenario.Nodes - 1); last > 0 {
		skew = int64(w.scenario.Skew) / last * int64(node)
	}
	return w.now + skew
}

func (w *world) sum(a *account) float64 {
	now := w.micros()
	if w.window > 0 {
		now += w.window - now%w.window
	}
	return float64(a.admitted) - w.rate*float64(now)
}

// noteStart notes the start sum of an interval that begins now.
func (w *world) noteStart(a *account) {
	if w.window == 0 {
		a.lowestStart = min(a.lowestStart, w.sum(a)+float64(a.held))
	}
}

func (w *world) admit(key uint32, n uint64) {
	a := &w.keys[key]
	w.noteStart(a)
	a.admitted += n
	a.excess = max(a.excess, w.sum(a)-a.lowestStart)
}

func (w *world) addHeld(key uint32, n int64) {
	if n == 0 {
		return
	}
	a := &w.keys[key]
	w.noteStart(a)
	a.held += n
	w.maxHeld = max(w.maxHeld, a.held)
}

func (w *world) noteQuestion(key uint32) {
	w.questions++
	w.keys[key].questions++
}

// oneWayTime returns how long a message takes in one direction.
func (w *world) oneWayTime() int64 {
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

func (w *world) isAnswerLost() bool {
	return w.scenario.Loss > 0 && w.random.Float64() < w.scenario.Loss
}

// tick returns the next time, after now, at which a node does its periodic work. phase is the offset of the node's
// times.
func (w *world) tick(phase, interval int64) int64 {
	return phase + ((w.now-phase+interval)/interval)*interval
}

func (w *world) phases(interval int64) []int64 {
	phases := make([]int64, w.scenario.Nodes)
	for i := range phases {
		phases[i] = w.random.Int64N(interval)
	}
	return phases
}

// pair returns a number that identifies a key at a node.
func pair(node, key uint32) uint64 { return uint64(node)<<32 | uint64(key) }
