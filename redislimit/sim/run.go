package sim

import (
	"context"
	"fmt"

	"github.com/weir-go/weir/redislimit/internal/lease"
)

// A strategyRun is a strategy that runs in a world.
type strategyRun interface {
	arrive(node, key uint32, n uint64) // a request for n tokens comes now
	happen(event)
}

// Progress contains how much of a run is done.
type Progress struct {
	Doing string  // the current strategy
	Done  float64 // part of all the work that is done, 0 to 1
}

// Run simulates the scenario and returns the report. It returns an error if a field is out of range, or if the context
// ends before the run is complete. If progress is not nil, Run calls it from time to time in the same goroutine. A
// request takes about a microsecond for each strategy. A key that all nodes share takes 300 bytes of memory.
func Run(ctx context.Context, scenario Scenario, progress func(Progress)) (*Report, error) {
	if err := scenario.Check(); err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(Progress) {}
	}
	s := &scenario
	nodes, keys := newLottery(s.nodeWeights()), newLottery(s.keyWeights())
	runs := float64(len(s.Strategies) + 1)

	ideal := newCentral(s)
	step := func(name string, i int) func(float64) error {
		return func(done float64) error {
			progress(Progress{name, (float64(i) + done) / runs})
			return ctx.Err()
		}
	}
	if err := play(ideal.world, ideal, newArrivals(s, nodes, keys), step("ideal", 0)); err != nil {
		return nil, err
	}
	r := newReport(s, ideal)
	for i, strategy := range s.Strategies {
		w := newWorld(s, uint64(i))
		run, note := strategy.begin(w)
		if err := play(w, run, newArrivals(s, nodes, keys), step(strategy.String(), i+1)); err != nil {
			return nil, err
		}
		r.add(strategy, w, ideal, note)
	}
	progress(Progress{"done", 1})
	return r, nil
}

func (s Strategy) begin(w *world) (strategyRun, string) {
	switch s.kind {
	case kindLease:
		if !lease.Suits(w.scenario.policy(), w.scenario.Nodes) {
			return newStrict(w), fmt.Sprintf(tooSmall, w.scenario.Nodes)
		}
		return newLeases(w), ""
	case kindSettle:
		return newSettle(w, s.interval), ""
	}
	return newStrict(w), ""
}

const tooSmall = "the limit is too small for leases on %d nodes, so that they ask the store each time"

// play runs all requests, and the events between and after them.
func play(w *world, l strategyRun, a *arrivals, step func(done float64) error) error {
	const stepEvery = 1 << 14
	end := int64(w.scenario.Time)
	runUntil := func(t int64) {
		for len(w.events.heap) > 0 && w.events.heap[0].at <= t {
			e := w.events.take()
			w.now = e.at
			l.happen(e)
		}
		w.now = t
	}
	for i := 0; ; i++ {
		at, node, key, n := a.next()
		if at >= end {
			break
		}
		runUntil(at)
		l.arrive(node, key, n)
		if i%stepEvery == 0 {
			if err := step(float64(at) / float64(end)); err != nil {
				return err
			}
		}
	}
	runUntil(end + int64(max(w.scenario.Timeout, w.scenario.RTT+w.scenario.Jitter)))
	return step(1)
}

// central is the ideal limit: one limiter that sees every request immediately.
type central struct {
	*world
	store    *store
	requests uint64
	offered  []uint64 // tokens offered for each key
}

func newCentral(s *Scenario) *central {
	return &central{newWorld(s, 0), newStore(s), 0, make([]uint64, s.Keys)}
}

func (c *central) arrive(_, key uint32, n uint64) {
	c.requests++
	c.offered[key] += n
	if c.store.take(key, c.micros(), n) {
		c.admit(key, n)
	}
}

func (*central) happen(event) {}
