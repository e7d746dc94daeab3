package main

import (
	"fmt"
	"io"
	"time"

	"github.com/weir-go/weir/internal/chart"
)

// These are the sizes of the picture. The vertical axis counts requests in the last window.
const (
	width, textSize = 720, 26
	from            = 4 * time.Second // start of the horizontal axis, which ends at end
	unit            = 10              // pixels
	top, bottom     = 24, -10         // units
	edgeTop         = 21.5            // upper end of the thin lines

	// The requests are drawn below 0: first the admitted requests, and below them the refused requests.
	admittedTop, admittedBottom = -1.8, -5.4
	refusedTop, refusedBottom   = -6.8, -8.4
)

func (f figure) draw(w io.Writer) error {
	answers, err := play(f.policy, load())
	if err != nil {
		return err
	}
	steps := curve(answers)
	p := &chart.Plot{X: chart.Linear(from.Seconds(), end.Seconds()), Y: chart.Linear(bottom, top),
		Height: (top - bottom) * unit, TextSize: textSize}
	for at := 5 * time.Second; at < end; at += 5 * time.Second {
		p.X.Ticks = append(p.X.Ticks, chart.Tick{At: at.Seconds(), Text: fmt.Sprintf("%d s", at/time.Second)})
	}
	f.drawEdges(p)
	drawSteps(p, steps)
	drawRequests(p, answers)
	drawWorst(p, worst(steps))
	return chart.Picture{
		Title: f.title, Subtitle: f.numbers, Width: width, TextSize: textSize, Chart: p.Chart(f.describe(answers, steps)),
	}.Write(w)
}

func (f figure) describe(answers []answer, steps []step) string {
	admitted := 0
	for _, a := range answers {
		if a.admitted {
			admitted++
		}
	}
	high := worst(steps)
	return fmt.Sprintf("A client that was silent asks %d times in %.1f seconds around an edge at second %d, "+
		"and three times a second from then on. The limit is %d in %d seconds. Of %d requests %d are admitted. "+
		"The most in any %d seconds is %d, reached at second %.2f.",
		2*limit, (2 * rush).Seconds(), edge/time.Second, limit, window/time.Second, len(answers), admitted,
		window/time.Second, high.count, high.at.Seconds())
}

func point(at time.Duration, y float64) chart.Point { return chart.Point{X: at.Seconds(), Y: y} }

// drawEdges draws thin lines at the times at which a window ends or a refill comes.
func (f figure) drawEdges(p *chart.Plot) {
	var edges []float64
	for at := edge; at < end; at += f.edges { // the text of the picture is before the first edge
		edges = append(edges, at.Seconds())
	}
	p.Strokes(chart.Grey, 1.5, edges, bottom, edgeTop)
}

// drawSteps draws the number of requests admitted in the last window, and the limit.
func drawSteps(p *chart.Plot, steps []step) {
	var points []chart.Point
	count := 0.0
	for _, s := range steps {
		points = append(points, point(s.at, count), point(s.at, float64(s.count)))
		count = float64(s.count)
	}
	points = append(points, point(end, count))
	p.Line(chart.Line{Points: []chart.Point{point(from, 0), point(end, 0)}, Colour: chart.Grey})
	p.Line(chart.Line{Points: points, Colour: chart.Blue, Width: 3.5, Filled: true})
	p.Line(chart.Line{Points: []chart.Point{point(from, limit), point(end, limit)}, Colour: chart.Ink, Width: 3,
		Dashes: "12 7"})
	p.Text(point(end, limit+1.2), chart.End, chart.Plain, fmt.Sprintf("limit %d", limit))
	p.Text(point(from, 4.2), chart.Start, chart.Soft, "admitted in")
	p.Text(point(from, 1.2), chart.Start, chart.Soft, fmt.Sprintf("the last %d s", window/time.Second))
}

// drawRequests draws the requests. The admitted requests are above the refused requests, and taller.
func drawRequests(p *chart.Plot, answers []answer) {
	var admitted, refused []float64
	for _, a := range answers {
		if a.admitted {
			admitted = append(admitted, a.at.Seconds())
		} else {
			refused = append(refused, a.at.Seconds())
		}
	}
	p.Strokes(chart.Blue, 1.9, admitted, admittedBottom, admittedTop)
	p.Strokes(chart.Orange, 1.6, refused, refusedBottom, refusedTop)
	p.Text(point(from, admittedBottom+0.8), chart.Start, chart.Plain, "admitted")
	p.Text(point(from, refusedBottom), chart.Start, chart.Plain, "refused")
}

func drawWorst(p *chart.Plot, high step) {
	y := float64(high.count)
	begin, ends := max(high.at-window, from), []float64{high.at.Seconds()}
	if begin > from { // otherwise the window begins before the picture
		ends = append(ends, begin.Seconds())
	}
	p.Line(chart.Line{Points: []chart.Point{point(begin, y+1.4), point(high.at, y+1.4)}, Colour: chart.Ink, Width: 2.5})
	p.Strokes(chart.Ink, 2.5, ends, y+0.8, y+2)
	p.Mark(chart.Ink, point(high.at, y), 7)
	p.Text(point(begin+(high.at-begin)/2, y+2.6), chart.Middle, chart.Strong,
		fmt.Sprintf("%d in %d s", high.count, window/time.Second))
}
