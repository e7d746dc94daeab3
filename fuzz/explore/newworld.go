//go:build explore

package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
	"github.com/weir-go/weir/shard"
)

func newWorld(s scenario, still bool) (*world, error) {
	w := &world{scenario: s}
	if err := w.makePlans(); err != nil {
		return nil, err
	}
	if err := w.makeTable(); err != nil {
		return nil, err
	}
	w.intercept()
	w.readPrograms()
	w.keep()
	w.threads = []*thread{w.newThread(0, s.before)}
	w.Restart()
	for !w.threads[0].finished() {
		if err := w.Step(0, 0); err != nil {
			return nil, fmt.Errorf("before the threads: %w", err)
		}
	}
	w.keep()
	w.threads, w.still, w.planted = nil, still, true
	for i, program := range s.threads {
		w.threads = append(w.threads, w.newThread(i, program))
	}
	return w, nil
}

// makePlans makes the scenario's plans, and gives their units to the shadow.
func (w *world) makePlans() error {
	s := w.scenario
	for i, burst := range []uint64{cmpOr(s.burst, 1), cmpOr(s.plans[0], 1), cmpOr(s.plans[1], 1)} {
		tokens, period := cmpOr(s.rate, 1e9), time.Second
		if i > 0 && s.fine > 0 {
			tokens, period = float64(s.fine), time.Duration(s.fine+1)
		} else if i > 0 && s.rate == 0 {
			tokens, period = 1, time.Duration(i+1)
		}
		algorithm, err := atomicbucket.NewTokenBucket(tokens, period, burst)
		if err != nil {
			return err
		}
		if w.plans[i], err = shard.NewPlan(&algorithm, 0); err != nil {
			return err
		}
		if limited, limit, err := s.limited(i); err != nil {
			return err
		} else if limited != nil {
			if w.plans[i], err = shard.NewPlan(limited, 0); err != nil {
				return err
			}
			if i == 0 {
				w.shadow.limited, w.shadow.inFlight = limit, s.inFlight > 0
			}
		}
		w.plans[i].SetCharges(maxDebt, s.refusals)
		if i == 0 || s.fine > 0 {
			w.shadow.algorithm = &algorithm
		}
		if skew := int64(w.plans[i].Algorithm().MaxSkew()); i == 0 || skew < w.skew {
			w.skew = skew
		}
	}
	w.shadow.refusals = s.refusals
	return nil
}

func (w *world) makeTable() error {
	s := w.scenario
	cfg := shard.Config{
		Plan: w.plans[0], Slots: cmpOr(s.slots, 1), Shards: 1, ProbeWindow: s.probeWindow, Overflow: s.overflow, Start: start,
	}
	var table *shard.Table
	var err error
	if s.mortal {
		table, err = w.share(cfg)
	} else {
		table, err = shard.New(cfg)
	}
	if err != nil {
		return err
	}
	w.table, w.words, w.shadow.table, w.shadow.plans = table, table.Words(), table, w.plans
	w.planWords = table.PlanWords()
	w.slots, w.probeBounds, w.pages = int(table.Stats().Slots), table.ProbeBoundWords(), table.PageWords()
	w.refunds = table.RefundWords()
	if !s.pages {
		table.MarkPages()
	}
	if !s.probeBound {
		table.FixProbeBounds()
	}
	table.RestAfter(1)
	w.shadow.round, w.shadow.overflow = 1-interleave.Bit(w.shadow.algorithm.Exact()), s.overflow
	return nil
}

// intercept makes each access to a word of the table a step, except words that no thread of the scenario changes.
func (w *world) intercept() {
	s, table := w.scenario, w.table
	interleave.Intercept(func(a word.Access) bool {
		if w.isForeign(a.Word) || !s.mortal && a.Word == table.PlannedWord() {
			return true
		}
		if slices.Contains(w.refunds, a.Word) {
			return !w.refunded || a.Op == word.Load && !w.forced && a.Word == w.refunds[1]
		}
		return a.Op == word.Load && (w.still && w.isTime(a.Word) || !w.planned && (w.isPlan(a.Word) || slices.Contains(w.planWords, a.Word)) || !s.probeBound && w.isProbeBound(a.Word) || !s.pages && slices.Contains(w.pages, a.Word))
	})
}

func (w *world) readPrograms() {
	s := w.scenario
	for _, program := range append(s.threads, s.before) {
		for _, c := range program {
			if c.verb == adopt {
				w.planned = true
			} else if c.verb != sweep && c.verb != sweepEpoch && c.verb != sweepPart {
				w.shadow.owner(c.key)
			}
			w.cancels = w.cancels || c.verb == cancel
			w.refunded = w.refunded || c.givesBack()
			w.forced = w.forced || c.verb == reset || s.overflow == shard.Evict
		}
	}
}

func (s scenario) limited(plan int) (atomicbucket.Algorithm, uint64, error) {
	switch {
	case s.log > 0:
		algorithm, err := atomicbucket.NewSlidingLog(s.log, s.log, logWindow)
		return &algorithm, s.log, err
	case s.fixed > 0:
		algorithm, err := atomicbucket.NewFixedWindow(s.fixed, s.fixed, logWindow, false)
		return &algorithm, s.fixed, err
	case s.counter > 0:
		algorithm, err := atomicbucket.NewSlidingWindow(s.counter, s.counter, time.Hour)
		return &algorithm, s.counter, err
	case s.inFlight > 0:
		limit := [3]uint64{s.inFlight, cmpOr(s.plans[0], s.inFlight), cmpOr(s.plans[1], s.inFlight)}[plan]
		algorithm, err := atomicbucket.NewConcurrency(limit, limit, logWindow)
		return &algorithm, limit, err
	}
	return nil, 0, nil
}

func cmpOr[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
