package suggest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/internal/config"
	"github.com/weir-go/weir/cmd/internal/trace"
	"github.com/weir-go/weir/engine"
)

// A Goal is how much a limit may refuse.
type Goal struct {
	Percent float64 // at most, 0 up to, not including, 100
	// ByKeys counts the keys of which any request is refused, and not requests. One client that asks a lot changes
	// nothing of that, and so the suggestion is about as many clients in a longer log of the same traffic.
	ByKeys bool
}

// What is what is counted: "requests" or "keys".
func (g Goal) What() string {
	if g.ByKeys {
		return "keys"
	}
	return "requests"
}

// A Curve is the pairs of numbers that reach a goal.
type Curve struct {
	Goal
	Requests uint64 // of the rule
	Keys     uint64 // of those
	// Points are in the order of their bursts, or windows; none if nothing would do.
	Points []Point
	Best   int     // of the points, the one to choose
	Reason string  // why, or why there is none
	Near   []Point // rates below and above that of the best one, in order
}

// A Point is numbers that were tried.
type Point struct {
	Rate    engine.Rate
	Burst   uint64        // 0 for a window, which has none
	Window  time.Duration // 0 for a bucket
	Policy  engine.Policy
	Refused uint64 // requests, or keys
	// Lower is the next lower rate, which refuses LowerRefused: too many. It is the zero Rate if
	// there is no lower one.
	Lower        engine.Rate
	LowerRefused uint64
}

// Total is how many requests, or keys, there are.
func (c *Curve) Total() uint64 {
	if c.ByKeys {
		return c.Keys
	}
	return c.Requests
}

// Share returns the part of n requests, or keys, that is refused, in percent.
func (p *Point) Share(n uint64) float64 { return 100 * float64(p.Refused) / float64(max(n, 1)) }

// PerSecond is the rate as a number.
func (p *Point) PerSecond() float64 { return p.Rate.PerSecond() }

// Find looks for the limits by the rule's algorithm which refuse at most what the goal allows of
// its requests. A batch refill keeps the rule's period, a window prefers it. progress, if not nil,
// is told how many of all steps are done.
//
// The requests are taken as they are in the log, those that another rule would have refused
// included. Requests in a tier are left out: the limit is that of the others.
func Find(rule *config.Rule, trace *trace.Trace, goal Goal, progress func(done, all int)) (*Curve, error) {
	if !(goal.Percent >= 0 && goal.Percent < 100) {
		return nil, fmt.Errorf("suggest %v percent: want 0 up to, not including, 100", goal.Percent)
	}
	requests, err := newRequests(trace, goal.ByKeys)
	if err != nil {
		return nil, err
	}
	c := &Curve{Goal: goal, Requests: requests.count, Keys: requests.keys, Best: -1}
	if rule.Constant != config.Counted {
		c.Reason = fmt.Sprintf("its rate is %v, and there is nothing to find", rule.Constant)
		return c, nil
	}
	if c.Requests == 0 {
		c.Reason = "the rule counts no request of this log"
		return c, nil
	}
	allowed := uint64(math.Floor(goal.Percent*float64(c.Total())/100 + 1e-9))
	scales, period := ladder(rule, requests)
	points, err := requests.lowest(scales, allowed, progress)
	if err != nil {
		return nil, err
	}
	var of []scale // the points are
	for i, p := range points {
		if p != nil {
			c.Points, of = append(c.Points, *p), append(of, scales[i])
		}
	}
	c.choose(period, requests.span)
	if c.Best >= 0 {
		c.Reason += short(&c.Points[c.Best], requests.span)
		c.Near, err = requests.near(of[c.Best], c.Points[c.Best].Rate)
	}
	return c, err
}

// near tries the rates around the chosen one, which show how steep it is there.
func (r *requests) near(s scale, chosen engine.Rate) (points []Point, err error) {
	s = s.made()
	q := newSearch(s, all)
	at := max(0, slices.IndexFunc(s, func(i step) bool { return i.Rate == chosen }))
	wide := max(1, at/8)
	var trials []trial
	for i := max(0, at-6*wide); i < len(s) && i <= at+4*wide; i += wide {
		trials = append(trials, trial{q, i, all})
	}
	if err := r.tryAll(trials); err != nil {
		return nil, err
	}
	for _, t := range trials {
		p := s[t.step].point()
		p.Refused = q.refused[t.step]
		points = append(points, p)
	}
	return points, nil
}

// HasLower reports whether a lower rate was tried.
func (p *Point) HasLower() bool { return p.Lower != engine.Rate{} }
