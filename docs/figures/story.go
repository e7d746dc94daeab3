package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/chart"
)

// A story is a picture of the tokens of a key over time, with the calls that change them.
type story struct {
	file string
	draw func(io.Writer) error
}

var stories = []story{{"debt", drawDebt}, {"hold", drawHold}}

// sample is the time between two points of a curve. All calls are made at multiples of sample.
const sample = 250 * time.Millisecond

// tell moves the clock from 0 to end, and makes each call when it is due. It returns the results of the function level,
// before and after the calls.
func tell(clock *manualClock, end time.Duration, calls map[time.Duration]func(), level func() float64) (points []chart.Point) {
	for at := time.Duration(0); at <= end; at += sample {
		clock.set(at)
		points = append(points, point(at, level()))
		if calls[at] != nil {
			calls[at]()
			points = append(points, point(at, level()))
		}
	}
	return points
}

// These are the time and the tokens of the charge, the bound of the debt as a multiple of the limit, and the end of the
// picture.
const (
	chargeAt   = 3 * time.Second
	charged    = 25
	debtLimits = 3
	debtEnd    = 30 * time.Second
)

// A debt is the picture of a bucket that is charged more tokens than it has.
type debt struct {
	tokens            []chart.Point
	admitted, refused []float64 // times of requests, in seconds
	passes            time.Duration
}

func tellDebt() (d debt, err error) {
	clock := new(manualClock)
	l, err := engine.New(engine.TokenBucket(engine.PerSecond(1), limit), engine.MaxKeys(1), engine.ClockFunc(clock.now),
		engine.MaxDebt(debtLimits))
	if err != nil {
		return d, err
	}
	defer l.Close()
	calls := map[time.Duration]func(){chargeAt: func() { l.Charge(l.Key("client"), charged) }}
	for at := time.Second; at < debtEnd; at += time.Second {
		if at == chargeAt {
			continue
		}
		calls[at] = func() {
			if !l.Allow("client") {
				d.refused = append(d.refused, at.Seconds())
				return
			}
			d.admitted = append(d.admitted, at.Seconds())
			if d.passes == 0 && at > chargeAt {
				d.passes = at
			}
		}
	}
	// One token comes back per second, so n seconds to a full bucket are n missing tokens.
	d.tokens = tell(clock, debtEnd, calls, func() float64 { return limit - l.Peek(l.Key("client"), 0).ResetAfter.Seconds() })
	return d, nil
}

func drawDebt(w io.Writer) error {
	d, err := tellDebt()
	if err != nil {
		return err
	}
	const bound = limit - debtLimits*limit // in tokens
	p := storyPlot(debtEnd, 5*time.Second, bound-12, limit+5, 8)
	p.Line(chart.Line{Points: []chart.Point{point(0, 0), point(debtEnd, 0)}, Colour: chart.Grey})
	p.Line(chart.Line{Points: []chart.Point{point(0, bound), point(debtEnd, bound)}, Colour: chart.Orange, Dashes: "4 6"})
	p.Line(chart.Line{Points: []chart.Point{point(0, limit), point(debtEnd, limit)}, Colour: chart.Ink, Width: 3, Dashes: "12 7"})
	p.Line(chart.Line{Points: d.tokens, Colour: chart.Blue, Width: 3.5, Filled: true})
	p.Text(point(debtEnd, limit+1.4), chart.End, chart.Plain, fmt.Sprintf("full: %d tokens", limit))
	p.Text(point(chargeAt+300*time.Millisecond, limit-5), chart.Start, chart.Strong, fmt.Sprintf("%d charged", charged))
	p.Text(point(chargeAt+5*time.Second, -13.5), chart.Start, chart.Soft, "1 a second comes back")
	p.Text(point(debtEnd, bound+1.2), chart.End, chart.Plain, fmt.Sprintf("MaxDebt(%d): no lower", debtLimits))
	p.Mark(chart.Ink, point(d.passes, 0), 7)
	p.Text(point(d.passes, 2), chart.Middle, chart.Strong, fmt.Sprintf("passes again after %v", d.passes-chargeAt))
	p.Strokes(chart.Blue, 4, d.admitted, bound-5.5, bound-2)
	p.Strokes(chart.Orange, 4, d.refused, bound-10.5, bound-8)
	p.Text(point(chargeAt+2*time.Second, bound-5.2), chart.Start, chart.Plain, "admitted")
	p.Text(point(d.passes, bound-10.5), chart.Start, chart.Plain, "refused")
	label := fmt.Sprintf("A bucket of %d tokens, of which one comes back a second, is charged %d at second %d. It owes %d then, "+
		"and one request a second is refused until second %d, when the first passes. With MaxDebt(%d) it could owe no more than %d.",
		limit, charged, chargeAt/time.Second, charged-limit, d.passes/time.Second, debtLimits, -bound)
	return chart.Picture{Title: "A debt is paid back", Subtitle: "token bucket, 1 a second, burst 10", Width: width, TextSize: textSize,
		Chart: p.Chart(label)}.Write(w)
}

