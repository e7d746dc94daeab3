package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// A Point is a place on a curve, both numbers above 0, or at least 0 on an axis that is not
// logarithmic.
type Point struct{ X, Y float64 }

// An Axis says how one direction is drawn.
type Axis struct {
	Label string
	Log   bool
	Ticks []float64            // of a logarithmic axis, rising, from which to choose; nil for the powers of ten
	Text  func(float64) string // of a tick; nil for a short number
}

// Curve draws the points in their order, joined by lines, with a mark at each and a larger one at
// the chosen; chosen below 0 is none.
func Curve(sentence string, points []Point, chosen int, across, up Axis) template.HTML {
	f := newFrame(sentence, across.Label)
	if len(points) == 0 {
		return f.end()
	}
	var xs, ys []float64
	for _, p := range points {
		xs, ys = append(xs, p.X), append(ys, p.Y)
	}
	x, y := across.scale(xs), up.scale(ys)
	for _, v := range y.ticks {
		f.tickY(y.share(v), up.text(v))
	}
	for _, v := range x.ticks {
		f.tickX(x.share(v), across.text(v))
	}
	var path []string
	for _, p := range points {
		path = append(path, fmt.Sprintf("%.2f,%.2f", f.x(x.share(p.X)), f.y(y.share(p.Y))))
	}
	fmt.Fprintf(&f.b, `<polyline class="curve" points="%s"/>`, strings.Join(path, " "))
	for i, p := range points {
		class, radius := "mark", 2.5
		if i == chosen {
			class, radius = "chosen", 5
		}
		fmt.Fprintf(&f.b, `<circle class="%s" cx="%.2f" cy="%.2f" r="%g"/>`, class, f.x(x.share(p.X)), f.y(y.share(p.Y)), radius)
	}
	return f.end()
}

func (a Axis) text(v float64) string {
	if a.Text != nil {
		return a.Text(v)
	}
	return short(v)
}

// A scale turns numbers into shares of an axis.
type scale struct {
	from, to float64 // logarithms, on a logarithmic axis
	log      bool
	ticks    []float64
}

// scale makes the axis just long enough: to whole powers of ten, or from 0 to a round number.
func (a Axis) scale(values []float64) scale {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	if !a.Log {
		end := nice(high)
		return scale{0, end, false, []float64{0, end / 2, end}}
	}
	ticks := a.Ticks
	if ticks == nil {
		for at := math.Floor(math.Log10(low)); at <= math.Ceil(math.Log10(high)); at++ {
			ticks = append(ticks, math.Pow(10, at))
		}
	}
	ticks = around(ticks, low, high)
	s := scale{from: math.Log10(min(low, ticks[0])), to: math.Log10(max(high, ticks[len(ticks)-1])), log: true}
	if s.to == s.from {
		s.to++
	}
	const atMost = 5
	every := (len(ticks) + atMost - 1) / atMost
	for i := 0; i < len(ticks); i += every {
		s.ticks = append(s.ticks, ticks[i])
	}
	return s
}

// around returns the ticks from the last that is not above low to the first that is not below
// high, or the nearest there are.
func around(ticks []float64, low, high float64) []float64 {
	from, to := 0, len(ticks)-1
	for from < to && ticks[from+1] <= low {
		from++
	}
	for to > from && ticks[to-1] >= high {
		to--
	}
	return ticks[from : to+1]
}

func (s scale) share(v float64) float64 {
	if s.log {
		v = math.Log10(v)
	}
	return (v - s.from) / (s.to - s.from)
}
