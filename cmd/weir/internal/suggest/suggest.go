package suggest

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/config"
	"github.com/weir-go/weir/cmd/weir/internal/replay"
	"github.com/weir-go/weir/engine"
)

// A Curve is the pairs of numbers that refuse at most a share of the requests.
type Curve struct {
	Percent  float64 // at most
	Requests uint64  // of the rule
	Keys     int
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
	Refused uint64
	// Lower is the next lower rate, which refuses LowerRefused: too many. It is the zero Rate if
	// there is no lower one.
	Lower        engine.Rate
	LowerRefused uint64
}

// Share returns the part of n requests that is refused, in percent.
func (p *Point) Share(n uint64) float64 { return 100 * float64(p.Refused) / float64(max(n, 1)) }

// PerSecond is the rate as a number.
func (p *Point) PerSecond() float64 { return perSecond(p.Rate) }

// Find looks for the limits by the rule's algorithm which refuse at most percent, 0 up to 100, of
// its requests. A batch refill keeps the rule's period, a window prefers it. progress, if not nil,
// is told how many of all steps are done.
//
// The requests are taken as they are in the log, those that another rule would have refused
// included. Requests in a tier are left out: the limit is that of the others.
func Find(rule *config.Rule, trace *replay.Trace, percent float64, progress func(done, all int)) (*Curve, error) {
	if !(percent >= 0 && percent < 100) {
		return nil, fmt.Errorf("suggest %v percent: want 0 up to, not including, 100", percent)
	}
	requests, err := newRequests(trace)
	if err != nil {
		return nil, err
	}
	c := &Curve{Percent: percent, Requests: uint64(len(requests.all)), Keys: requests.keys, Best: -1}
	if rule.Constant != config.Counted {
		c.Reason = fmt.Sprintf("its rate is %v, and there is nothing to find", rule.Constant)
		return c, nil
	}
	if c.Requests == 0 {
		c.Reason = "the rule counts no request of this log"
		return c, nil
	}
	allowed := uint64(math.Floor(percent*float64(c.Requests)/100 + 1e-9))
	lines, period := ladder(rule, requests)
	var found []scale // of the points
	for i, s := range lines {
		if progress != nil {
			progress(i, len(lines))
		}
		p, err := requests.lowest(s, allowed)
		if err != nil {
			return nil, err
		}
		if p == nil {
			continue
		}
		c.Points, found = append(c.Points, *p), append(found, s)
		if !p.HasLower() && p.Window == 0 {
			break // no lower rate with a larger burst either
		}
	}
	c.choose(period)
	if c.Best >= 0 {
		c.Reason += short(&c.Points[c.Best], requests.span)
		c.Near, err = requests.near(found[c.Best], c.Points[c.Best].Rate)
	}
	return c, err
}

// lowest returns the least of the scale that refuses at most so many; nil if none does.
//
// It halves, and then looks at some that are lower still. More tokens do not refuse more, by and
// large: but the engine rounds some rates by a nanosecond, which costs a token where stamps are whole
// seconds, and costs and refunds may differ. So there may be a lower one yet; that this one does, and
// that the next lower one does not, was seen.
func (r *requests) lowest(s scale, allowed uint64) (*Point, error) {
	s = s[:sort.Search(len(s), func(i int) bool { return !s[i].made() })]
	if len(s) == 0 {
		return nil, nil
	}
	q := &search{requests: r, scale: s}
	low, high := -1, len(s)-1 // low refuses too many, high few enough
	best, err := q.try(high, allowed)
	if err == nil && best.Refused > allowed {
		return nil, nil
	}
	for err == nil && high-low > 1 {
		middle := low + (high-low)/2
		var p *Point
		if p, err = q.try(middle, allowed); err != nil {
			break
		}
		if p.Refused <= allowed {
			high, best = middle, p
		} else {
			low = middle
		}
	}
	for i, left := high-2, beyond; err == nil && i >= 0 && left > 0; i-- {
		var p *Point
		if p, err = q.try(i, allowed); err != nil {
			break
		}
		if p.Refused <= allowed {
			high, best, left = i, p, beyond
			continue
		}
		left--
	}
	if err == nil && high > 0 {
		var lower *Point
		if lower, err = q.try(high-1, all); err == nil {
			best.Lower, best.LowerRefused = lower.Rate, lower.Refused
		}
	}
	return best, err
}

// beyond is how many lower steps are tried when one was found.
const beyond = 8

// all is more than are ever refused: they are counted to the last.
const all = math.MaxUint64

// A search tries the steps of a scale. A higher step puts no request at risk that a lower one does not: its window is
// no longer, and a key can have as much or more at once. So what a step that refuses too many puts at risk is all that
// need be looked at for the steps above it.
type search struct {
	*requests
	scale
	narrowed []narrowed // the lower first
}

// narrowed is the requests that a step and all above it may refuse.
type narrowed struct {
	from     int
	requests []replay.Traced
}

// try replays the requests with one step. Of more than enough refusals it does not count the rest.
func (q *search) try(i int, enough uint64) (*Point, error) {
	p := q.scale[i].point()
	of := q.all
	for _, n := range q.narrowed {
		if n.from <= i {
			of = n.requests
		}
	}
	risky, keys := q.atRisk(of, p.Policy, q.scale[i].most)
	var err error
	p.Refused, err = q.refused(p.Policy, risky, keys, enough)
	if last := len(q.narrowed) - 1; p.Refused > enough && (last < 0 || q.narrowed[last].from < i) {
		q.narrowed = append(q.narrowed, narrowed{i, risky})
	}
	return &p, err
}

// near tries the rates around the chosen one, which show how steep it is there.
func (r *requests) near(s scale, chosen engine.Rate) (points []Point, err error) {
	q := &search{requests: r, scale: s}
	at := 0
	for i := range s {
		if s[i].Rate == chosen {
			at = i
		}
	}
	step := max(1, at/8)
	for i := max(0, at-6*step); i < len(s) && i <= at+4*step; i += step {
		if !s[i].made() {
			break
		}
		p, err := q.try(i, all)
		if err != nil {
			return nil, err
		}
		points = append(points, *p)
	}
	return points, nil
}

// HasLower reports whether a lower rate was tried.
func (p *Point) HasLower() bool { return p.Lower != engine.Rate{} }
