package suggest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/trace"
	"github.com/weir-go/weir/engine"
)

const (
	// ordinary is the percentage of keys that may ask for more than the others without being abusive. A limit that
	// refuses no more keys than that is considered enough for the others.
	ordinary = 1
	// abusiveTimes: a key is abusive if it asks for this many times what is enough for the others.
	abusiveTimes = 2
	// supports is how many times the length of a limit's period a log must cover. A key may never do again what it did
	// once in a log.
	supports = 10
)

// A Goal says which keys a limit may refuse on a day: at most a share of the keys, or only abusive ones.
type Goal struct {
	Abusive bool
	Percent float64 // of the keys, 0 up to, not including, 100; ignored for Abusive
}

// percent returns the share of keys by which the limit is found.
func (g Goal) percent() float64 {
	if g.Abusive {
		return ordinary
	}
	return g.Percent
}

// String names these keys.
func (g Goal) String() string {
	if g.Abusive {
		return "abusive keys only"
	}
	return fmt.Sprintf("at most %v %% of the keys of a day", g.Percent)
}

// A Suggestion is a limit that reaches a goal.
type Suggestion struct {
	Goal
	Requests, Keys uint64 // of the rule
	// KeyDays counts each key once for each UTC day on which it had a request. A longer log has more keys that came
	// once, and more requests of each key. Shares are of KeyDays.
	KeyDays uint64
	// Curves has one curve for each of several periods, in ascending order: which keys its limits refuse.
	Curves []Curve
	Best   int    // of the curves, the one to choose; -1 for none
	Reason string // why this curve was chosen, or why there is none
	// Refused is how many requests the suggested limit refuses. Affected has the keys with the most refusals, at most
	// ten.
	Refused  uint64
	Affected []Affected
}

// A Curve has limits of one period.
type Curve struct {
	Period time.Duration
	Points []Point // the lowest limit first; the last refuses nothing
	Best   int     // of the points, the lowest that reaches the goal
}

// A Point is a limit that was tried.
type Point struct {
	Rate    engine.Rate
	Burst   uint64 // 0 for a window, which has none
	Policy  engine.Policy
	Refused uint64 // keys, each once for each day on which it is refused anything
}

// Point is the suggested limit; nil if there is none.
func (s *Suggestion) Point() *Point {
	if s.Best < 0 {
		return nil
	}
	return s.Curves[s.Best].Point()
}

// Point returns the lowest limit of the period that reaches the goal.
func (c *Curve) Point() *Point { return &c.Points[c.Best] }

// Settings returns the limit as written in a rule file.
func (p *Point) Settings() string {
	if p.Burst == 0 {
		return fmt.Sprintf("rate: %v", p.Rate)
	}
	return fmt.Sprintf("rate: %v, burst: %d", p.Rate, p.Burst)
}

// Find looks for limits with the rule's algorithm that reach the goal. A window and a batch refill keep the rule's
// period. A bucket gets a period of a minute, or a shorter one if the log does not support a minute. names are the
// names of the keys. progress, if not nil, is called with the number of steps done and the number of all steps.
//
// All requests of the log are used, including those that another rule would have refused. Requests in a tier are left
// out, because the limit is for the others.
func Find(rule *rulefile.Rule, trace *trace.Trace, names []string, goal Goal, progress func(done, all int)) (*Suggestion, error) {
	if !(goal.Percent >= 0 && goal.Percent < 100) {
		return nil, fmt.Errorf("suggest %v percent: want 0 up to, not including, 100", goal.Percent)
	}
	requests, err := newRequests(trace)
	if err != nil {
		return nil, err
	}
	s := &Suggestion{Goal: goal, Requests: requests.count, Keys: requests.keys, KeyDays: requests.keyDays, Best: -1}
	if rule.Constant != rulefile.Counted {
		s.Reason = fmt.Sprintf("its rate is %v, so there is no limit to find", rule.Constant)
		return s, nil
	}
	if per, _, ok := rule.Policy.Calendar(); ok {
		s.Reason = fmt.Sprintf("its rate is in a %v of the calendar, and such limits cannot be suggested", per)
		return s, nil
	}
	if s.Reason = s.tooFew(); s.Reason != "" {
		return s, nil
	}
	own := ownPeriod(rule.Policy)
	if s.Curves, err = requests.curves(rule, periods(own, requests.span), progress); err != nil {
		return nil, err
	}
	s.Curves = slices.DeleteFunc(s.Curves, func(c Curve) bool { return s.limit(&c) < 0 })
	for i := range s.Curves {
		s.Curves[i].Best = s.limit(&s.Curves[i])
	}
	s.choose(own, requests.span)
	if p := s.Point(); p != nil {
		s.Refused, s.Affected, err = requests.affected(p, names)
	}
	return s, err
}

