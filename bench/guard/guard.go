// Package guard detects whether weir has become much slower than the floor, the minimum of work of an exact limiter:
// `make bench-guard`. It compares only times of the same run. Each [Bound] is about twice the target of package target,
// so only a real regression exceeds it.
package guard

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/bench/experiment"
	"github.com/weir-go/weir/bench/measure"
	"github.com/weir-go/weir/bench/result"
	"github.com/weir-go/weir/bench/workload"
)

// A Bound is the largest allowed cost of a subject on a row, as a multiple of the cost of a floor or of another
// subject.
type Bound struct {
	Row   workload.Row
	Name  string // the guarded subject
	Floor string // the floor or the other subject
	Most  float64
	Found float64 // the smallest fraction of requests that must find their record; 0 if that is not guarded
	// Open is measure.Open, unless a test provides something slower.
	Open func(row *workload.Row, name string, requests *workload.Stream) (measure.Decider, func(), error)
}

// Bounds returns the bounds to check.
func Bounds() ([]Bound, error) {
	var bounds []Bound
	for _, b := range []Bound{
		{Name: measure.WeirCoarse, Floor: measure.FloorCoarse, Most: 3, Row: workload.Row{Name: "allowed-1k"}},
		{Name: measure.WeirPrecise, Floor: measure.FloorPrecise, Most: 2.6, Row: workload.Row{Name: "allowed-1k"}},
		{Name: measure.WeirTSC, Floor: measure.FloorPrecise, Most: 1.5, Row: workload.Row{Name: "allowed-1k"}},
		{Name: measure.WeirCoarse, Floor: measure.FloorCoarse, Most: 3.5, Row: workload.Row{Name: "denied-1k"}},
		{Name: measure.WeirTSC, Floor: measure.FloorTSC, Most: 3.5, Row: workload.Row{Name: "zipf-1m"}},
		// This subject misses its target (see docs/benchmarks/history.md), so the bound is twice its measured ratio.
		{Name: measure.WeirTSC, Floor: measure.FloorTSC, Most: 7, Row: workload.Row{Name: "churn"}},
		{Name: measure.WeirTSC, Floor: measure.WeirNeverIdle, Most: 1.6, Found: 0.98,
			Row: workload.Row{Name: "returning-1k"}},
	} {
		row, err := workload.Find(b.Row.Name)
		if err != nil {
			return nil, err
		}
		if row.Draw == workload.Fresh { // smaller, so that it is quick
			row.Keys, row.Requests, row.Capacity = 200_000, 20_000, 100_000
		}
		if measure.Cannot(&row, b.Name) == "" {
			b.Row, b.Open = row, measure.Open
			bounds = append(bounds, b)
		}
	}
	return bounds, nil
}

const (
	rounds = 15
	more   = 61 // if the first rounds were too slow, as they may be on a busy machine
	slice  = 4 * time.Millisecond
)

// Check measures the subject, and returns an error if it is too slow, decides wrongly, allocates, or finds too few
// records.
func (b Bound) Check() error {
	if err := b.checkFound(); err != nil {
		return err
	}
	before, requests := b.Row.Load()
	floor, release, err := measure.Open(&b.Row, b.Floor, requests)
	if err != nil {
		return err
	}
	defer release()
	guarded, end, err := b.Open(&b.Row, b.Name, requests)
	if err != nil {
		return err
	}
	defer end()
	measure.Warm(floor, before)
	measure.Warm(guarded, before)

	c := contest{b.Row, guarded, floor, requests, 0, measure.Sample{}}
	s := result.Summarize(c.ratios(rounds))
	if s.Median > b.Most {
		s = result.Summarize(c.ratios(more))
	}
	if wrong := experiment.Wrong(&b.Row, c.sum); wrong != "" {
		return fmt.Errorf("%s on %s: %s", b.Name, b.Row.Name, wrong)
	}
	if n := c.sum.AllocsPerOp(); n > 0.001 {
		return fmt.Errorf("%s on %s: %.3f objects allocated a decision: want none", b.Name, b.Row.Name, n)
	}
	if s.Median > b.Most {
		return fmt.Errorf("%s on %s: %.2f times %s (%.2f - %.2f in %d rounds): want at most %g",
			b.Name, b.Row.Name, s.Median, b.Floor, s.Min, s.Max, s.Rounds, b.Most)
	}
	return nil
}

// checkFound counts the requests that find their record. Other programs do not affect it, because it measures no time.
func (b Bound) checkFound() error {
	if b.Found == 0 {
		return nil
	}
	found, err := experiment.MeasureFound(experiment.FoundOf{Row: b.Row.Name})
	if err != nil {
		return err
	}
	if found.Fraction() < b.Found {
		return fmt.Errorf("%s: %.2f %% of the requests found the record of their key: want at least %g %%",
			b.Row.Name, 100*found.Fraction(), 100*b.Found)
	}
	return nil
}

// A contest is between two deciders that take turns on the same requests.
type contest struct {
	row            workload.Row
	guarded, floor measure.Decider
	requests       *workload.Stream
	pass           int
	sum            measure.Sample // of the guarded subject
}

func (c *contest) ratios(n int) []float64 {
	var guarded, floor []float64
	for range n {
		g, f := c.turn(c.guarded), c.turn(c.floor)
		c.sum.Add(g)
		guarded, floor = append(guarded, g.PerOp()), append(floor, f.PerOp())
	}
	return result.Ratios(guarded, floor)
}

func (c *contest) turn(d measure.Decider) measure.Sample {
	if c.row.Ends() {
		c.pass++
		return measure.Once(d, c.row.Next(c.pass))
	}
	return measure.For(slice, d, c.requests)
}