// A held is a hold in the picture, and its settlement.
type held struct {
	tokens, cost  uint64
	from, settled time.Duration
}

var holds = [2]held{{50, 10, 30 * time.Second, 80 * time.Second}, {20, 25, 45 * time.Second, 95 * time.Second}}

// In the picture of holds, the constant budget is the limit. At the time othersAt, another request takes the tokens of
// the constant others.
const (
	budget   = 100
	minute   = time.Minute
	others   = 30
	othersAt = 70 * time.Second
	holdEnd  = 2*minute - sample
)

// tellHold takes and settles the holds under a policy, and returns the tokens that count at each time.
func tellHold(p engine.Policy) ([]chart.Point, error) {
	l, clock, err := limiter(p, 1)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	var open [len(holds)]engine.Receipt
	calls := map[time.Duration]func(){othersAt: func() { l.Take("client", others) }}
	for i, h := range holds {
		calls[h.from] = func() {
			hold := &open[i]
			_, *hold = l.Hold(l.Key("client"), h.tokens)
		}
		calls[h.settled] = func() { open[i].Settle(h.cost) }
	}
	return tell(clock, holdEnd, calls, func() float64 { return float64(budget - l.Peek(l.Key("client"), 0).Remaining) }), nil
}

func drawHold(w io.Writer) error {
	fixed, err := tellHold(engine.FixedWindow(budget, minute).Aligned())
	if err != nil {
		return err
	}
	log, err := tellHold(engine.SlidingLog(budget, minute))
	if err != nil {
		return err
	}
	p := storyPlot(holdEnd, 20*time.Second, -60, budget+30, 2.2)
	p.Strokes(chart.Grey, 1.5, []float64{minute.Seconds()}, -60, budget+8)
	p.Line(chart.Line{Points: []chart.Point{point(0, 0), point(holdEnd, 0)}, Colour: chart.Grey})
	p.Line(chart.Line{Points: []chart.Point{point(0, budget), point(holdEnd, budget)}, Colour: chart.Ink, Width: 3, Dashes: "12 7"})
	p.Line(chart.Line{Points: fixed, Colour: chart.Blue, Width: 3.5, Filled: true})
	p.Line(chart.Line{Points: log, Colour: chart.Orange, Width: 3.5, Dashes: "9 5"})
	p.Text(point(0, budget+6), chart.Start, chart.Plain, fmt.Sprintf("limit %d", budget))
	p.Text(point(minute-time.Second, budget+14), chart.End, chart.Soft, "first minute")
	p.Text(point(minute+time.Second, budget+14), chart.Start, chart.Soft, "next minute")
	for i, h := range holds {
		y := -18 - 30*float64(i)
		p.Line(chart.Line{Points: []chart.Point{point(h.from, y), point(h.settled, y)}, Colour: chart.Ink, Width: 3})
		p.Mark(chart.Ink, point(h.from, y), 6)
		p.Mark(chart.Ink, point(h.settled, y), 6)
		p.Text(point(h.from-2*time.Second, y-4), chart.End, chart.Plain, fmt.Sprintf("%d held", h.tokens))
		p.Text(point(h.settled+2*time.Second, y-4), chart.Start, chart.Plain, fmt.Sprintf("cost %d", h.cost))
	}
	last := func(points []chart.Point) int { return int(math.Round(points[len(points)-1].Y)) }
	label := fmt.Sprintf("Of %d tokens a minute two requests hold %d and %d in the first minute, another takes %d in the next, and the two "+
		"are settled for %d and %d then. The fixed window counts none of the first minute in the next: what the first request cost less "+
		"is of a window that is over, and what the second cost more is charged, so %d count at the end. The sliding log forgets %d of "+
		"the first request when it is settled, and at the end counts %d.",
		budget, holds[0].tokens, holds[1].tokens, others, holds[0].cost, holds[1].cost, last(fixed),
		holds[0].tokens-holds[0].cost, last(log))
	return chart.Picture{Title: "Holds settled in the next window", Width: width, TextSize: textSize,
		Legend: []chart.Key{{Colour: chart.Blue, Text: "fixed window"}, {Colour: chart.Orange, Text: "sliding log"}}, Chart: p.Chart(label)}.Write(w)
}

// storyPlot returns a plot from second 0 to the second end. On the horizontal axis, there is a mark at each multiple of
// step. The argument unit is the height of one unit of the vertical axis, in pixels.
func storyPlot(end, step time.Duration, bottom, top, unit float64) *chart.Plot {
	p := &chart.Plot{X: chart.Linear(0, end.Seconds()), Y: chart.Linear(bottom, top), Height: (top - bottom) * unit, TextSize: textSize}
	for at := step; at < end; at += step {
		p.X.Ticks = append(p.X.Ticks, chart.Tick{At: at.Seconds(), Text: fmt.Sprintf("%d s", at/time.Second)})
	}
	return p
}