// ownPeriod returns the period of a window or a batch refill, which the rule chooses; 0 for a bucket.
func ownPeriod(p engine.Policy) time.Duration {
	if p.Algorithm() == engine.AlgorithmTokenBucket {
		return 0
	}
	return p.Rate().Period
}

// tooFew returns why there are not enough requests or keys; "" if there are enough.
func (s *Suggestion) tooFew() string {
	percent := s.percent()
	switch {
	case s.Requests == 0:
		return "the rule counts no request of this log"
	case percent > 0 && s.allowed() == 0:
		return fmt.Sprintf("%v %% of the %d keys of a day are less than one: a log of %.0f or more is needed", percent, s.KeyDays,
			math.Ceil(100/percent))
	}
	return ""
}

// allowed returns how many keys the limit may refuse requests of, by percent.
func (s *Suggestion) allowed() uint64 {
	return uint64(math.Floor(s.percent()*float64(s.KeyDays)/100 + 1e-9))
}

// lowest returns the lowest limit that refuses requests of at most allowed keys.
func (s *Suggestion) lowest(c *Curve) int {
	return slices.IndexFunc(c.Points, func(p Point) bool { return p.Refused <= s.allowed() })
}

// limit returns the lowest limit of a period that reaches the goal; -1 if the engine cannot make one.
func (s *Suggestion) limit(c *Curve) int {
	at := s.lowest(c)
	if !s.Abusive {
		return at
	}
	need := abusiveTimes * c.Points[at].Rate.Tokens
	return slices.IndexFunc(c.Points, func(p Point) bool { return p.Rate.Tokens >= need })
}

// choose picks the curve whose limit is suggested.
func (s *Suggestion) choose(own, span time.Duration) {
	switch {
	case len(s.Curves) == 0 && own == 0:
		s.Reason = fmt.Sprintf("the log covers %v: no period is a tenth of that", span)
		return
	case own > 0 && !supported(own, span):
		s.Reason = fmt.Sprintf("the log covers %v: a limit for %v needs ten times its period", span, own)
		return
	}
	s.Best = slices.IndexFunc(s.Curves, func(c Curve) bool { return c.Period == own })
	if own == 0 {
		for i, c := range s.Curves {
			if c.Period <= time.Minute {
				s.Best = i
			}
		}
	}
	if s.Best < 0 {
		s.Reason = fmt.Sprintf("the engine has no limit of this kind for %v that reaches the goal", own)
		return
	}
	c := &s.Curves[s.Best]
	if !s.Abusive {
		s.Reason = fmt.Sprintf("the lowest limit that refuses anything to at most %v %% of the keys of a day", s.Percent)
		return
	}
	p := &c.Points[s.lowest(c)]
	s.Reason = fmt.Sprintf("%d times %v, which is enough for 99 of 100 keys of a day", abusiveTimes, p.Rate)
}

// supported reports whether a log of length span says enough about a period. A log's times are whole seconds, so its
// last second counts, too.
func supported(period, span time.Duration) bool { return period <= (span+time.Second)/supports }
