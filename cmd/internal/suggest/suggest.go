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
	// ordinaryPercent is a percentage of keys. If a limit refuses at most this share of the keys, it counts as enough
	// for all other keys.
	ordinaryPercent = 1
	// A key is abusive if it asks for at least abusiveTimes times the limit that is enough for all other keys.
	abusiveTimes = 2
	// minPeriods is how many periods of a limit a log must cover. In a shorter log, a key might have many requests only
	// by chance.
	minPeriods = 10
)

// A Goal says which keys a limit may refuse on a day: at most a share of all keys, or only abusive keys.
type Goal struct {
	Abusive bool
	Percent float64 // share of the keys, from 0 to below 100; ignored if Abusive is set
}

// percent returns the share of keys that determines the limit.
func (g Goal) percent() float64 {
	if g.Abusive {
		return ordinaryPercent
	}
	return g.Percent
}

// String describes the keys that may be refused.
func (g Goal) String() string {
	if g.Abusive {
		return "abusive keys only"
	}
	return fmt.Sprintf("at most %v %% of the keys of a day", g.Percent)
}

// A Suggestion is a limit that reaches a goal.
type Suggestion struct {
	Goal
	Requests, Keys uint64 // numbers of the rule's requests and keys
	// KeyDays is the number of UTC days on which a key had a request, summed over all keys. Shares are shares of
	// KeyDays, not of Keys or Requests. A longer log has more keys that came only once, and more requests of each key.
	KeyDays uint64
	// Curves has one curve for each of several periods, in ascending order. A curve says which keys its limits refuse.
	Curves []Curve
	Best   int    // index of the curve to choose; -1 for none
	Reason string // why this curve is chosen, or why there is none
	// Refused is how many requests the suggested limit refuses. Affected has the keys with the most refusals, at most
	// ten.
	Refused  uint64
	Affected []Affected
}

// A Curve has the limits that were tried for one period.
type Curve struct {
	Period time.Duration
	Points []Point // lowest limit first; the last one refuses nothing
	Best   int     // index of the lowest limit that reaches the goal
}

// A Point is a limit that was tried.
type Point struct {
	Rate    engine.Rate
	Burst   uint64 // 0 for a window, which has no burst
	Policy  engine.Policy
	Refused uint64 // number of keys with a refusal, each counted once per day
}

// Point returns the suggested limit, or nil if there is none.
func (s *Suggestion) Point() *Point {
	if s.Best < 0 {
		return nil
	}
	return s.Curves[s.Best].Point()
}

// Point returns the lowest limit of the period that reaches the goal.
func (c *Curve) Point() *Point { return &c.Points[c.Best] }

// Settings returns the limit as it is written in a rule file.
func (p *Point) Settings() string {
	if p.Burst == 0 {
		return fmt.Sprintf("rate: %v", p.Rate)
	}
	return fmt.Sprintf("rate: %v, burst: %d", p.Rate, p.Burst)
}

// Find looks for limits with the rule's algorithm that reach the goal. For a window or a batch refill, the period of
// the rule is kept. For a bucket, the period is a minute, or less if the log is short. The parameter names has the
// names of the keys. If progress is not nil, it is called with the number of steps done and the number of all steps.
//
// Find uses all requests of the log, even if another rule would have refused them. It leaves out requests in a tier,
// because the suggested limit does not apply to them.
func Find(rule *rulefile.Rule, trace *trace.Trace, names []string, goal Goal, progress func(done, total int)) (*Suggestion, error) {
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
	if unit, _, ok := rule.Policy.Calendar(); ok {
		s.Reason = fmt.Sprintf("its rate is in a %v of the calendar, and such limits cannot be suggested", unit)
		return s, nil
	}
	if s.Reason = s.tooFewReason(); s.Reason != "" {
		return s, nil
	}
	rulePeriod := periodOf(rule.Policy)
	if s.Curves, err = requests.curves(rule, periods(rulePeriod, requests.span), progress); err != nil {
		return nil, err
	}
	s.Curves = slices.DeleteFunc(s.Curves, func(c Curve) bool { return s.goalIndex(&c) < 0 })
	for i := range s.Curves {
		s.Curves[i].Best = s.goalIndex(&s.Curves[i])
	}
	s.choose(rulePeriod, requests.span)
	if p := s.Point(); p != nil {
		s.Refused, s.Affected, err = requests.affected(p, names)
	}
	return s, err
}

// periodOf returns the period of the rule's window or batch refill, or 0 for a bucket.
func periodOf(p engine.Policy) time.Duration {
	if p.Algorithm() == engine.AlgorithmTokenBucket {
		return 0
	}
	return p.Rate().Period
}

// tooFewReason returns why there are not enough requests or keys, or "" if there are enough.
func (s *Suggestion) tooFewReason() string {
	percent := s.percent()
	switch {
	case s.Requests == 0:
		return "the rule counts no request of this log"
	case percent > 0 && s.maxRefused() == 0:
		return fmt.Sprintf("%v %% of the %d keys of a day are less than one: a log of %.0f or more is needed", percent, s.KeyDays,
			math.Ceil(100/percent))
	}
	return ""
}

// maxRefused returns how many keys the limit may refuse so that their share is at most percent.
func (s *Suggestion) maxRefused() uint64 {
	return uint64(math.Floor(s.percent()*float64(s.KeyDays)/100 + 1e-9))
}

func (s *Suggestion) lowestIndex(c *Curve) int {
	return slices.IndexFunc(c.Points, func(p Point) bool { return p.Refused <= s.maxRefused() })
}

// goalIndex returns the index of the lowest limit of a period that reaches the goal, or -1 if the engine cannot make
// it.
func (s *Suggestion) goalIndex(c *Curve) int {
	i := s.lowestIndex(c)
	if !s.Abusive {
		return i
	}
	minTokens := abusiveTimes * c.Points[i].Rate.Tokens
	return slices.IndexFunc(c.Points, func(p Point) bool { return p.Rate.Tokens >= minTokens })
}

func (s *Suggestion) choose(rulePeriod, span time.Duration) {
	switch {
	case len(s.Curves) == 0 && rulePeriod == 0:
		s.Reason = fmt.Sprintf("the log covers %v: no period is a tenth of that", span)
		return
	case rulePeriod > 0 && !isSupported(rulePeriod, span):
		s.Reason = fmt.Sprintf("the log covers %v: a limit for %v needs ten times its period", span, rulePeriod)
		return
	}
	s.Best = slices.IndexFunc(s.Curves, func(c Curve) bool { return c.Period == rulePeriod })
	if rulePeriod == 0 {
		for i, c := range s.Curves {
			if c.Period <= time.Minute {
				s.Best = i
			}
		}
	}
	if s.Best < 0 {
		s.Reason = fmt.Sprintf("the engine has no limit of this kind for %v that reaches the goal", rulePeriod)
		return
	}
	c := &s.Curves[s.Best]
	if !s.Abusive {
		s.Reason = fmt.Sprintf("the lowest limit that refuses anything to at most %v %% of the keys of a day", s.Percent)
		return
	}
	p := &c.Points[s.lowestIndex(c)]
	s.Reason = fmt.Sprintf("%d times %v, which is enough for 99 of 100 keys of a day", abusiveTimes, p.Rate)
}

// isSupported reports whether a log of length span is long enough for a period. The log's times are whole seconds, so
// its last second must be added.
func isSupported(period, span time.Duration) bool { return period <= (span+time.Second)/minPeriods }
