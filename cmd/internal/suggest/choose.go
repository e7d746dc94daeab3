package suggest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
)

// supports is how many times the log must hold the time that a limit is about, for the limit to be recommended: what a
// client did once in a log may never come again.
const supports = 10

// choose picks the point to recommend for requests of that time.
func (c *Curve) choose(period, span time.Duration) {
	if len(c.Points) == 0 {
		c.Reason = fmt.Sprintf("no limit of this kind refuses at most %v %% of the %s", c.Percent, c.What())
		return
	}
	for i, p := range c.Points {
		if p.Window == period && period > 0 {
			c.Best, c.Reason = i, "the lowest limit in the rule's own period"
			return
		}
	}
	points := c.Points
	if last := len(points) - 1; last > 0 && points[last].Lower == (engine.Rate{}) {
		points = points[:last] // there the burst is enough for the whole log, and the rate means nothing
	}
	if n := slices.IndexFunc(points, func(p Point) bool { return about(&p) > (span+time.Second)/supports }); n > 0 {
		points = points[:n]
	}
	c.Best = knee(points)
	if len(points) < 3 {
		c.Reason = "the lowest rate that was found"
		if len(points) < len(c.Points) && !c.Points[len(points)].HasLower() {
			c.Reason += fmt.Sprintf("; %s is enough by itself", c.Points[len(points)].across())
		}
		return
	}
	c.Reason = "the knee of the curve: " + c.sides()
}

// knee returns the point that lies farthest below the line between the two ends of the curve, both
// axes being logarithms: there the curve turns from steep to flat. Where there is no curve it is the
// last point, which has the lowest rate.
func knee(points []Point) int {
	best, farthest := len(points)-1, 0.0
	first, last := points[0].place(), points[best].place()
	for i := range points {
		at := points[i].place()
		along := (at.x - first.x) / (last.x - first.x)
		if below := first.y + along*(last.y-first.y) - at.y; below > farthest {
			best, farthest = i, below
		}
	}
	return best
}

type place struct{ x, y float64 }

func (p *Point) place() place {
	across := float64(p.Burst)
	if p.Window > 0 {
		across = p.Window.Seconds()
	}
	return place{math.Log(across), math.Log(p.PerSecond())}
}

// sides says what the points beside the best one cost.
func (c *Curve) sides() string {
	best := &c.Points[c.Best]
	s := ""
	if c.Best > 0 {
		p := &c.Points[c.Best-1]
		s = fmt.Sprintf("%s needs %.1f times the rate", p.across(), p.PerSecond()/best.PerSecond())
	}
	if c.Best < len(c.Points)-1 {
		p := &c.Points[c.Best+1]
		if s != "" {
			s += ", "
		}
		if p.Lower == (engine.Rate{}) {
			return s + p.across() + " is enough by itself"
		}
		s += fmt.Sprintf("%s still needs %.2f of it", p.across(), p.PerSecond()/best.PerSecond())
	}
	return s
}

func (p *Point) across() string {
	if p.Window > 0 {
		return fmt.Sprintf("a window of %v", p.Window)
	}
	return fmt.Sprintf("a burst of %d", p.Burst)
}

// short says that a log is too short for a limit: of what clients do in the time that the limit is about, it has seen a
// part only. "" if it is not. A log says whole seconds, so that its last one counts.
func short(p *Point, span time.Duration) string {
	if span += time.Second; span >= about(p) {
		return ""
	}
	return fmt.Sprintf("; but the log is too short for it: these requests are of %v, and this is a limit for %v", span,
		about(p))
}

// about is the time that a limit is about: that of its rate, or in which its burst comes back.
func about(p *Point) time.Duration { return max(p.Rate.Period(), p.Policy.Window()) }
